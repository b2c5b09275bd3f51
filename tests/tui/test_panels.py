"""The panels that share a place, and their rows: they follow the clock, and can be acted on."""

import pytest
from driving import app_of, transcript
from recording import timeline_of
from stories import Story, demo
from textual.content import Content
from textual.widgets import Input

import gviz.engine as torch
from gviz.live.protocol import CallSite
from gviz.query_syntax.stop_condition import stop
from gviz.trace.graph_state import OPTIMIZER
from gviz.tui.cursor import Cursor
from gviz.tui.drawing.watches_and_breakpoints import break_rows
from gviz.tui.glyphs import UNICODE
from gviz.tui.panel_choice import PANELS, SIDE_PANEL_OF, TABS
from gviz.tui.screens.overlay_pages import Sheet
from gviz.tui.session import Session
from gviz.tui.styled_lines import cells, plain
from gviz.tui.widgets.prompt import Prompt
from gviz.tui.widgets.source_panel import SourcePane


def rows_of(widget):
    return ["".join(part.text for part in widget.render_line(y)).rstrip() for y in range(widget.size.height)]


def said(app, panel):
    return [row for row in rows_of(app.screen.query_one(f"#{panel}")) if row]


async def press(pilot, *keys):
    await pilot.press(*keys)
    await pilot.pause()


def trained():
    """A net of two layers after one backward pass."""

    def program():
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        net(torch.ones(1, 2)).sum().backward()

    return timeline_of(program)


def overwritten():
    """y keeps x * x's input, then x is written in place."""

    def program():
        x = torch.ones(2, requires_grad=True)
        h = x * 2
        y = h * h
        h.add_(1)
        return y

    return timeline_of(program)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (84, 50), (50, 14)])
async def test_every_digit_brings_its_panel_to_the_front_and_focuses_it(size):
    app = app_of(demo(), at=5)
    async with app.run_test(size=size) as pilot:
        for digit, panel in enumerate(PANELS, 1):
            await press(pilot, str(digit % 10))
            assert app.screen.focused is not None
            assert app.screen.focused.id in (panel, SIDE_PANEL_OF.get(panel))
            assert app.screen.focused.display


async def test_tabs_name_each_other_and_a_click_on_a_name_brings_it():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(200, 60)) as pilot:
        await press(pilot, "1")
        title = Content.from_markup(app.screen.query_one("#source").border_title).plain
        assert [name for name in TABS if name.capitalize() in title] == ["source", "stack", "saved", "modules"]
        x = title.index("5 Stack") + 3
        await pilot.click("#source", offset=(x, 0))
        await pilot.pause()
        assert app.screen.focused.id == "stack"


async def test_a_terminal_of_110_by_32_has_an_own_panel_for_what_is_watched():
    for size, there in (((109, 32), False), ((110, 31), False), ((110, 32), True)):
        app = app_of(demo(), at=5)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            assert app.screen.query_one("#side-watch").display is there


async def test_what_has_a_panel_of_its_own_is_no_tab_and_its_digit_leads_there():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, *":break b", "enter", *":watch loss", "enter", "3")
        assert "2 Watch" in str(app.screen.query_one("#breaks").border_title)
        await pilot.resize_terminal(120, 40)
        await press(pilot, "3")
        rows = app.screen.query_one("#side-watch")
        assert app.screen.focused is rows
        assert rows._keys[rows.chosen] == ("break", 1)
        assert app.screen.query_one("#source").display
        assert not app.screen.query_one("#breaks").display
        assert "Watch" not in str(app.screen.query_one("#source").border_title)
        assert str(rows.border_title) == "2 Watch, 3 Breaks"
        await press(pilot, "2")
        assert rows._keys[rows.chosen] == ("watch", 1)


@pytest.mark.parametrize("width", [20, 31, 42, 90])
def test_how_often_a_breakpoint_stops_is_never_cut(width):
    session = Session(Cursor(demo(), 30), UNICODE)
    session.cursor.breakpoints.add(stop("b if value < 100000 and value > -100000"))
    ((row, _),) = break_rows(session.cursor.breakpoints, 30, UNICODE, width)
    assert cells(row) <= width
    hits = sum(hit.n <= 30 for hit in session.cursor.breakpoints.listed[0].after(0))
    assert plain(row).endswith(f"{hits} hits so far" if width == 90 else f"{hits} hits")


async def test_the_tape_names_the_key_of_the_graph_while_that_is_hidden():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "9")
        assert str(app.screen.query_one("#tape").border_subtitle) == "v: graph"
        await press(pilot, "v", "v")
        assert app.screen.query_one("#graph").display
        assert not app.screen.query_one("#tape").border_subtitle


async def test_watched_expressions_follow_the_clock_and_say_what_changed():
    app = app_of(demo(), at=16)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, *"wx.grad", "enter", *"wloss", "enter")
        assert said(app, "side-watch")[:2] == ["x.grad   None", "loss     -24"]
        await press(pilot, ">")
        assert said(app, "side-watch")[0] == "x.grad ^ -14"
        await press(pilot, "<")
        assert said(app, "side-watch")[0].startswith("x.grad ^ there is no x")


