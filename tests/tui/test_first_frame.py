"""What is painted first is what stays: panels do not jump into their places, and none of them is empty."""

import pytest
from driving import app_of
from recording import timeline_of
from stories import chain, demo, failed
from textual.app import App
from textual.content import Content

import gviz.engine as torch
from gviz.tui.app import DebuggerApp
from gviz.tui.session_options import SessionOptions, Title
from gviz.tui.widgets.graph_canvas import GraphCanvas
from gviz.tui.widgets.tape_panel import Tape

STORIES = {"small": demo, "long": lambda: chain(40), "failed": failed}


def kept(monkeypatch, of):
    """A list that gets `of` every row of every frame that goes to the terminal."""
    painted = []
    display = App._display

    def keep(app, screen, renderable):
        rows = [of(strip) for strip in screen._compositor.render_strips()]
        if not painted or painted[-1] != rows:
            painted.append(rows)
        display(app, screen, renderable)

    monkeypatch.setattr(App, "_display", keep)
    return painted


@pytest.fixture
def frames(monkeypatch):
    """Every frame, as text."""
    return kept(monkeypatch, lambda strip: "".join(part.text for part in strip))


@pytest.fixture
def styled_frames(monkeypatch):
    """Every frame with its styles: a scroll bar is blanks in two colours."""
    return kept(monkeypatch, lambda strip: [(part.text, str(part.style)) for part in strip])


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40), (50, 20), (84, 50)])
async def test_the_first_frame_is_the_last(styled_frames, story, size):
    app = app_of(STORIES[story]())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert styled_frames[0] == styled_frames[-1]


async def test_another_size_is_painted_in_its_own_arrangement_at_once(frames):
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for size in [(120, 40), (50, 20), (84, 50), (80, 24)]:
            seen = len(frames)
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert frames[seen:], "it is painted"
            assert frames[seen] == frames[-1], size


async def test_nothing_is_painted_within_a_batch_of_updates(frames):
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        seen = len(frames)
        with app.batch_update():
            app.screen.query_one("#status").display = False
            app.screen._refresh_layout()
            assert len(frames) == seen
        await pilot.pause()
        assert len(frames) > seen


async def test_a_graph_is_back_in_its_place_when_the_size_is():
    def program():
        linear = torch.nn.Linear(2, 1)
        torch.nn.init.constant_(linear.weight, 0.5)
        torch.nn.init.zeros_(linear.bias)
        state = torch.zeros(1, 1)
        for _ in range(5):
            state = linear(torch.cat([torch.ones(1, 1), state], 1))

    app = app_of(timeline_of(program), at=3)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        graph = app.screen.query_one("#graph")
        first = graph.scroll_offset
        for size in [(200, 60), (120, 40)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
        assert graph.scroll_offset == first


async def test_a_panel_that_comes_to_the_front_is_painted_as_it_is_now(frames):
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        for key in "214":
            await pilot.press("n", "0")
            await pilot.pause()
            seen = len(frames)
            await pilot.press(key)
            await pilot.pause()
            assert frames[seen] == frames[-1], key


async def test_a_press_moves_focus_and_selection_in_one_frame(styled_frames):
    app = app_of(chain(40), at=20)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        graph = app.screen.query_one(GraphCanvas)
        box, scrolled = graph.place(18), graph.scroll_offset
        at_box = (box.x + graph.margin + 4 - int(scrolled.x), box.y + 2 - int(scrolled.y))
        for panel, offset, selects in [
            (GraphCanvas, at_box, True),
            (Tape, (8, 6), True),
            (GraphCanvas, (70, 1), False),
        ]:
            seen, before = len(styled_frames), app.screen.cursor.selected
            await pilot.mouse_down(panel, offset=offset)
            await pilot.pause(0.1)
            await pilot.mouse_up(panel, offset=offset)
            await pilot.pause()
            assert app.focused is app.screen.query_one(panel)
            assert (app.screen.cursor.selected != before) is selects
            assert len(styled_frames) == seen + 1


@pytest.mark.parametrize("size", [(60, 16), (60, 18), (61, 24), (80, 23), (81, 24), (109, 31), (110, 32), (200, 60)])
@pytest.mark.parametrize("ascii", [False, True])
async def test_no_border_cuts_what_it_says(frames, size, ascii):
    app = DebuggerApp(chain(40), SessionOptions(Title("a_long_name.py"), at=20), ascii=ascii, theme=None)
    async with app.run_test(size=size) as pilot:
        await pilot.press("s", "S")
        for panel in app.screen.query(".-panel"):
            if panel.display and panel.outer_size:
                for said in (panel.border_title, panel.border_subtitle):
                    assert Content.from_markup(said or "").cell_length <= panel.outer_size.width - 4, panel.id
        assert not ascii or all(row.isascii() for row in frames[-1])


async def test_a_graph_that_would_be_a_strip_has_the_rows_of_the_source():
    app = app_of(chain(40))
    async with app.run_test(size=(60, 18)) as pilot:
        shown = app.screen.query_one("#graph").display, app.screen.query_one("#source").display
        assert shown == (True, False)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert app.screen.query_one("#source").display


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
async def test_before_the_first_event_the_program_and_the_first_keys_are_on_the_screen(size):
    app = app_of(demo(), at=0)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        text = "\n".join("".join(part.text for part in strip) for strip in app.screen._compositor.render_strips())
        assert "No node at this event" in text
        assert "next node" in text
        assert "No source line" not in text
        assert "import gviz.engine as torch" in text


def regression():
    x = torch.randn(16, 4)
    y = x.sum(dim=1, keepdim=True)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (120, 40)])
async def test_a_graph_opens_at_its_top_where_its_data_enters_and_not_at_the_targets_that_the_data_gives(size):
    app = app_of(timeline_of(regression), at=1)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        graph = app.screen.query_one(GraphCanvas)
        assert (app.screen.selected, graph.view.y) == (1, 0)
        assert graph.view.contains_region(graph._region(graph.place(1)))
