"""Every key does what the help says, through a running app and nothing else."""

import pytest
from driving import after, app_of, send, until
from explain.programs import recorded_text
from stories import Story, chain, demo, failed, iterations
from textual.events import Key, MouseScrollDown

from gviz.tui.cursor import Cursor
from gviz.tui.panel_choice import PANELS
from gviz.tui.screens.key_and_row_actions import BINDINGS
from gviz.tui.screens.overlay_pages import InspectorScreen, Sheet, SheetScreen
from gviz.tui.widgets.prompt import Prompt
from gviz.tui.widgets.status_rows import KeysRow, TimelineBar
from gviz.tui.widgets.tape_panel import Tape

MOVES = [
    ("s", 2),
    ("ss", 3),
    ("S", 0),
    ("SSS", 0),
    ("n", 3),
    ("nnnnn", 16),
    ("nN", 1),
    ("f", 11),
    ("ff", 33),
    ("fffff", 33),
    ("ffF", 12),
    ("c", 33),
    ("cC", 0),
    (["right_square_bracket"], 2),
    (["s", "left_square_bracket"], 1),
    (["right_curly_bracket"], 12),
    (["right_curly_bracket", "s", "left_curly_bracket"], 12),
    (["greater_than_sign"], 33),
    (["greater_than_sign", "less_than_sign"], 0),
    (["greater_than_sign", "backspace"], 1),
    ("r", 11),
    (["colon", "1", "2", "enter"], 12),
    ([*":goto b", "enter"], 7),
    ([*":n 2", "enter"], 5),
    ([*":s- 1", "enter"], 0),
    (["m", "a", "c", "apostrophe", "a"], 1),
    (["c", *"''"], 33),
    (["greater_than_sign", *"''"], 1),
]


async def test_a_key_moves_the_time():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        for keys, position in MOVES:
            app.screen.session.cursor = Cursor(app.screen.timeline, 1)
            await pilot.press(*keys)
            assert app.screen.cursor.position == position, keys


SELECTIONS = [
    ("j", 2),
    ("jjk", 2),
    ("k", 1),
    ("G", 5),
    ("Gg", 1),
    ("Gh", 4),
    ("jl", 3),
    (["slash", "b", "enter"], 4),
    ([*"/op:mul", "enter"], 3),
    ([*"/op:mul", "enter", "comma"], 4),
    ([*"/op:mul", "enter", "comma", "full_stop"], 3),
    ([*"/#5", "enter"], 5),
    (["down", "down"], 3),
]


async def test_a_key_selects_without_moving_the_time():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("9")  # arrows follow the lines of the graph, and rows of the tape
        for keys, node in SELECTIONS:
            app.screen.session.cursor = Cursor(app.screen.timeline, 1)
            await pilot.press(*keys)
            assert (app.screen.cursor.selected, app.screen.cursor.position) == (node, 1), keys


async def test_t_runs_to_the_next_event_of_the_selected_node_and_T_back():
    screen = await after(demo(), "j", "j", "j", "t")
    assert (screen.cursor.position, screen.cursor.selected) == (7, 4)
    screen = await after(demo(), "T", at=16)
    assert screen.cursor.position < 16


async def test_the_state_at_an_event_does_not_depend_on_the_way_there():
    there = await after(demo(), *"nnnnnn")
    back = await after(demo(), *"cNNSnsn", *":goto 21", "enter")
    assert there.moment.states(list(demo().nodes)) == back.moment.states(list(demo().nodes))


async def test_letters_typed_into_the_prompt_are_text():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon", *"snq?")
        assert app.screen.cursor.position == 1
        assert app.focused.value == "snq?"
        await pilot.press("escape", "s")
        assert app.screen.cursor.position == 2


