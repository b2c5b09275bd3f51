"""The graph canvas in a small application: selection, following, panning, and what is painted anew."""

import pytest
from driving import app_of
from render.logs import LOGS, Script, two_shares
from stories import chain, demo
from textual.app import App
from textual.messages import Update

from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui.app import ScreenApp
from gviz.tui.glyphs import ASCII, UNICODE
from gviz.tui.themes import semantic_colours
from gviz.tui.widgets.graph_canvas import GraphCanvas


class Stage(App):
    """The canvas alone; keeps what it says."""

    COMPONENT_CLASSES = ScreenApp.COMPONENT_CLASSES

    def __init__(self, timeline, glyphs=UNICODE):
        super().__init__()
        self.timeline, self.glyphs, self.said = timeline, glyphs, []

    def get_theme_variable_defaults(self):
        return dict(semantic_colours(dark=True))

    def compose(self):
        yield GraphCanvas(self.timeline, self.glyphs)

    def on_mount(self):
        self.graph.focus()

    @property
    def graph(self):
        return self.query_one(GraphCanvas)

    def go(self, n):
        self.graph.moment = self.timeline.at(n)

    def on_node_pointed(self, message):
        self.said.append((message.node, message.run))

    def on_pressed(self, message):
        self.said.append((message.node, False))

    def rows(self):
        height = self.graph.size.height
        return ["".join(segment.text for segment in self.graph.render_line(y)) for y in range(height)]


def tall(blocks=60):
    s = Script()
    h = s.leaf("x", 1.0)
    for _ in range(blocks):
        h = s.op("sin", (h,), 0.5)
    return s.timeline


def place_of(app, node):
    """Where the box of a node stands in the panel's own columns."""
    place = app.graph.place(node)
    return place._replace(x=place.x + app.graph.margin)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("name", LOGS)
async def test_every_moment_of_every_log_can_be_shown(name, glyphs):
    app = Stage(LOGS[name]().timeline, glyphs)
    async with app.run_test(size=(80, 24)) as pilot:
        for n in range(len(app.timeline) + 1):
            app.go(n)
            await pilot.pause()
            assert all(len(row) >= 80 for row in app.rows())
        assert any("#1" in row for row in app.rows()) or app.graph.scroll_offset.y


async def test_the_box_the_moment_concerns_is_always_in_view():
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        for n in [*range(1, len(app.timeline), 7), 2]:
            app.go(n)
            await pilot.pause()
            node = app.timeline.at(n).node
            assert any(f"sin #{node} " in row or (" x " in row and node == 1) for row in app.rows())


async def test_the_view_stays_while_the_box_is_in_it():
    app = Stage(tall())
    async with app.run_test(size=(60, 40)) as pilot:
        app.go(20)
        await pilot.pause()
        before = app.graph.scroll_offset
        app.go(19)
        await pilot.pause()
        assert app.graph.scroll_offset == before


async def test_a_step_repaints_only_the_rows_that_look_different(monkeypatch):
    app = Stage(two_shares().timeline)
    async with app.run_test(size=(100, 40)) as pilot:
        app.go(2)
        await pilot.pause()
        painted = []
        refresh = GraphCanvas.refresh
        monkeypatch.setattr(
            GraphCanvas,
            "refresh",
            lambda self, *regions, **o: (painted.extend(regions), refresh(self, *regions, **o))[1],
        )
        app.go(3)
        await pilot.pause()
        boxes = [place_of(app, app.timeline.at(n).node) for n in (2, 3)]
        rows = {region.y for region in painted}
        assert rows
        assert len(rows) <= sum(place.height + 3 for place in boxes)
        painted.clear()
        app.go(3)
        await pilot.pause()
        assert painted == []


