"""Every lesson runs, prints and records what it did when it was written, and what PyTorch computes."""

import os
from importlib.metadata import version

import pytest
from cli.programs import ROOT
from samples.lessons import LESSONS, OURS_ALONE, docstring, log, outcome, recording, source, under_pytorch

GOLDEN = ROOT / "tests" / "samples" / "golden"
REFUSED = {
    "04_two_losses": "RuntimeError: Trying to backward through the graph a second time",
}
"""Lessons that end with an error on purpose."""

LATEST_WORDS = 2, 13
"""Since which release PyTorch says the lessons' errors in the words that the engine has."""


def in_older_words(text):
    """What the lessons print, where releases before differ: in the error about a value that was overwritten."""
    return text.replace("(True, check_nan=False)", "(True)").replace("AsStridedBackward0", "AsStrided")


each_lesson = pytest.mark.parametrize("name", LESSONS)


def check(file, text):
    """Compare with a golden file, or write it anew with GVIZ_WRITE_GOLDEN=1."""
    path = GOLDEN / file
    if os.environ.get("GVIZ_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@each_lesson
def test_golden_output(name):
    _, out, _ = outcome(name)
    check(f"{name}.out", out)


@each_lesson
def test_golden_log(name):
    check(f"{name}.log", "".join(f"{line}\n" for line in log(recording(name))))


@each_lesson
def test_ends_as_it_says(name):
    code, _, err = outcome(name)
    if name not in REFUSED:
        assert (code, err) == (0, "")
    else:
        assert code == 1
        assert err.splitlines()[-1].startswith(REFUSED[name])


@pytest.mark.torch
@pytest.mark.parametrize("name", [name for name in LESSONS if name not in OURS_ALONE])
def test_pytorch_prints_the_same(name):
    out, error = under_pytorch()[name]
    ours = outcome(name)[1]
    if tuple(map(int, version("torch").split(".")[:2])) < LATEST_WORDS:
        out, ours = in_older_words(out), in_older_words(ours)
    assert out == ours
    assert error == "".join(outcome(name)[2].splitlines()[-1:])


@each_lesson
def test_says_what_to_watch(name):
    title, blank, *text = docstring(name)
    assert title
    assert not title.endswith(".")
    assert not blank
    assert 3 <= len(text) <= 9
    assert max(map(len, source(name).splitlines())) <= 120
    assert max(map(len, [title, *text])) <= 79  # the source panel of a small terminal


@each_lesson
def test_graphs_can_be_taken_in_at_a_glance(name):
    timeline = recording(name)
    most = 60 if name == "10_recurrent_net" else 32
    assert all(len(timeline.nodes.of(iteration)) <= most for iteration in timeline.iterations)
    assert len(timeline) <= 400


def test_every_expected_text_belongs_to_a_lesson():
    assert {path.stem for path in GOLDEN.iterdir()} == set(LESSONS)


def test_numbers_count_up():
    assert [name[:2] for name in LESSONS] == [f"{number:02}" for number in range(1, len(LESSONS) + 1)]
