"""What an optimizer computes in its step is one box and one step of `next`, until somebody opens it."""

import pytest
from driving import app_of, transcript
from recording import timeline_of

import gviz.engine as torch
from gviz.engine import nn
from gviz.events import NodeCreated, OptimizerStarted, OptimizerStepped
from gviz.explain.source_frames import frame_text
from gviz.render.boxes.drawn_nodes import shown_ends
from gviz.render.boxes.graph_structure import structure
from gviz.render.page.page_data import moves
from gviz.trace.graph_state import OPTIMIZER
from gviz.tui.drawing.iterations_and_passes import pass_rows
from gviz.tui.glyphs import glyphs
from gviz.tui.graph_view import Folds
from gviz.tui.widgets._graph_drawings import Drawings
from gviz.tui.widgets.graph_canvas import GraphCanvas

STEPS = 3


@pytest.fixture(scope="module")
def timeline():
    def train():
        net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        x = torch.randn(4, 2)
        for _ in range(STEPS):
            optimizer.zero_grad()
            (net(x) ** 2).mean().backward()
            optimizer.step()

    return timeline_of(train)


def started(timeline):
    return [n for n, _ in timeline.select([OptimizerStarted])]


def stepped(timeline):
    return [n for n, _ in timeline.select([OptimizerStepped])]


def inner(timeline, step):
    """The nodes made in the phase that ends with a step of an optimizer."""
    start, end = started(timeline)[step], stepped(timeline)[step]
    return {node for node in timeline.nodes if start <= timeline.info(node).born < end}


def test_each_step_belongs_to_the_iteration_of_its_pass_the_first_too(timeline):
    assert len(timeline.iterations) == STEPS
    for iteration, step in zip(timeline.iterations, stepped(timeline), strict=True):
        assert iteration.start < step <= iteration.end


def test_a_moving_picture_stops_at_no_arithmetic_inside_a_step(timeline):
    shown = {timeline.event(n).node for n in shown_ends(timeline, 1, len(timeline)) if made(timeline, n)}
    computed = set().union(*(inner(timeline, step) for step in range(STEPS)))
    assert shown
    assert computed
    assert not shown & computed


def made(timeline, n):
    return isinstance(timeline.event(n), NodeCreated)


def test_the_step_is_one_box_without_lines(timeline):
    folds = Folds(timeline)
    drawings = Drawings(timeline, folds, glyphs(ascii=False))
    for at, iteration in enumerate(timeline.iterations):
        shape = drawings.get(drawings.shown(iteration.end, 0)).shape
        (box,) = [place for place in shape.places if place.group is not None]
        assert box.title == "[+] optimizer step Adam"
        assert inner(timeline, at) <= set(box.group.inner)
        assert not [link for link in shape.links if box.key in (link.source, link.target)]


def test_one_next_goes_through_the_whole_step_and_one_back(timeline):
    folds = Folds(timeline)
    before = max(end for end in timeline.contexts.node_ends if end < started(timeline)[1])
    after = folds.next_node(timeline, before)
    assert after == stepped(timeline)[1]
    assert folds.reverse_next_node(timeline, after) == before


def test_a_page_goes_through_it_at_once_too(timeline):
    for at, iteration in enumerate(timeline.iterations):
        nodes = moves(timeline, iteration.start - 1, iteration.end).nodes
        assert [n for n in nodes if started(timeline)[at] < n <= stepped(timeline)[at]] == [stepped(timeline)[at]]


def test_the_chooser_says_whose_step_it_is(timeline):
    rows = [text for text, _, _ in pass_rows(timeline, 1) if "optimizer" in text]
    assert len(rows) == STEPS
    assert all(", Adam" in row for row in rows)


def test_where_tells_the_call_of_the_step(timeline):
    said = transcript(timeline, f"goto @{started(timeline)[0]}", "where", at=1)
    frame = timeline.stack(timeline.event(started(timeline)[0]).stack)[0]
    assert f"the program is at {frame_text(frame)}\n" in said


def test_opened_it_is_all_nodes_and_closed_again_one_box(timeline):
    step = stepped(timeline)[-1]
    said = transcript(timeline, f"goto @{step}", "open all", "close optimizer step", at=1).splitlines()
    boxes = [
        int(line.split(": ")[1].split(" ")[0]) for line in said if " is expanded" in line or " is collapsed" in line
    ]
    assert boxes[0] - boxes[1] >= len(inner(timeline, STEPS - 1)) - 1  # older state is in the box too


def test_a_closed_module_keeps_its_parameters_although_the_optimizer_uses_them(timeline):
    folds = Folds(timeline)
    folds.collapse_all(timeline.iterations[0])
    folded = folds.folded(timeline.iterations[0])
    owned = {node for group in folded.groups for node in group.parameters}
    assert owned == {node for node in timeline.nodes if timeline.info(node).created.kind == "parameter"}


def test_a_picture_leaves_the_step_out_as_before(timeline):
    shape = structure(timeline, timeline.iterations[0])
    assert not inner(timeline, 0) & {node for place in shape.places for node in place.nodes}
    assert OPTIMIZER not in {place.title for place in shape.places}


async def test_the_box_of_a_step_that_is_over_is_drawn_when_something_else_is_selected(timeline):
    app = app_of(timeline, at=len(timeline))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        graph = app.screen.query_one(GraphCanvas)
        box = next(place for place in graph.drawing.shape.places if place.group is not None)
        graph.scroll_to(y=graph.drawing.canvas.layout.places[box.key].y, animate=False, force=True, immediate=True)
        await pilot.pause()
        rows = [graph.render_line(y).text for y in range(graph.size.height)]
    assert any("optimizer step Adam" in row for row in rows)
