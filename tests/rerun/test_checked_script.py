"""What is carried out for a script is arithmetic, whatever the recording says."""

import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from recording import events_of
from rerun.scripts import run

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.events import Named, NodeCreated, StackSeen
from gviz.rerun import checked_script
from gviz.rerun.change_parser import Change
from gviz.rerun.checked_script import ROOM, CheckedScript, isolated, limited_memory
from gviz.rerun.iteration import rerun_iteration
from gviz.rerun.reproduction_script import script
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline

HOSTILE = [
    "__import__('os').system('echo owned')",
    "x'''\"\"\"\nraise SystemExit(7)\n'''",
    "\r\nraise SystemExit(7)",
    "\N{LINE SEPARATOR}\x0craise SystemExit(7)",
    "print",
    "𝐩𝐫𝐢𝐧𝐭",
]


@pytest.mark.parametrize(
    "text",
    [
        "().__class__",
        "torch.tensor.__globals__",
        "torch._os",
        "[x for x in ()]",
        "lambda: 0",
        "f'{torch}'",
        "(x := 1)",
        "1 if torch else 2",
        "__import__('os')",
        "open('x')",
        "torch.tensor(1); 2",
        "9 ** 9223372036854775807",
        "-9 ** -(-9223372036854775807)",
        "torch.tensor(9 ** 9223372036854775807)",
    ],
)
def test_more_than_arithmetic_is_refused(text):
    with pytest.raises(GvizError):
        CheckedScript().result(text)


@pytest.mark.parametrize("statement", ["import os", "def f(): pass", "while 1: 1", "del torch", "raise ValueError"])
def test_statements_but_assignments_and_calls_are_refused(statement):
    with pytest.raises(GvizError):
        CheckedScript().do(statement)


def program():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.repeat(2, 2)
    y.sum().backward()


def told(change):
    """The recording of the program, other events in the place of each."""
    return Timeline(MemoryLog([other for event in events_of(program) for other in change(event)]))


@pytest.mark.parametrize("text", HOSTILE)
def test_names_paths_and_arguments_of_a_recording_are_text(text):
    def named(event):
        if isinstance(event, NodeCreated):
            return [event, Named(event.node, text)]
        if isinstance(event, StackSeen):
            frames = [msgspec.structs.replace(frame, path=text) for frame in event.frames]
            return [msgspec.structs.replace(event, frames=tuple(frames))]
        return [event]

    def argued(event):
        if isinstance(event, NodeCreated):
            return [msgspec.structs.replace(event, attrs=tuple((name, text) for name, _ in event.attrs))]
        return [event]

    timeline = told(argued)
    with pytest.raises(GvizError, match="no script gives #2"):
        script(timeline, len(timeline), 3)
    timeline = told(named)
    assert timeline.info(2).name == text
    code, said = run(script(timeline, len(timeline), 3), "gviz.engine")
    assert not code, said
    assert "owned" not in said.splitlines()


def test_an_absurd_size_is_refused_not_tried_for_ever():
    def change(event):
        large = (("repeats", (10**13, 1)),)
        return [msgspec.structs.replace(event, attrs=large) if getattr(event, "attrs", ()) else event]

    timeline = told(change)
    with pytest.raises(GvizError, match="no script gives #2"):
        script(timeline, len(timeline), 3)
    branch = rerun_iteration(timeline, timeline.iterations[0], [Change(1, 5)])
    assert (branch.stopped[0].node, branch.stopped[0].why.startswith("it failed: ")) == (2, True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere memory is not bounded")
def test_a_size_that_would_just_fit_is_refused_before_it_is_filled():
    def change(event):
        large = (("repeats", (15_000, 15_000)),)  # 1.8 GB
        return [msgspec.structs.replace(event, attrs=large) if getattr(event, "attrs", ()) else event]

    with isolated(), pytest.raises(GvizError, match="Unable to allocate"):
        CheckedScript().result("torch.ones(2).repeat(15_000, 15_000)")
    timeline = told(change)
    with pytest.raises(GvizError, match="no script gives #2"):
        script(timeline, len(timeline), 3)
    assert np.empty(ROOM + 1, np.uint8).size > ROOM  # afterwards it is as before


def test_where_nobody_says_what_is_taken_nothing_is_bounded(monkeypatch):
    monkeypatch.setattr(checked_script, "_STATM", Path("is not there"))
    with limited_memory(1):
        assert np.empty(ROOM, np.uint8).size == ROOM
