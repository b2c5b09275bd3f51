"""The overview below a graph that is higher than its panel: where the view, the selection and the problems are."""

import contextlib

from driving import app_of, until
from recording import timeline_of

import gviz.engine as torch
from gviz.engine import nn
from gviz.tui.drawing.minimap import (
    Mark,
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
from gviz.tui.panel_choice import LEAST_GRAPH_ROWS
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


def marks(**rows):
    return {name: tuple(Mark(row, 1) for row in each) for name, each in rows.items()}


def row(overview, width=40, glyphs=UNICODE):
    return plain(overview_line(overview, width, glyphs))


def test_nan_cuts_and_leaves_without_a_gradient_are_found_at_the_end():
    marks = named(marked_nodes(CHAIN, CHAIN.at(len(CHAIN)), NODES, cut_nodes(CHAIN, NODES)))
    assert marks["missing"] == {"lost"}
    assert marks["cut"] == {"cut"}
    assert "bad" in marks["bad"]
    assert "loss" in marks["bad"]
    assert "x" not in marks["bad"]


def marks_of(program, n=len):
    timeline = timeline_of(program)
    found = marked_nodes(timeline, timeline.at(n(timeline)), [*timeline.nodes], ())
    return {
        mark: {timeline.info(node).name or timeline.info(node).op.name for node in nodes}
        for mark, nodes in found.items()
    }


def test_a_node_with_a_finite_value_and_an_infinite_gradient_is_marked():
    def program():
        x = torch.tensor(0.0, requires_grad=True)
        x.sqrt().backward()

    assert marks_of(program)["bad"] == {"x"}


def test_a_node_that_failed_is_marked():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x
        y.backward()
        with contextlib.suppress(RuntimeError):
            y.backward()

    assert marks_of(program)["bad"] == {"y"}


def test_infinities_that_the_program_writes_into_a_mask_are_not_marked_but_nan_is():
    def program(value):
        scores = torch.tensor([value, 1.0], requires_grad=True)
        masked = scores.masked_fill(torch.tensor([False, True]), float("-inf"))
        torch.softmax(masked, 0)

    assert "masked" not in marks_of(lambda: program(2.0))["bad"]
    assert "masked" in marks_of(lambda: program(float("nan")))["bad"]


def test_a_gradient_of_an_earlier_iteration_is_not_marked():
    def program():
        w = torch.tensor(0.0, requires_grad=True)
        for x in (0.0, 1.0):
            y = (w + x).sqrt()
            y.backward()
            w.grad = None

    def before_the_second_pass(timeline):
        return timeline.iterations[1].start + 2

    assert "w" in marks_of(program, lambda timeline: timeline.iterations[0].end - 1)["bad"]
    assert "w" not in marks_of(program, before_the_second_pass)["bad"]


def test_only_leaves_that_should_have_a_gradient_and_have_none_are_marked():
    def program():
        x, data = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0)
        frozen = torch.tensor(3.0, requires_grad=True)
        given = torch.tensor(4.0, requires_grad=True)
        parameter = nn.Parameter(torch.tensor(5.0))
        lost = (frozen + given + parameter).detach()
        y = x * data * lost
        given.grad = torch.tensor(1.0)
        frozen.requires_grad_(False)
        torch.autograd.grad(y, x)

    assert marks_of(program)["missing"] == {"parameter"}


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
        assert cell_of(height + 3, height, room) == room - 1  # a growing graph has room below its last row


def test_the_row_has_a_thick_line_in_view_and_the_marks_with_their_meaning():
    overview = Overview(100, range(0, 50), marks(selected=[10], bad=[90]))
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
    assert "◆" in row(Overview(100, range(5), marks(bad=[50], selected=[50])))
    assert "!" in row(Overview(100, range(5), marks(missing=[50], bad=[50])))


def test_another_mark_of_the_same_row_is_in_the_next_cell_if_that_is_free():
    both = Overview(100, range(5), marks(bad=[50], cut=[50]))
    assert "!x" in row(both)
    assert placed_marks(both, 38) == {19: ("bad", Mark(50, 1)), 20: ("cut", Mark(50, 1))}
    assert placed_marks(Overview(9, range(5), marks(selected=[8], bad=[8], cut=[8])), 4) == {
        3: ("selected", Mark(8, 1)), 2: ("bad", Mark(8, 1))
    }  # fmt: skip
    three = placed_marks(Overview(100, range(5), marks(selected=[50], bad=[50, 50], cut=[50])), 38)
    assert {at: name for at, (name, _) in three.items()} == {18: "cut", 19: "selected", 20: "bad"}


def test_equal_marks_of_one_row_share_a_cell():
    assert {*placed_marks(Overview(100, range(5), marks(bad=[50, 50])), 38)} == {19}


def test_it_has_ascii_characters_on_a_terminal_without_others():
    assert row(Overview(9, range(5), marks(selected=[1], missing=[8])), 20, ASCII).isascii()


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
        assert app.screen.query_one(GraphCanvas)._marked[0] is None, "no values were searched for a row that is hidden"


