"""Programs with nothing wrong in them: the check says nothing false, and what it only suspects it says so."""

import pytest
from explain.programs import HERE, recorded
from samples.lessons import LESSONS, recording

from gviz.explain.check import check
from gviz.explain.why import why

PROGRAMS = sorted(path.stem for path in (HERE / "healthy").glob("*.py"))
MISTAKES_SHOWN = {
    "04_two_losses": {"second-backward"},
    "08_in_place": {"changed-in-place"},
    "11_nan_in_backward": {"nan-born-backward"},
    "12_vanishing_gradients": {"vanishing"},
    "19_forgotten_zero_grad": {"not-cleared"},
    "20_cut_in_the_wrong_place": {"cut", "not-reached"},
}
"""The mistakes that a lesson shows on purpose."""


def found(timeline):
    return [(one.level, one.finding.kind) for one in check(timeline)]


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_healthy_program_is_healthy(name, engine):
    timeline = recorded("healthy", name, engine)
    assert not timeline.failures
    assert found(timeline) == []


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_shows_what_it_means_to_show(name):
    assert {kind for _, kind in found(recording(name))} == MISTAKES_SHOWN.get(name, set())


@pytest.mark.parametrize("engine", ["builtin", pytest.param("torch", marks=pytest.mark.torch)])
@pytest.mark.parametrize(
    ("name", "line"),
    [("0.weight", ":7: net[0].requires_grad_(False)"), ("2.bias", ":8: net[2].bias.requires_grad = False")],
)
def test_the_line_that_froze_a_parameter_is_named(name, line, engine):
    timeline = recorded("healthy", "frozen_by_lines", engine)
    (node,) = [node for node in timeline.nodes if timeline.info(node).name == name]
    found = why(timeline, timeline.at(len(timeline)), node, "grad")
    assert found.kind == "requires-none"
    assert timeline.info(node).created.kind == "parameter"
    assert [part.text for part in found.parts] == [f"requires_grad was set to False at frozen_by_lines.py{line}"]
