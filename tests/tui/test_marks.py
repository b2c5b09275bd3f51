"""Breakpoints are seen where they stop: in the graph, the tape and the source, and set with the mouse."""

import pytest
from driving import app_of
from stories import PATH, demo, iterations

from gviz.query_syntax.stop_condition import stop
from gviz.tui.breakpoints import Breakpoints, marked_lines, nodes_of_line
from gviz.tui.widgets.graph_canvas import GraphCanvas
from gviz.tui.widgets.source_panel import SourcePane
from gviz.tui.widgets.tape_panel import Tape


def rows_of(widget):
    return ["".join(part.text for part in widget.render_line(y)) for y in range(widget.size.height)]


def row_with(widget, text):
    return next(y for y, row in enumerate(rows_of(widget)) if text in row)


async def test_a_breakpoint_is_marked_in_graph_tape_and_source():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("b")
        await pilot.pause()
        screen = app.screen
        assert any("●[a = mul #3]" in row for row in rows_of(screen.query_one(GraphCanvas)))
        assert any(row.startswith("►●5 a = x * w") for row in rows_of(screen.query_one(SourcePane)))
        await pilot.press("9")
        await pilot.pause()
        assert rows_of(screen.query_one(Tape))[3].startswith("►●")
        await pilot.press("b", "v", "v")
        await pilot.pause()
        for panel in (GraphCanvas, Tape, SourcePane):
            rows = rows_of(screen.query_one(panel))
            assert rows
            assert not any("●" in row for row in rows)


async def test_in_ascii_the_mark_is_a_star():
    app = app_of(demo(), at=5, ascii=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("b")
        await pilot.pause()
        assert any("#*[a = mul #3]" in row for row in rows_of(app.screen.query_one(GraphCanvas)))
        assert any(row.startswith(">*5") for row in rows_of(app.screen.query_one(SourcePane)))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_click_in_the_gutter_sets_and_takes_away(size):
    app = app_of(demo(), at=5)
    async with app.run_test(size=size) as pilot:
        await pilot.press("1")
        await pilot.pause()
        pane = app.screen.query_one(SourcePane)
        y = row_with(pane, "b = x * a")
        await pilot.click(pane, offset=(2, y + 1))
        await pilot.pause()
        assert [one.stop.text for one in app.screen.cursor.breakpoints.listed] == ["demo.py:6"]
        assert rows_of(pane)[y].startswith(" ●")
        await pilot.click(pane, offset=(2, y + 1))
        await pilot.pause()
        assert not app.screen.cursor.breakpoints.listed


async def test_a_click_beside_a_line_that_makes_nothing_says_so():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.screen.query_one(SourcePane)
        await pilot.pause()
        await pilot.click(pane, offset=(1, row_with(pane, "print(") + 1))
        await pilot.pause()
        assert "never stops" in app.screen.remark


async def test_a_click_on_a_line_selects_what_it_made_and_a_double_click_runs_there():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.screen.query_one(SourcePane)
        await pilot.pause()
        y = row_with(pane, "b = x * a")
        await pilot.click(pane, offset=(12, y + 1))
        await pilot.pause()
        assert (app.screen.cursor.selected, app.screen.cursor.position) == (4, 5)
        await pilot.click(pane, offset=(12, row_with(pane, "b = x * a") + 1), times=2)
        await pilot.pause()
        timeline = app.screen.timeline
        assert app.screen.cursor.position == next(n for n in timeline.events_of(4) if n > 5)


def test_lines_that_breakpoints_mean():
    breakpoints = Breakpoints(demo())
    for text in ("#3", "mul", "demo.py:9", "other.py:3", "on nan"):
        breakpoints.add(stop(text))
    marked = marked_lines(breakpoints, PATH)
    assert {line: [one.number for one in ones] for line, ones in marked.items()} == {5: [1, 2], 6: [2], 9: [3]}
    breakpoints.listed[0].enabled = False
    assert [one.number for one in marked_lines(breakpoints, PATH)[5]] == [2]


def test_the_nodes_of_a_line_are_those_of_the_iteration():
    timeline = iterations(3)
    last = timeline.iterations[-1]
    (node,) = nodes_of_line(timeline, last.end, PATH, 5)
    assert timeline.info(node).iteration == last.index
