"""The lessons for PyTorch users show what their texts say."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gviz.cli.lessons import lessons
from gviz.events import BackwardFinished, GradAccumulated, GradSet, NodeCreated, StepStarted, StorageWritten
from gviz.trace.file.reader import open_trace

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[2]
LESSONS = {lesson.path.stem: lesson for lesson in lessons() if lesson.needs_pytorch}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder, known = tmp_path_factory.mktemp("lessons"), {}

    def record(name):
        if name not in known:
            trace = folder / f"{name}.gviz"
            command = [sys.executable, "-m", "gviz", "record", "-o", str(trace), str(LESSONS[name].path)]
            environment = os.environ | {"PYTHONPATH": str(ROOT)}
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            with open_trace(trace) as log:
                known[name] = done, [log.event(seq) for seq in range(1, len(log) + 1)]
        return known[name]

    return record


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_and_ends_as_it_says(name, recorded):
    done, events = recorded(name)
    assert done.returncode == (1 if name == "p3_in_place_error" else 0), done.stderr
    assert any(isinstance(event, StepStarted) for event in events)


def test_the_nan_is_born_in_backward(recorded):
    done, events = recorded("p1_nan_in_training")
    grads = [event.part.array() for event in events if isinstance(event, GradAccumulated)]
    assert [bool(np.isnan(grad).any()) for grad in grads[:3]] == [False, False, True]
    assert "loss = nan" in done.stdout


def test_detach_cuts_the_path(recorded):
    done, events = recorded("p2_gradient_is_none")
    assert [e.untracked for e in events if isinstance(e, NodeCreated) and e.untracked] == ["detach"]
    assert done.stdout.splitlines()[0].endswith("is None")


def test_the_write_behind_the_error_is_seen(recorded):
    done, events = recorded("p3_in_place_error")
    assert [event.version for event in events if isinstance(event, StorageWritten)] == [1]
    assert [e.error for e in events if isinstance(e, BackwardFinished)][-1] in done.stderr


def test_the_gradient_explodes_and_is_clipped(recorded):
    _, events = recorded("p4_exploding_recurrence")
    (clipped,) = [e for e in events if isinstance(e, GradSet) and e.how == "in place"]
    assert clipped.value.array()[0] == pytest.approx(1.0, abs=1e-4)


def test_a_checkpoint_computes_again(recorded):
    _, events = recorded("p5_checkpoint")
    assert [event.during[0] for event in events if isinstance(event, NodeCreated) and event.during[0]]


def test_one_rank_alone_clips(recorded):
    done, events = recorded("p6_two_ranks_disagree")
    assert done.stdout.count("step ") == 3
    assert [e for e in events if isinstance(e, GradSet) and e.how == "in place"]
