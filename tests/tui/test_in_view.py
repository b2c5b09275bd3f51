"""Where the view of a graph goes."""

import pytest
from driving import app_of
from explain.programs import recorded_text
from hypothesis import given
from hypothesis import strategies as st
from stories import Story, demo
from textual.geometry import Region, Size

from gviz.events import GradFlowed
from gviz.tui.widgets.graph_canvas import GraphCanvas, scroll_target

VIEW = Region(0, 0, 40, 12)
CANVAS = Size(300, 300)
NUMBERS = st.integers(0, 200)
BOXES = st.builds(Region, NUMBERS, NUMBERS, st.integers(3, 30), st.integers(2, 8))


def moved(view, to):
    return view if to is None else Region(*to, *view.size)


@given(box=BOXES, others=st.lists(BOXES, max_size=3))
def test_the_box_is_always_seen_and_the_nearest_other_end_where_there_is_room(box, others):
    view = moved(VIEW, scroll_target(VIEW, CANVAS, box, others))
    assert view.contains_region(box)
    if others and all(
        (both := box.union(other)).width <= VIEW.width and both.height <= VIEW.height for other in others
    ):
        assert any(view.contains_region(other) for other in others)


@given(box=BOXES, linked=st.lists(BOXES, min_size=1, max_size=3))
def test_a_view_that_moves_takes_in_a_linked_box_where_there_is_room_and_only_then(box, linked):
    to = scroll_target(VIEW, CANVAS, box, [], [box, *linked], linked)
    assert moved(VIEW, to).contains_region(box)
    assert to is None or not VIEW.contains_region(box)
    small = all((both := box.union(other)).width <= VIEW.width and both.height <= VIEW.height for other in linked)
    if small and to is not None:
        assert any(moved(VIEW, to).contains_region(other) for other in linked)


@given(box=BOXES, around=st.lists(BOXES, max_size=5))
def test_the_box_is_seen_whatever_is_around_it(box, around):
    assert moved(VIEW, scroll_target(VIEW, CANVAS, box, [], [box, *around])).contains_region(box)


def test_no_box_is_cut_where_a_little_scrolling_shows_it_whole():
    row = [Region(x, 40, 18, 4) for x in (0, 20, 40, 60)]
    view = moved(VIEW, scroll_target(VIEW, CANVAS, row[2], [], row))
    seen = [view.intersection(box) for box in row if view.overlaps(box)]
    assert len(seen) == 2
    assert set(seen) <= set(row), "in the middle both neighbours would be cut"


def test_of_two_boxes_beside_each_other_that_cannot_both_be_whole_none_loses_its_name():
    pair = [Region(0, 40, 24, 4), Region(26, 40, 30, 4)]
    assert scroll_target(VIEW, CANVAS, pair[0], [], pair).x == 0
    box = pair[1]
    x = scroll_target(VIEW, CANVAS, box, [], pair).x
    assert x >= pair[0].right, "the other one is out of view rather than cut at its name"


def test_a_view_that_moves_goes_where_most_boxes_are():
    column = [Region(0, y, 18, 4) for y in (40, 45)]
    alone = Region(20, 40, 18, 4)
    to = scroll_target(Region(100, 0, 40, 12), CANVAS, alone, [], [alone, *column])
    assert all(Region(*to, 40, 12).contains_region(box) for box in (alone, *column))


def test_what_a_box_was_made_of_is_seen_rather_than_more_boxes_that_are_yet_to_come():
    box, before = Region(0, 40, 18, 4), [Region(0, 34, 18, 4)]
    ahead = [Region(x, 46, 12, 4) for x in (0, 14)]
    to = scroll_target(Region(100, 0, 40, 11), CANVAS, box, [], [box, *before, *ahead], before, ahead)
    assert Region(*to, 40, 11).contains_region(before[0])


@given(box=BOXES)
def test_a_box_in_view_moves_nothing(box):
    view = Region(box.x, box.y, box.width + 4, box.height + 4)
    assert scroll_target(view, CANVAS, box) is None


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_both_ends_of_the_line_a_gradient_comes_over_are_in_view(size):
    timeline = demo()
    app = app_of(timeline, at=1)
    async with app.run_test(size=size) as pilot:
        await pilot.press("0", "z")
        graph = app.screen.query_one(GraphCanvas)
        for n in range(1, len(timeline) + 1):
            event = timeline.event(n)
            if isinstance(event, GradFlowed):
                app.screen.run_line(f"goto @{n}")
                await pilot.pause()
                ends = [graph.place(node) for node in (event.source, event.node)]
                boxes = [Region(end.x, end.y, end.width, end.height) for end in ends]
                room = graph.view.size
                both = boxes[0].union(boxes[1])
                if both.height <= room.height and both.width <= room.width:
                    top, bottom = graph.view.y, graph.view.bottom
                    assert all(top <= box.y and box.bottom <= bottom for box in boxes)


def two_long_iterations():
    story = Story()
    x = y = story.leaf("x", 1.0, 3)
    for nr in (1, 2):
        for _ in range(20):
            y = story.mul("", y, x, 5)
        story.backward(y, 9, nr)
        y = x
    return story.timeline()


async def test_where_an_event_concerns_no_node_the_selected_one_is_in_view():
    """Also in another picture, as where a program runs on to the end of a later pass."""
    timeline = two_long_iterations()
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("greater_than_sign")
        await pilot.pause()
        graph = app.screen.query_one(GraphCanvas)
        assert app.screen.moment.actor == 0
        place = graph.place(app.screen.selected)  # the loss of the last pass
        assert graph.view.contains_region(Region(place.x + graph.margin, place.y, place.width, place.height))


async def test_only_the_rows_of_a_long_expression_are_scrolled(tmp_path):
    program = """
import gviz.engine as torch
a_rather_long_name_of_a_leaf = torch.ones(3, requires_grad=True)
loss = a_rather_long_name_of_a_leaf.sin().sum() + a_rather_long_name_of_a_leaf.cos().sum() + torch.exp(torch.ones(1))
loss.backward()
"""
    timeline = recorded_text(program, tmp_path)
    node = next(node for node in timeline.nodes if timeline.info(node).op.name == "exp")
    app = app_of(timeline, at=timeline.info(node).born)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        panel = app.screen.query_one("#source")
        rows = ["".join(part.text for part in panel.render_line(y)) for y in range(panel.size.height)]
        assert any("torch.exp(torch.ones(1))" in row for row in rows)
        assert any("import gviz.engine" in row for row in rows)
        panel.scroll_to(x=2, animate=False, force=True, immediate=True)
        rows = ["".join(part.text for part in panel.render_line(y)) for y in range(panel.size.height)]
        assert not any("import gviz.engine" in row for row in rows), "the reader scrolls all rows"