async def test_the_letter_of_a_bookmark_may_come_before_its_key_is_carried_out():
    app = app_of(demo(), at=5)
    async with app.run_test(size=(80, 24)) as pilot:
        for key in ("m", "a", "s", "apostrophe", "a"):
            character = "'" if key == "apostrophe" else key
            app.post_message(Key(key, character))
        await pilot.pause()
        await pilot.pause()
        assert app.screen.cursor.bookmarks == {"a": 5}


@pytest.mark.parametrize(("typed", "watched"), [("", ["b"]), ("x.grad", ["x.grad"])])
async def test_the_prompt_offers_the_selected_node_until_something_is_typed(typed, watched):
    app = app_of(demo(), at=12)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*"gjjj", "w", *typed, "enter")
        await pilot.pause()
        assert app.screen.cursor.asker.watched == watched


async def test_a_name_that_means_another_node_now_is_offered_as_a_number():
    app = app_of(iterations(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("greater_than_sign", *"gj", "p")
        first = app.screen.cursor.selected
        assert app.screen.timeline.info(first).name
        assert app.focused.value == f"print #{first}"


async def test_ctrl_c_with_nothing_to_stop_says_how_to_leave_and_covers_nothing():
    app = app_of(demo(), at=12)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+c")
        assert "q: quit" in app.screen.remark
        await pilot.press("question_mark", "ctrl+c")
        await pilot.pause()
        assert not list(app._notifications)


@pytest.mark.parametrize("keymap", ["vscode", "jetbrains"])
async def test_ctrl_f_finds_in_the_keymaps_that_say_so_also_in_the_tape(keymap):
    app = app_of(demo(), at=12)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("9", "ctrl+f")
        await pilot.pause()
        assert app.screen.cursor.selected == app.screen.timeline.nodes[-1]
        app.screen.run_line(f"set keymap {keymap}")
        await pilot.press("ctrl+f")
        await pilot.pause()
        assert app.focused.parent.query_one("#sign").content == "/"


async def test_the_prompt_remembers_and_completes():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon", *"n 2", "enter", "colon", "up", "enter")
        assert app.screen.cursor.position == 9
        await pilot.press("colon", *"cont")
        await pilot.pause()
        await pilot.press("tab")
        assert app.focused.value == "continue "


REFUSALS = [
    ("xyz", "there is no command 'xyz' (print xyz shows a value, help lists the commands)"),
    ("goto 99", "there is no event 99 (events go from 0 to 33)"),
    ("goto #77", "there is no node #77"),
    ("goto nan", "no nan or inf in this recording"),
    ("goto 'z", "there is no mark z"),
    ("theme pink", "there is no theme pink"),
    ("help step", "one event forward"),
]


async def test_what_cannot_be_done_is_said_in_the_bottom_row():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        for typed, says in REFUSALS:
            await pilot.press("colon")
            app.focused.value = typed
            await pilot.press("enter")
            assert says in app.screen.query_one(KeysRow).remark
            assert app.screen.cursor.position == 1


async def test_both_ends_are_normal_stops_and_the_direction_is_shown():
    assert (await after(demo(), "S")).stop.reason.words == "start of recording"
    assert (await after(demo(), "c", "s", "s")).stop.reason.words == "end of recording"
    assert (await after(demo(), "n", "n", "S")).stop.backward


async def test_a_failed_program_opens_at_its_failure():
    timeline = failed()
    app = app_of(timeline)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.screen.cursor.position == len(timeline)
        assert app.screen.stop.reason.words == "error"
        assert "RuntimeError at #4 b = mul" in shown(app)
        await pilot.press("c")
        assert app.screen.stop.reason.words == "end of recording"


async def test_where_a_call_failed_its_first_input_is_selected(tmp_path):
    program = """
import gviz.engine as torch
x = torch.ones(3, 4, requires_grad=True)
w = torch.ones(3, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
y = x @ w + b
"""
    timeline = recorded_text(program, tmp_path)
    app = app_of(timeline)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert timeline.info(app.screen.cursor.selected).name == "x"
        panel = app.screen.query_one("#source")
        assert panel.border_title.startswith("1 Source program.py:6 ")


async def test_a_digit_brings_a_panel_to_the_front():
    app = app_of(chain(40))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        named = {"1": "source", "4": "output", "8": "node", "9": "tape", "o": "output", "0": "graph"}
        for key, panel in named.items():
            await pilot.press(key)
            assert app.focused.id == panel


async def test_v_goes_from_graph_to_both_to_tape():
    app = app_of(chain(40))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        seen = []
        for _ in range(4):
            seen.append((app.screen.query_one("#tape").display, app.screen.query_one("#graph").display))
            await pilot.press("v")
        assert seen == [(False, True), (True, True), (True, False), (False, True)]


async def test_z_shows_one_panel_and_escape_the_others_again():
    app = app_of(chain(40))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("8", "z")
        assert [panel.id for panel in app.screen.query("#tape, #node, #source, #output") if panel.display] == ["node"]
        await pilot.press("escape")
        assert app.screen.query_one("#graph").display


async def test_u_and_d_walk_the_callers_and_i_shows_every_digit():
    screen = await after(demo(), "i")
    assert screen.full
    assert (await after(demo(), "u", "u", "d")).frame == 0


@pytest.mark.parametrize(("keys", "position"), [("n", 3), (":goto 7", 7), ("nn", 5)])
async def test_the_key_that_closes_a_page_also_acts(keys, position):
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark")
        assert isinstance(app.screen, SheetScreen)
        await pilot.press(*keys, "enter")
        await pilot.pause()
        assert app.screen_stack[0].cursor.position == position


async def test_space_closes_a_page_and_plays():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark", "space")
        await pilot.pause()
        assert not isinstance(app.screen, SheetScreen)
        assert app.screen.controller.player.is_playing


async def test_help_and_inspector_open_and_close():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark")
        assert isinstance(app.screen, SheetScreen)
        assert "CAPITALS back" in shown(app)
        await pilot.press("q")
        assert not isinstance(app.screen, SheetScreen)
        await pilot.press("enter")
        assert isinstance(app.screen, InspectorScreen)
        assert "float64 ()" in shown(app)
        await pilot.press("escape")
        assert app.screen.cursor.position == 1


async def test_space_plays_and_any_time_key_pauses():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("space")
        assert app.screen.controller.player.is_playing
        app.screen.controller.player.play_on()
        assert app.screen.cursor.position >= 2  # its clock runs too
        await pilot.press("s")
        assert not app.screen.controller.player.is_playing


async def test_q_leaves():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0


async def test_a_click_selects_a_double_click_runs_and_the_bar_seeks():
    app = app_of(chain(40))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("9")
        await pilot.click(Tape, offset=(8, 4))
        assert (app.screen.cursor.selected, app.screen.cursor.position) == (3, 1)
        await pilot.click(Tape, offset=(8, 4), times=2)
        assert app.screen.cursor.position == app.screen.timeline.info(3).born
        await pilot.click(TimelineBar, offset=(40, 0))
        assert 10 < app.screen.cursor.position < 35


async def test_a_click_on_a_number_goes_to_the_event_that_made_it():
    app = app_of(demo(), at=33)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press(*"/b", "enter", "8")
        await pilot.pause()
        row = next(y for y, text in enumerate(shown(app).splitlines()) if "used by #5 loss" in text)
        column = shown(app).splitlines()[row].index("#5 loss")
        await pilot.click(offset=(column + 1, row))
        assert app.screen.cursor.position == 9


async def test_a_click_in_the_bottom_row_runs_the_key():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.click(KeysRow, offset=(12, 0))
        assert app.screen.cursor.position == 3


async def test_iterations_are_counted_in_the_status_row():
    app = app_of(iterations(3))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("greater_than_sign")
        await pilot.pause()
        assert "iteration 3/3" in shown(app)


async def test_a_theme_is_chosen_by_command():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon", *"theme gviz-light", "enter")
        await pilot.pause()
        assert app.theme == "gviz-light"


async def test_export_writes_a_picture_and_never_over_one(tmp_path):
    path = tmp_path / "a.dot"
    app = app_of(demo(), at=20)
    async with app.run_test(size=(240, 24)) as pilot:
        await pilot.press("x")
        assert app.focused.value == "export demo-20.svg"
        app.focused.value = f"export {path}"
        await pilot.press("enter")
        await pilot.pause()
        assert path.read_text().startswith("digraph")
        await pilot.press("colon", "up", "enter")
        await pilot.pause()
        assert "already exists" in app.screen.remark


def test_every_binding_has_a_name_and_says_what_it_does():
    assert len({binding.id for binding in BINDINGS}) == len(BINDINGS)
    assert all(binding.description and not binding.priority for binding in BINDINGS)


def shown(app):
    """The characters on the screen."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def scrolled(panel, *keys, turns=0):
    """Where a panel is scrolled to after some keys and turns of the wheel over it, and its lower border."""
    app = app_of(failed(), at=40)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press(*keys)
        for _ in range(turns):
            await pilot._post_mouse_events([MouseScrollDown], panel, offset=(5, 3))
        await pilot.pause(0.3)
        widget = app.screen.query_one(panel)
        return int(widget.scroll_offset.y), str(widget.border_subtitle or "")


async def test_a_cut_node_panel_says_so_and_scrolls():
    top, said = await scrolled("#node")
    assert top == 0
    assert said.endswith("more: Enter")
    assert (await scrolled("#node", "8", "pagedown"))[0] > 5
    assert (await scrolled("#node", "8", "down"))[0] == 1
    assert (await scrolled("#node", turns=2))[0] > 0
    assert await scrolled("#node", "8", "end") != (top, said)
    assert (await scrolled("#node", "8", "end"))[1] == ""


async def test_the_wheel_scrolls_source_and_tape():
    assert (await scrolled("#source", "1", "home"))[0] == 0
    assert (await scrolled("#source", "1", "home", turns=2))[0] > 0
    app = app_of(chain(100))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("9")
        await pilot._post_mouse_events([MouseScrollDown], "#tape", offset=(5, 3))
        await pilot.pause()
        assert app.screen.query_one("#tape").scroll_offset.y > 0


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (84, 50)])
async def test_every_panel_can_have_the_whole_screen(size):
    app = app_of(failed(), at=40)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for digit, panel in enumerate(PANELS, 1):
            await pilot.press(str(digit % 10), "z")
            await pilot.pause()
            sizes = [app.screen.query_one(f"#{name}").outer_size for name in (panel, "side-watch")]
            below = app.screen.query_one("#overview").region.height  # a row below a graph that is higher
            assert below == 0 or panel == "graph"
            assert (size[0], size[1] - 4 - below) in sizes, panel
            await pilot.press("z")


LESSON = '''"""A lesson about [red]x[/red]

Press n and look at x,
then at w.
"""

x = 3
'''


def with_lesson():
    story = Story("demo.py", LESSON)
    story.leaf("x", 3.0, 7)
    return story.timeline()


async def seen(timeline, *keys, size=(80, 24), at=1, lesson=False):
    """The text of the screen after some keys."""
    app = app_of(timeline, at=at, lesson=lesson)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause(0.3)
        return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_a_lesson_begins_with_its_text_and_shows_it_again():
    text = await seen(with_lesson(), lesson=True)
    assert "A lesson about [red]x[/red]" in text
    assert "Press n and look at x, then at w." in text
    assert "look at x, then" not in await seen(with_lesson(), "n", lesson=True)
    assert "look at x, then" in await seen(with_lesson(), "n", *":lesson", "enter", lesson=True)
    assert "this program has no text at its top" in await seen(demo(), *":lesson", "enter")


async def test_every_command_can_be_read():
    assert "reverse-continue" in await seen(demo(), *":help", "enter")
    assert "quit, q, exit" in await seen(demo(), *":help", "enter", "end")


@pytest.mark.parametrize("size", [(60, 30), (80, 12), (40, 12)])
async def test_the_help_leaves_the_bottom_row_where_keys_answer(size):
    app = app_of(demo())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press("?")
        await pilot.pause()
        sheet = app.screen.query_one("#sheet")
        assert sheet.max_scroll_y > 0
        assert (sheet.region.y, sheet.region.bottom) == (0, size[1] - 1)


async def test_the_help_scrolls_where_the_terminal_is_small():
    assert "quit" not in await seen(demo(), "question_mark", size=(40, 10))
    assert "means" in await seen(demo(), "question_mark", "end", size=(40, 10))
    assert "Esc closes this" in await seen(demo(), "question_mark", "pagedown", "down", size=(40, 10))
    assert "Esc closes this" not in await seen(demo(), "question_mark", "pagedown", "z", size=(40, 10))


async def test_nothing_opens_on_a_terminal_that_is_too_small():
    app = app_of(demo())
    async with app.run_test(size=(39, 9)) as pilot:
        for key in ("question_mark", "enter", "colon", "slash", "x"):
            await pilot.press(key)
            assert len(app.screen_stack) == 1, key
            assert not app.screen.query_one("#prompt").display, key


async def test_the_prompt_of_the_export_offers_a_name():
    screen = await after(demo(), "x", at=12)
    assert screen.remark == ""
    assert "export demo-12.svg" in await seen(demo(), "x", at=12)


async def test_where_shows_the_call_stack():
    text = await seen(failed(), *":where", "enter", at=40)
    assert "5 Stack" in text
    assert "► 0  demo.py:6" in text


async def test_the_screen_says_in_words_what_the_event_was():
    text = await seen(demo(), at=19, size=(120, 40))
    assert "#4 b = mul: sends to #3 a = mul: incoming gradient 1 += 3, now 4 (2 of 2)" in text
    row = (await seen(demo(), at=19, size=(64, 24))).splitlines()[-2]
    assert row.rstrip().endswith("… ; more"), "what is cut says which key shows it all"
    assert len(row) == 64


async def test_the_running_line_stays_in_view():
    story = Story("demo.py", "".join(f"line{n} = 0\n" for n in range(1, 41)))
    x = story.leaf("x", 3.0, 2)
    story.backward(story.mul("y", x, x, 4), 38)
    timeline = story.timeline()
    text = await seen(timeline, "1", at=6)
    assert "►…38 line38" in text
    assert " 4 line4" in text
    assert "►…38 line38" in await seen(timeline, "1", "home", at=6)
    assert "► 38 line38" in await seen(timeline, "1", "end", at=6)


@pytest.mark.parametrize("opens", ["e", "question_mark"])
@pytest.mark.parametrize("typed", ["break change x.grad", "goto 5", "print x.grad * 2 ? q"])
async def test_what_is_typed_in_one_go_over_a_page_arrives_in_the_prompt(opens, typed):
    app = app_of(demo(), at=12)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press(opens)
        assert isinstance(app.screen, SheetScreen)
        for each in f":{typed}":
            send(app, each)
        await until(pilot, lambda: app._start.query_one(Prompt).query_one("Input").value == typed)


async def test_help_opens_over_another_text_with_one_key_and_closes_with_it():
    app = app_of(demo(), at=7)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("e")
        await pilot.pause()
        assert "Why" in str(app.screen.query_one(Sheet).border_title)
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Help" in str(app.screen.query_one(Sheet).border_title)
        await pilot.press("question_mark")
        await pilot.pause()
        assert not app.screen.query(Sheet)
        await pilot.press("e")
        await pilot.press("e")
        await pilot.pause()
        assert not app.screen.query(Sheet)
