"""Infinities that a program puts where they are, as the mask of an attention, are no trouble; all others are."""

import pytest
from driving import transcript
from recording import timeline_of

import gviz
import gviz.engine as torch
from gviz.query.moments import event_at
from gviz.render.boxes.graph_structure import structure
from gviz.render.scene import scene
from gviz.trace.recording.record import Kept, record

INF = float("inf")


def added(x):
    return torch.softmax(x + torch.full((3, 3), -INF).triu(1), 1)


def filled(x):
    return torch.softmax(x.masked_fill(torch.ones(3, 3).triu(1) == 1, -INF) * 0.5, 1)


def written(x):
    scores = x * 2
    scores[0, 1] = -INF
    return torch.softmax(scores, 1)[1:]


def filled_in_place(x):
    mask = torch.zeros(3, 3)
    mask.masked_fill_(torch.ones(3, 3).triu(1) == 1, -INF)
    return torch.softmax(x + mask, 1)


def filled_by_an_index(x):
    mask = torch.zeros(3, 3)
    mask[torch.ones(3, 3).triu(1) == 1] = -INF
    return torch.softmax((x + mask) * 2, 1)


MASKS = [added, filled, written, filled_in_place, filled_by_an_index]


@pytest.mark.parametrize("masked", MASKS)
def test_a_mask_is_no_trouble(masked):
    timeline = timeline_of(lambda: masked(torch.ones(3, 3, requires_grad=True)).sum().backward())
    assert timeline.error_index.first_bad() == 0
    assert timeline.error_index.first("nan") == 0
    assert "-inf" in str(timeline.event(event_at(timeline, "inf")).outputs[0].value.array())
    assert "end of recording" in transcript(timeline, "continue")


def boxes(timeline):
    moment = timeline.at(len(timeline))
    return scene(structure(timeline, timeline.iteration_at(moment.n)), timeline, moment).boxes


@pytest.mark.parametrize("masked", MASKS)
def test_its_boxes_are_none_of_an_error(masked):
    drawn = boxes(timeline_of(lambda: masked(torch.ones(3, 3, requires_grad=True)).sum().backward()))
    assert not any({"inf", "error"} & {*box.states} for box in drawn)
    rows = [row for box in drawn for row in box.rows]
    assert not any(row.style == "bad" or "!" in row.text for row in rows)
    texts = [row.text for row in rows] + [number for row in rows for line in row.grid for number in line]
    assert any("-inf" in text for text in texts)
    spoiled = boxes(timeline_of(lambda: of_an_operation(torch.ones(3, 3, requires_grad=True)).sum()))
    assert {"inf", "error"} <= {state for box in spoiled for state in box.states}


def of_all_rows(x):
    return torch.softmax(x + torch.full((3, 3), -INF), 1)


def of_a_sum(x):
    return (x + torch.full((3, 3), -INF).triu(1)).sum(1)


def of_data(x):
    return torch.nn.functional.linear(torch.tensor([[1.0, INF, 2.0], [1.0, 2.0, 3.0]]), x)


def of_an_operation(x):
    return torch.log(x - 1)


def of_a_gradient(x):
    return torch.sqrt(x - 1)


@pytest.mark.parametrize(
    ("program", "spoiled"),
    [(of_all_rows, "add"), (of_a_sum, "sum"), (of_data, "mm"), (of_an_operation, "log"), (of_a_gradient, "sub")],
)
def test_what_becomes_infinite_altogether_or_elsewhere_is(program, spoiled):
    timeline = timeline_of(lambda: program(torch.ones(3, 3, requires_grad=True)).sum().backward())
    event = timeline.event(timeline.error_index.first_bad())
    assert timeline.info(event.node).op.name == spoiled


def test_a_trace_on_disk_knows_it_too(tmp_path):
    for name, program in (("masked", filled), ("spoiled", of_an_operation)):
        with gviz.record(tmp_path / f"{name}.gviz"):
            program(torch.ones(3, 3, requires_grad=True)).sum().backward()
    masked, spoiled = (gviz.load(tmp_path / f"{name}.gviz") for name in ("masked", "spoiled"))
    assert masked.error_index.first_bad() == 0
    assert spoiled.info(spoiled.event(spoiled.error_index.first_bad()).node).op.name == "log"


def test_a_recording_that_is_to_end_with_an_infinity_goes_on_beyond_a_mask(tmp_path):
    with record(tmp_path / "t.gviz", Kept(until="inf")):
        x = torch.ones(3, 3, requires_grad=True)
        filled(x)
        of_an_operation(x)
        x * 2
    timeline = gviz.load(tmp_path / "t.gviz")
    assert timeline.info(timeline.event(len(timeline)).node).op.name == "log"
