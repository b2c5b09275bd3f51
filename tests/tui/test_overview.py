"""The overview below a graph that is higher than its panel: where the view, the selection and the problems are."""

from driving import app_of
from recording import timeline_of

import gviz.engine as torch
from gviz.tui.drawing.overview import (
    Overview,
    cell_of,
    cut_nodes,
    graph_cells,
    marked_nodes,
    overview_line,
    placed_marks,
    row_of,
)
from gviz.tui.glyphs import ASCII, UNICODE
from gviz.tui.styled_lines import plain
from gviz.tui.widgets import graph_canvas
from gviz.tui.widgets.graph_canvas import GraphCanvas, GraphOverview


def chain():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    lost = torch.tensor([1.0, 1.0], requires_grad=True)
    h = x * 2
    for _ in range(6):
        h = h + 1
    cut = (h * lost).detach()
    bad = torch.log(cut - 100)
    h = h + cut
    loss = (h * h).sum() + (bad * 0).sum()
    loss.backward()


CHAIN = timeline_of(chain)
NODES = tuple(CHAIN.nodes)


def named(marks):
    return {
        mark: {CHAIN.info(node).name or CHAIN.info(node).op.name for node in nodes} for mark, nodes in marks.items()
    }


def row(overview, width=40, glyphs=UNICODE):
    return plain(overview_line(overview, width, glyphs))


def test_nan_cuts_and_leaves_without_a_gradient_are_found_at_the_end():
    marks = named(marked_nodes(CHAIN, CHAIN.at(len(CHAIN)), NODES, cut_nodes(CHAIN, NODES)))
    assert marks["missing"] == {"lost"}
    assert marks["cut"] == {"cut"}
    assert "bad" in marks["bad"]
    assert "loss" in marks["bad"]
    assert "x" not in marks["bad"]


def test_before_anything_happened_there_are_no_marks():
    start = CHAIN.at(2)
    marks = named(marked_nodes(CHAIN, start, NODES, cut_nodes(CHAIN, NODES)))
    assert not any(marks.values())


def test_a_cell_represents_rows_and_a_row_is_in_one_cell():
    for height, room in ((100, 30), (30, 100), (7, 7), (1, 5)):
        cells = [cell_of(at, height, room) for at in range(height)]
        assert cells == sorted(cells)
        assert 0 <= cells[0] <= cells[-1] < room
        for cell in {*cells}:
            assert cell_of(row_of(cell, height, room), height, room) == cell


def test_the_row_has_a_thick_line_in_view_and_the_marks_with_their_meaning():
    overview = Overview(100, range(0, 50), {"selected": (10,), "bad": (90,)})
    assert row(overview).startswith(" ━━")
    assert row(overview).count("━") + 1 == 19
    text = row(overview, 80)
    assert text.index("◆") < text.index("!")
    assert text.endswith("◆ selected  ! nan, inf ")
    assert len(text) == 80
    assert len(row(overview)) == 40
    assert "selected" not in row(overview)
    assert graph_cells(overview, 40, UNICODE) == 38


def test_the_most_important_mark_of_a_cell_is_shown():
    assert "◆" in row(Overview(100, range(5), {"bad": (50,), "selected": (50,)}))
    assert "!" in row(Overview(100, range(5), {"missing": (50,), "bad": (50,)}))


def test_another_mark_of_the_same_row_is_in_the_next_cell_if_that_is_free():
    both = Overview(100, range(5), {"bad": (50,), "cut": (50,)})
    assert "!x" in row(both)
    assert placed_marks(both, 38) == {19: ("bad", 50), 20: ("cut", 50)}
    assert placed_marks(Overview(9, range(5), {"selected": (8,), "bad": (8,), "cut": (8,)}), 4) == {
        3: ("selected", 8), 2: ("bad", 8)
    }  # fmt: skip


def test_it_has_ascii_characters_on_a_terminal_without_others():
    assert row(Overview(9, range(5), {"selected": (1,), "missing": (8,)}), 20, ASCII).isascii()


def overview_of(app):
    return app.screen.query_one(GraphOverview)


async def test_it_is_shown_below_a_graph_that_is_higher_than_its_panel():
    app = app_of(CHAIN, at=len(CHAIN))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0")
        await pilot.pause()
        assert overview_of(app).region.height == 1
        marks = overview_of(app).overview.marks
        assert marks["bad"]
        assert marks["cut"]
        assert marks["missing"]
        await pilot.press("9")
        await pilot.pause()
        assert overview_of(app).region.height == 0


async def test_it_is_hidden_where_the_whole_graph_is_in_view():
    small = timeline_of(lambda: (torch.tensor(1.0, requires_grad=True) * 2).backward())
    app = app_of(small, at=len(small))
    async with app.run_test(size=(80, 50)) as pilot:
        await pilot.press("0")
        await pilot.pause()
        assert overview_of(app).region.height == 0


async def test_a_low_panel_keeps_its_rows_for_the_graph():
    app = app_of(CHAIN, at=len(CHAIN))
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.press("0")
        await pilot.pause()
        assert app.screen.query_one("#graph").region.height > 0
        assert overview_of(app).region.height == 0


async def test_it_follows_the_view_and_the_selection():
    app = app_of(CHAIN, at=len(CHAIN))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0", "g")
        await pilot.pause()
        first = overview_of(app).overview
        await pilot.press("G")
        await pilot.pause()
        last = overview_of(app).overview
        assert first.view.start < last.view.start
        assert first.marks["selected"] < last.marks["selected"]
        assert last.view.stop == last.height


async def test_a_click_selects_the_marked_node():
    app = app_of(CHAIN, at=len(CHAIN))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0", "G")
        await pilot.pause()
        widget = overview_of(app)
        (cut,) = widget.overview.marks["cut"]
        room = graph_cells(widget.overview, widget.size.width, UNICODE)
        await pilot.click(GraphOverview, offset=(1 + cell_of(cut, widget.overview.height, room), 0))
        await pilot.pause()
        assert app.screen.cursor.selected in {node for node in NODES if CHAIN.info(node).name == "cut"}


async def test_a_large_graph_is_marked_once_time_no_longer_moves(monkeypatch):
    monkeypatch.setattr(graph_canvas, "FEW_NODES", 1)
    app = app_of(CHAIN, at=len(CHAIN))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0")
        await pilot.pause()
        await pilot.pause(0.4)
        assert overview_of(app).overview.marks["bad"]
        monkeypatch.setattr(graph_canvas, "MOST_NODES", 2)
        canvas = app.screen.query_one(GraphCanvas)
        await pilot.press("<")
        await pilot.pause(0.4)
        assert canvas._marked[1] == len(CHAIN)
