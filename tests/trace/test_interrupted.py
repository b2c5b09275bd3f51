"""Exceptions from signal handlers come up anywhere in a recorded program; the recording stays whole."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gviz import events as e
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.file.reader import open_trace
from gviz.trace.timeline import Timeline

ROOT = Path(__file__).parents[2]

STORM = """
import random, signal, sys
import gviz.engine as torch
from gviz.trace.recording.record import record

class Stop(Exception): pass

def stop(*_): raise Stop

signal.signal(signal.SIGALRM, stop)
random.seed(int(sys.argv[2]))
x = torch.tensor(1.0, requires_grad=True)
made = stopped = 0
with record(sys.argv[1]) as recording:
    while stopped < 150:
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0005, 0.006))
            while True:
                y = x * x
                made += 1
                if made % 500 == 0:
                    recording.flush()
        except Stop:
            stopped += 1
print(made, stopped)
"""

CTRL_C = """
import os, signal, sys, threading
import gviz.engine as torch
from gviz.trace.recording.record import record

signal.signal(signal.SIGINT, signal.default_int_handler)
x = torch.tensor(1.0, requires_grad=True)
with record(sys.argv[1]):
    threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGINT)).start()
    while True:
        (x * x).backward()
"""


def run(program, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60)


def operations(log):
    made = log.select(1, len(log) + 1, [KIND_NUMBERS[e.NodeCreated]])
    return sum(event.kind == "op" for _, event in made)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_storm_of_exceptions_loses_and_doubles_nothing(tmp_path, seed):
    path = tmp_path / "run.gviz"
    done = run(STORM, path, seed)
    assert (done.returncode, done.stderr) == (0, "")
    made, stopped = map(int, done.stdout.split())
    assert os.listdir(tmp_path) == ["run.gviz"]
    with open_trace(path) as log:
        assert log.finished
        assert log.index() is not None
        assert made <= operations(log) <= made + stopped  # said, but not counted when the exception came
        assert [seq for seq, _ in log.select(1, len(log) + 1, range(len(e.KINDS)))] == list(range(1, len(log) + 1))
        freed = log.select(1, len(log) + 1, [KIND_NUMBERS[e.NodeFreed]])
        nodes = [event.node for _, event in freed]
        assert len(nodes) == len(set(nodes)) >= made - stopped - 1


@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.35])
def test_ctrl_c_ends_a_recording_that_says_so(tmp_path, seconds):
    path = tmp_path / "run.gviz"
    done = run(CTRL_C, path, seconds)
    assert done.returncode == -signal.SIGINT
    assert "Exception ignored" not in done.stderr
    with open_trace(path) as log:
        timeline = Timeline(log)
        assert log.finished
        assert timeline.failures == (len(log),)
        assert log.event(len(log)).error == "KeyboardInterrupt"