async def test_a_click_points_at_the_node_and_a_double_click_runs_to_it():
    app = Stage(two_shares().timeline)
    async with app.run_test(size=(100, 40)) as pilot:
        app.go(3)
        await pilot.pause()
        place = place_of(app, 3)
        assert app.rows()[place.y][place.x :].startswith("┌ a = mul #3 ")
        await pilot.click(GraphCanvas, offset=(place.x + 2, place.y + 1))
        await pilot.pause()
        assert app.said == [(3, False)]
        await pilot.click(GraphCanvas, offset=(place.x + 2, place.y + 1), times=2)
        await pilot.pause()
        assert app.said[-1] == (3, True)
        app.said.clear()
        await pilot.click(GraphCanvas, offset=(place.right + 1, place.y - 1))
        assert app.said == [(0, False)], "the panel is pressed, and no node"


async def test_a_click_counts_from_what_is_scrolled_to():
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(len(app.timeline))
        await pilot.pause()
        node = app.timeline.at(len(app.timeline)).node
        place, scroll = place_of(app, node), app.graph.scroll_offset
        assert scroll.y > 0
        await pilot.click(GraphCanvas, offset=(place.x + 1 - scroll.x, place.y - scroll.y))
        assert app.said == [(node, False)]


async def test_the_selection_is_bracketed_and_comes_into_view():
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(len(app.timeline))
        app.graph.selected = 3
        await pilot.pause()
        assert any("[sin #3]" in row for row in app.rows())


