"""The picture of the debugger at the sizes people have; some show lines of this file, and their numbers.
`--snapshot-update` rewrites them, on purpose only."""

from functools import partial

import pytest
from driving import app_of
from recording import timeline_of
from stories import demo, failed, iterations


@pytest.fixture
def looks_alike(snap_compare, monkeypatch):
    """Compares the screen after some keys; nothing blinks or moves by itself."""
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def compare(timeline, size, *keys, ascii=False, theme=None):
        app = app_of(timeline, ascii=ascii, theme=theme)
        return snap_compare(app, press=keys, terminal_size=size)

    return compare


def test_forward_80x24(looks_alike):
    """Tape, node with its formula and local derivatives, source with the expression marked."""
    assert looks_alike(demo(), (80, 24), *"nnn")


def test_backward_80x24(looks_alike):
    """b's rule has run: -6 went to x, 3 met 1 at a."""
    assert looks_alike(demo(), (80, 24), *"nnnnnn")


def test_forward_120x40(looks_alike):
    """The whole graph, with what is not made yet dashed."""
    assert looks_alike(demo(), (120, 40), *"nnn")


def test_backward_120x40(looks_alike):
    """The graph with gradients, and the output printed so far."""
    assert looks_alike(demo(), (120, 40), *"nnnnnn")


def test_backward_200x60(looks_alike):
    """Graph over tape over source, node over output."""
    assert looks_alike(demo(), (200, 60), *"nnnnnn")


def test_failure_120x40(looks_alike):
    """The error first, its cause and remedy, the node in red."""
    assert looks_alike(failed(), (120, 40))


def test_failure_80x24(looks_alike):
    """The same where there is less room."""
    assert looks_alike(failed(), (80, 24))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_accumulation(looks_alike, size):
    """The second pass adds to what .grad held."""
    assert looks_alike(iterations(2), size, *">S")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_watches_and_breakpoints(looks_alike, size):
    """What is watched with its values, and a breakpoint with its mark."""
    assert looks_alike(demo(), size, *"nnnbwx.grad", "enter", *"nnnn", "2")


def test_ascii_80x24(looks_alike):
    """Nothing but ASCII."""
    assert looks_alike(failed(), (80, 24), ascii=True)


def test_no_colour_80x24(looks_alike, monkeypatch):
    """States keep their words, marks and line styles."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert looks_alike(demo(), (80, 24), *"nnnnnn")


def test_help_80x24(looks_alike):
    """Every key on one screen."""
    assert looks_alike(demo(), (80, 24), "question_mark")


@pytest.mark.parametrize("theme", ["light", "contrast", "cs231n", "mono"])
def test_themes_80x24(looks_alike, theme):
    """The same words, marks and lines in other colours."""
    assert looks_alike(demo(), (80, 24), *"nnnnnn", theme=theme)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_a_freed_graph(looks_alike, size):
    """The pass is over: what was saved is released, leaves keep their gradient."""
    assert looks_alike(demo(), size, "greater_than_sign", *"kk")


NAN = """\
import gviz.engine as torch
x = torch.tensor([-1.0, 4.0], requires_grad=True)
(torch.log(x) * x).sum().backward()
"""


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_nan(looks_alike, size):
    """Where it was born, in words, and every node it has reached."""
    program = compile(NAN, "nan.py", "exec")
    assert looks_alike(timeline_of(partial(exec, program, {})), size, "c", "n")


@pytest.mark.parametrize("size", [(39, 12), (50, 14), (70, 50)])
def test_small_and_portrait(looks_alike, size):
    """Too small for anything, one panel, panels on top of each other."""
    assert looks_alike(demo(), size, *"nnnn")