async def test_rows_of_the_watch_list_can_be_edited_removed_and_followed():
    app = app_of(demo(), at=33)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, *"wx.grad", "enter", *"wloss", "enter", "2")
        await press(pilot, "j", "e")
        entry = app.screen.query_one(Prompt).query_one(Input)
        assert entry.value == "rewatch 2 loss"
        await press(pilot, *" + 1", "enter")
        assert app.screen.cursor.asker.watched == ["x.grad", "loss + 1"]
        await press(pilot, "2", "k", "enter")
        assert type(app.screen.timeline.event(app.screen.cursor.position)).__name__ == "GradAccumulated"
        await press(pilot, "2", "delete")
        assert app.screen.cursor.asker.watched == ["loss + 1"]


async def test_the_row_of_a_call_in_the_program_has_no_condition_to_edit_and_is_switched_off_where_one_removes_it():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.cursor.breakpoints.call(CallSite("breakpoint()", "/work/demo.py", 6)).add_pause(4)
        app.screen.follow_settings()
        await press(pilot, "3")
        assert said(app, "breaks") == ["● 1  breakpoint() at demo.py:6  1 hit so far"]
        await press(pilot, "e")
        assert "breakpoint 1 is a call in the program" in plain(app.screen.query_one(Sheet).row(0))
        await press(pilot, "escape")
        assert not app.screen.query_one(Prompt).display
        await press(pilot, "enter", "delete", "escape")
        assert app.screen.cursor.position == 4
        assert said(app, "breaks") == ["· 1  breakpoint() at demo.py:6 (off)     1 hit"]


async def test_rows_of_breakpoints_can_be_switched_removed_edited_and_gone_to():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, *":break b", "enter", "3")
        assert said(app, "breaks") == ["● 1  break b  0 hits so far"]
        await press(pilot, "space")
        assert not app.screen.cursor.breakpoints.listed[0].enabled
        assert said(app, "breaks")[0].startswith("· 1  break b (off)")
        await press(pilot, "3", "space", "enter")
        assert app.screen.cursor.position == 7
        assert said(app, "breaks") == ["● 1  break b  1 hit so far"]
        await press(pilot, "e", *"value > 0", "enter")
        assert app.screen.cursor.breakpoints.listed[0].stop.text == "b if value > 0"
        await press(pilot, "3", "delete")
        assert not app.screen.cursor.breakpoints.listed
        assert said(app, "breaks") == ["No breakpoints. b: set one here"]


async def test_the_stack_and_the_source_follow_up_down_and_enter():
    timeline = trained()
    at = next(n for n in range(len(timeline)) if timeline.at(n).scope == "Sequential.0" and timeline.at(n).node)
    app = app_of(timeline, at=at)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "5")
        frames = timeline.info(app.screen.cursor.selected).frames
        assert len(frames) > 1
        assert said(app, "stack")[0].startswith("► 0")
        await press(pilot, "u")
        assert said(app, "stack")[1].startswith("► 1")
        await press(pilot, "k", "enter")
        assert app.screen.frame == 0


async def test_saved_tensors_follow_the_clock():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "6")
        rows = said(app, "saved")
        assert rows[0] == "#3 a = mul saved tensors:"
        assert rows[1].split() == ["self", "#1", "x", "3", "(8", "B)", "version", "0"]
        await press(pilot, ">", *":select #3", "enter")
        assert said(app, "saved")[0] == "#3 a = mul has released its saved tensors,"


def test_a_saved_tensor_that_was_written_to_says_so():
    timeline = overwritten()
    text = transcript(timeline, "goto end", "saved op:mul", "saved y", at=1)
    assert "! saved at version 0, now 1: backward through" in text
    assert "wrote version 1" in transcript(timeline, "goto end", "saved h")


async def test_modules_tell_their_gradients_and_close_with_enter():
    timeline = trained()
    app = app_of(timeline, at=len(timeline))
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "7")
        assert "|g|" in said(app, "modules")[0]
        await press(pilot, "j", "enter")
        assert app.screen.graph_filter.closed == {OPTIMIZER, "Sequential.0"}
        assert said(app, "modules")[1].lstrip().startswith("+ 0")
        await press(pilot, "7", "space")
        assert app.screen.graph_filter.closed == {OPTIMIZER}


async def test_modules_have_the_left_column_of_a_large_screen():
    app = app_of(trained(), at=3)
    async with app.run_test(size=(200, 60)) as pilot:
        await press(pilot, "7")
        assert app.screen.focused.id == "side-modules"


def test_empty_panels_say_what_to_do():
    assert "No module was called" in transcript(demo(), "modules")


async def test_source_that_comes_on_the_screen_shows_its_lines_from_the_first_column():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("n", "1")
        await pilot.pause()
        await pilot.pause()
        assert app.screen.query_one(SourcePane).scroll_offset.x == 0


async def test_a_source_that_is_not_in_the_trace_is_named_in_full():
    path = "/usr/lib/python3/site-packages/a_library_with_a_long_name/and_a_module.py"
    story = Story(path, None)
    story.leaf("x", 3.0, 3)
    app = app_of(story.timeline())
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "n", "1")
        assert "".join(said(app, "source")).replace(" ", "") == f"Thetextofand_a_module.pyisnotinthetrace:{path}"


async def test_a_panel_that_was_hidden_between_two_frames_shows_what_it_missed():
    app = app_of(demo(), at=3)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        screen, stack = app.screen, app.screen.query_one("#stack")
        screen.panels.bring("stack")
        await pilot.pause()
        before = said(app, "stack")
        stack.display = False
        screen.action_seek(7)
        stack.display = True
        await pilot.pause()
        await pilot.pause()
        assert said(app, "stack") != before