async def test_a_box_that_was_out_of_view_comes_near_the_middle():
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(1)
        await pilot.pause()
        app.graph.selected = 30
        await pilot.pause()
        place = place_of(app, 30)
        middle = place.y + place.height // 2 - app.graph.scroll_offset.y
        assert abs(middle - app.graph.size.height // 2) <= 2
        assert app.graph.show_vertical_scrollbar


@pytest.mark.parametrize("change", ["scroll", "focus"])
async def test_the_scroll_bar_is_asked_for_with_its_panel_and_not_a_frame_later(change, monkeypatch):
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(1)
        await pilot.pause()
        app.graph.selected = 30
        await pilot.pause()
        asked = []
        monkeypatch.setattr(app.screen, "post_message", asked.append)
        if change == "scroll":
            app.graph.scroll_to(y=0, animate=False, force=True, immediate=True)
        else:
            app.graph.notify_style_update()
        await app.graph._flush_next_callbacks()
        monkeypatch.undo()
        assert app.graph.vertical_scrollbar in [message.widget for message in asked if isinstance(message, Update)]


async def test_a_drag_pans_from_where_it_was_pressed():
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(1)
        await pilot.pause()
        await pilot.mouse_down(GraphCanvas, offset=(5, 10))
        await pilot.pause()
        assert len(app.said) == 1, "the button went down"
        await pilot.hover(GraphCanvas, offset=(5, 4))
        await pilot.mouse_up(GraphCanvas, offset=(5, 4))
        await pilot.pause()
        assert app.graph.scroll_offset.y == 6
        assert len(app.said) == 1, "and nothing is selected where it comes up"


async def test_shift_and_arrows_pan():
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(1)
        await pilot.pause()
        await pilot.press("shift+down", "shift+down")
        assert app.graph.scroll_offset.y == 8
        await pilot.press("shift+up")
        assert app.graph.scroll_offset.y == 4


async def test_a_graph_that_is_cut_says_on_which_sides_there_is_more():
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(1)
        await pilot.pause()
        assert str(app.graph.border_subtitle) == "more below: Shift+arrows"
        await pilot.press("shift+down")
        assert str(app.graph.border_subtitle) == "more above, below: Shift+arrows"
        await pilot.resize_terminal(20, 20)
        await pilot.pause()
        assert str(app.graph.border_subtitle) == "more: Shift+arrows"  # no room for the sides
    app = Stage(tall(2))
    async with app.run_test(size=(60, 40)) as pilot:
        app.go(1)
        await pilot.pause()
        assert not app.graph.border_subtitle


async def test_left_and_right_select_the_box_beside():
    s = Script()
    x, w = s.leaf("x", 3.0), s.leaf("w", 2.0)
    s.op("mul", (x, w), 6.0)
    app = Stage(s.timeline)
    async with app.run_test(size=(100, 40)) as pilot:
        app.go(3)
        app.graph.selected = x
        await pilot.press("right")
        assert app.said == [(w, False)]
        await pilot.press("left")
        assert len(app.said) == 1
        app.graph.selected = w
        await pilot.press("left")
        assert app.said[-1] == (x, False)


async def test_a_new_theme_repaints_in_its_colours():
    app = Stage(two_shares().timeline)
    async with app.run_test(size=(100, 40)) as pilot:
        app.go(len(app.timeline))
        await pilot.pause()

        def colours():
            return {segment.style.color for y in range(20) for segment in app.graph.render_line(y)}

        before = colours()
        app.theme = "textual-light"
        await pilot.pause()
        assert colours() != before


async def test_nothing_to_show_is_said():
    app = Stage(Timeline(MemoryLog([])))
    async with app.run_test(size=(40, 10)) as pilot:
        app.go(0)
        await pilot.pause()
        assert [row.strip() for row in app.rows()] == ["no nodes were recorded", *[""] * 9]
        assert not app.graph.fits(80, 24)


async def test_it_knows_whether_it_fits():
    app = Stage(two_shares().timeline)
    async with app.run_test(size=(40, 10)) as pilot:
        app.go(1)
        await pilot.pause()
        assert app.graph.fits(100, 60)
        assert not app.graph.fits(20, 60)
        assert not app.graph.fits(100, 8)


async def test_a_large_graph_is_shown_in_parts_that_follow_the_moment(monkeypatch):
    monkeypatch.setattr("gviz.render.boxes.drawn_nodes.PART", 20)
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(1)
        await pilot.pause()
        assert app.graph.border_title == "0 Graph, part 1 of 4"
        first = app.graph.virtual_size
        app.go(len(app.timeline))
        await pilot.pause()
        assert app.graph.border_title == "0 Graph, part 4 of 4"
        assert any("sin #61 " in row for row in app.rows())
        app.go(1)
        await pilot.pause()
        assert app.graph.virtual_size == first


async def test_a_step_that_moves_the_selection_too_is_drawn_once(monkeypatch):
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(3)
        await pilot.pause()
        drawn = []
        renew = app.graph._renew
        monkeypatch.setattr(app.graph, "_renew", lambda: (drawn.append(app.graph.moment.n), renew()))
        app.go(4)
        app.graph.selected = 50
        await pilot.pause()
        assert drawn == [4]
        assert any("[sin #50]" in row for row in app.rows())


async def test_a_moment_that_leaves_the_selection_alone_is_followed():
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.graph.selected = 50
        app.go(3)
        await pilot.pause()
        node = app.timeline.at(3).actor
        assert any(f"#{node} " in row for row in app.rows())


async def test_a_graph_that_comes_on_the_screen_shows_the_selection_where_nothing_acts():
    app = app_of(chain(60), at=61, opening=("level nodes",))  # nothing acts before the first event
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("G", "less_than_sign", "v")
        await pilot.pause()
        canvas = app.screen.query_one(GraphCanvas)
        if not canvas.display:
            await pilot.press("v")
            await pilot.pause()
        rows = ["".join(segment.text for segment in canvas.render_line(y)) for y in range(canvas.size.height)]
        assert any(f"#{app.screen.selected}" in row for row in rows)


async def test_a_graph_that_gets_another_size_keeps_the_selection_in_view():
    app = Stage(tall())
    async with app.run_test(size=(60, 20)) as pilot:
        app.go(3)
        app.graph.selected = 50
        await pilot.pause()
        await pilot.resize_terminal(60, 12)
        await pilot.pause()
        assert any("[sin #50]" in row for row in app.rows())


async def test_a_small_graph_is_seen_whole_at_80x24_and_no_step_moves_a_box():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        graph = app.screen.query_one(GraphCanvas)
        layout = graph.drawing.canvas.layout
        assert graph.display
        assert layout.width <= graph.view.width
        assert layout.height <= graph.view.height
        for key in "nnnnnnnn":
            await pilot.press(key)
            await pilot.pause()
            assert graph.drawing.canvas.layout is layout