async def test_a_graph_that_fits_exactly_needs_no_overview_and_a_low_panel_has_no_room_for_one():
    def program():
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        for _ in range(3):
            x = x + 1
        x.sum().backward()

    timeline = timeline_of(program)
    app = app_of(timeline, at=len(timeline))
    seen = set()
    async with app.run_test(size=(80, 10)) as pilot:
        await pilot.press("0")
        for rows in range(10, 34):
            await pilot.resize_terminal(80, rows)
            await pilot.pause()
            canvas, is_shown = app.screen.query_one(GraphCanvas), overview_of(app).region.height == 1
            height, room = canvas.drawing.canvas.layout.height, canvas.outer_size.height - 2 + is_shown
            assert is_shown == (canvas.display and height > room >= LEAST_GRAPH_ROWS)
            seen.add("exact" if height == room else "low" if height > room and room < LEAST_GRAPH_ROWS else is_shown)
    assert seen == {"exact", "low", False, True}


async def test_values_are_searched_once_for_a_moment_and_not_for_moments_that_pass_quickly(monkeypatch):
    searches = []
    search = graph_canvas.marked_nodes
    monkeypatch.setattr(graph_canvas, "marked_nodes", lambda *args: searches.append(args[1].n) or search(*args))
    app = app_of(CHAIN, at=len(CHAIN))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0")
        await pilot.pause()
        canvas = app.screen.query_one(GraphCanvas)
        assert searches == [len(CHAIN)]
        canvas.scroll_to(y=0, animate=False)
        await pilot.pause()
        assert searches == [len(CHAIN)]
        monkeypatch.setattr(graph_canvas, "FEW_NODES", 1)
        monkeypatch.setattr(graph_canvas, "_STANDSTILL", 1.0)
        for n in range(len(CHAIN) - 3, len(CHAIN)):
            canvas.moment = CHAIN.at(n)
            await pilot.pause()
        await until(pilot, lambda: len(searches) > 1)
        assert searches == [len(CHAIN), len(CHAIN) - 1]


async def test_marks_of_another_drawing_are_not_shown(monkeypatch):
    app = app_of(CHAIN, at=len(CHAIN))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0")
        await pilot.pause()
        assert overview_of(app).overview.marks["bad"]
        monkeypatch.setattr(graph_canvas, "FEW_NODES", 1)
        monkeypatch.setattr(graph_canvas, "_STANDSTILL", 60)
        await pilot.press("V")
        await pilot.pause()
        assert "bad" not in overview_of(app).overview.marks


async def test_the_selected_node_is_not_marked_a_second_time_as_the_newest():
    n = next(n for n in range(1, len(CHAIN)) if CHAIN.at(n).actor == NODES[-1])
    app = app_of(CHAIN, at=n)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0")
        canvas = app.screen.query_one(GraphCanvas)
        for selected, now in ((NODES[-1], []), (NODES[-2], [NODES[-1]])):
            canvas.selected = selected
            await pilot.pause()
            marks = overview_of(app).overview.marks
            assert [mark.node for mark in marks["selected"]] == [selected]
            assert [mark.node for mark in marks["now"]] == now


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
        assert first.marks["selected"][0].row < last.marks["selected"][0].row
        assert last.view.stop == last.height


async def test_a_click_selects_the_marked_node_or_else_the_nearest():
    app = app_of(CHAIN, at=len(CHAIN))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0", "G")
        await pilot.pause()
        widget, canvas = overview_of(app), app.screen.query_one(GraphCanvas)
        room = graph_cells(widget.overview, widget.size.width, UNICODE)

        async def click(x):
            await pilot.click(GraphOverview, offset=(x, 0))
            await pilot.pause()
            return app.screen.cursor.selected

        for wanted in ("cut", "missing", "bad"):
            placed = placed_marks(widget.overview, room)
            at, node = next((at, mark.node) for at, (name, mark) in placed.items() if name == wanted)
            assert await click(1 + at) == node
        assert await click(0) == await click(1 + room) == node
        free = next(at for at in range(5, room) if at not in placed_marks(widget.overview, room))
        row, places = row_of(free, widget.overview.height, room), canvas.drawing.canvas.layout.places.values()
        middle = canvas.place(await click(1 + free))
        distances = [abs(place.y + place.height // 2 - row) for place in places]
        assert abs(middle.y + middle.height // 2 - row) == min(distances)


async def test_a_click_selects_the_marked_node_of_several_in_its_row():
    def program():
        x, y = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
        lost = torch.tensor(3.0, requires_grad=True)
        for _ in range(8):
            x = x + 1
        (x * y * lost.detach()).backward()

    timeline = timeline_of(program)
    app = app_of(timeline, at=len(timeline))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0", "g")
        await pilot.pause()
        widget, canvas = overview_of(app), app.screen.query_one(GraphCanvas)
        room = graph_cells(widget.overview, widget.size.width, UNICODE)
        at, mark = next(
            (at, mark) for at, (name, mark) in placed_marks(widget.overview, room).items() if name == "missing"
        )
        places = canvas.drawing.canvas.layout.places.values()
        assert sum(place.y + place.height // 2 == mark.row for place in places) > 1
        await pilot.click(GraphOverview, offset=(1 + at, 0))
        await pilot.pause()
        assert timeline.info(app.screen.cursor.selected).name == "lost"


async def test_cuts_of_each_iteration_are_marked():
    timeline = timeline_of(lambda: [chain() for _ in range(2)])
    assert len(timeline.iterations) == 2
    app = app_of(timeline, at=timeline.iterations[0].end)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("0")
        await pilot.pause()
        first = overview_of(app).overview.marks["cut"]
        app.screen.query_one(GraphCanvas).moment = timeline.at(len(timeline))
        await pilot.pause()
        assert {mark.node for mark in first} != {mark.node for mark in overview_of(app).overview.marks["cut"]} != set()


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
