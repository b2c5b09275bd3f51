"""What nan and inf mean: as moments, in searches and questions, as reasons to stop, in boxes and statistics."""

import pytest
from driving import transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.query.moments import event_at, remark
from gviz.render.boxes.graph_structure import structure
from gviz.render.scene import scene

BORN, BECAME = 2, 5


@pytest.fixture(scope="module", params=["inf", "nan"])
def word(request):
    return request.param


def recorded(last):
    """A recording with an infinity, which becomes nan if that is `last`."""

    def program():
        x = torch.tensor([0.0, 2.0], requires_grad=True)
        y = 1 / x
        z = y - y if last == "nan" else y * 2
        return z.sum()

    return timeline_of(program)


def test_the_moment_nan_is_the_first_nan(word):
    timeline = recorded(word)
    assert event_at(timeline, "inf") == BORN == timeline.error_index.first_bad()
    at = event_at(timeline, "nan")
    assert at == (BORN if word == "inf" else BECAME)
    said = {"inf": "first inf: there is no nan", "nan": f"an infinity came before it: inf is event {BORN}"}
    assert remark(timeline, "nan") == said[word]
    assert not remark(timeline, "inf")


def test_it_is_where_break_on_nan_stops_first():
    timeline = recorded("nan")
    assert event_at(timeline, "on nan", 0) == event_at(timeline, "nan") == BECAME
    assert event_at(timeline, "on inf", 0) == event_at(timeline, "inf") == BORN


def test_every_command_says_which_it_is(word):
    said = transcript(
        recorded(word), "goto start", "continue", "find nan", "find inf", "why nan", "why inf", "info stats"
    )
    assert ("there is no nan: this is inf" in said) is (word == "inf")
    assert "nan or inf" not in said
    assert ("first inf at event 2, first nan at event 5" if word == "nan" else "first inf at event 2\n") in said
    assert said.count("the first inf appears in #2 reciprocal") == 2
    assert ("it became nan in #5" in said) is (word == "nan")


def test_a_box_says_inf_of_an_infinity(word):
    timeline = recorded(word)
    moment = timeline.at(len(timeline))
    drawn = scene(structure(timeline, timeline.iteration_at(moment.n)), timeline, moment)
    words = {box.node: box.status for box in drawn.boxes}
    assert words[2] == "! first inf"
    assert words[5 if word == "nan" else 6] == f"! {word}"
