"""The command language beyond single commands: scripts, sessions, commands of breakpoints, settings, what there is."""

import io
import os

import pytest
from driving import after, app_of, transcript
from recording import timeline_of
from stories import demo, failed, iterations
from textual.widgets import OptionList

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.system.cooperative_work import finished
from gviz.tui import keymaps
from gviz.tui.commands.command_table import SPECS
from gviz.tui.commands.session_file import session_lines
from gviz.tui.config import Config, read
from gviz.tui.language.command import Answer, View, work
from gviz.tui.language.parser import parse, spec_of
from gviz.tui.line_mode import debug
from gviz.tui.screens import overlay_pages
from gviz.tui.screens.overlay_pages import MenuScreen, QuestionScreen, Sheet
from gviz.tui.widgets.status_rows import KeysRow


def talk(timeline, text):
    output = io.StringIO()
    ended = debug(timeline, None, io.StringIO(text), output)
    return output.getvalue(), ended


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_command_is_found_by_its_names_and_answers_or_refuses_in_line_mode(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (spec.name, *spec.aliases):
        said = transcript(demo(), f"{name} {'' if not spec.takes or spec.takes.startswith('[') else 'x'}".strip())
        assert "there is no command" not in said
        assert "Traceback" not in said


def test_until_goes_forward_only():
    assert "event 17, backward" in transcript(demo(), "until on backward b")
    assert "nothing later is at x" in transcript(demo(), "goto end", "until x")
    assert "event 11, forward" in transcript(demo(), "goto start", "until")


def test_until_is_stopped_by_breakpoints_and_is_none():
    said = transcript(
        demo(), "goto start", "break b", "until on backward x", "delete", "until on backward a", "info break"
    )
    assert said.count("breakpoint 1.") == 1
    assert said.rindex("breakpoint 1.") < said.rindex(", backward")
    assert "there are no breakpoints" in said


def test_jump_is_goto_and_says_so_once():
    said = transcript(demo(), "jump 7", "jump 9")
    assert said.count("jump does not run or skip code") == 1
    assert "event 9," in said


def test_print_is_an_expression_and_pp_shows_all_of_it():
    said = transcript(demo(), "goto end", "print x * 2", "p x.grad", "pp x.grad")
    assert "x * 2 = 6" in said
    assert "x.grad = -14" in said
    assert "x.grad =\n  -14" in said


def test_up_stops_at_the_outermost_line():
    said = transcript(demo(), "up", "down")
    assert "this is the outermost line of the call" in said
    assert "this is the innermost line of the call" in said


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("break", "there are no breakpoints"),
        ("watch", "no watches"),
        ("marks", "there are no marks"),
        ("graph", "5 of 5 nodes made, 6 edges"),
        ("saved", "0 nodes have saved tensors, 2 have released theirs"),
        ("params", "#1 x: "),
        ("stats", "33 events, 5 nodes"),
        ("leaks", "no node of an earlier iteration"),
        ("brek", "did you mean break?"),
    ],
)
def test_info_counts_what_there_is(word, says):
    assert says in transcript(demo(), "goto end", f"info {word}")


def test_info_leaks_counts_iterations_from_1_as_all_else_does():
    kept = []

    def program():
        x = torch.tensor(2.0, requires_grad=True)
        for _ in range(2):
            kept.append(x.exp())
            (x * x).backward()

    assert "  #2 exp, iteration 1" in transcript(timeline_of(program), "goto end", "info leaks").splitlines()


def without_gradients():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        y = x * x
    z = x * y * x
    (z * z).sum().backward()
    return y, z


@pytest.mark.parametrize("timeline", [demo(), timeline_of(without_gradients)])
def test_info_saved_counts_what_the_states_of_the_nodes_say(timeline):
    for n in range(len(timeline) + 1):
        states = [timeline.at(n).state(node) for node in timeline.nodes]
        held, freed = (sum(state is not None and state.saved == how for state in states) for how in ("held", "freed"))
        said = transcript(timeline, "info saved", at=n)
        assert f"{held} nodes have saved tensors, {freed} have released theirs" in said, n


def test_marks_of_the_program_and_of_the_user_are_told_apart():
    assert "'here  event 12  (set by you)" in transcript(demo(), "mark here 12", "info marks")


def test_commands_of_a_breakpoint_are_carried_out_where_it_stops():
    said, _ = talk(demo(), "break b\ncommands 1\nprint value_of\nprint b\nend\ngoto start\nc\n")
    assert "breakpoint 1 runs 2 commands" in said
    assert "there is no value_of here" in said
    assert "at print value_of in breakpoint 1" in said
    said, _ = talk(demo(), "break b\ncommands 1 print b ;; continue\ngoto start\nc\n")
    assert said.count("\nb = -18") == 2
    assert "end of recording" in said


async def test_all_that_the_commands_of_a_breakpoint_say_is_on_the_screen():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*":break b", "enter", *":commands 1 print b ;; print b * 2 ;; print b * 3", "enter", "c")
        await pilot.pause()
        sheet = app.screen.query_one(Sheet)
        rows = ["".join(text for text, _ in sheet.row(y)) for y in range(3)]
        assert rows == ["b = -18", "b * 2 = -36", "b * 3 = -54"]


async def test_a_command_that_is_refused_says_what_is_left_out_behind_it():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        keys = ":commands 1 print b.grad ;; print zzz ;; print b ;; print b"
        await pilot.press(*":break b", "enter", *keys, "enter", "c")
        await pilot.pause()
        sheet = app.screen.query_one(Sheet)
        said = " ".join("".join(text for text, _ in sheet.row(y)).strip() for y in range(sheet.size.height))
        assert said.startswith("b.grad = None")
        assert "there is no zzz here" in said
        assert "at print zzz in breakpoint 1, 2 lines after it skipped" in said
        await pilot.press("escape", *":print zzz", "enter")
        await pilot.pause()
        assert "breakpoint" not in app.screen.remark, "it is of no breakpoint"


def test_commands_that_run_in_circles_end():
    said, ended = talk(demo(), "break b\ncommands 1 rc ;; c\ngoto start\nc\nn\n")
    assert "stopped after" in said
    assert ended.refused == 1


def test_a_session_is_saved_by_name_and_line_and_read_again(tmp_path):
    path = tmp_path / "s.session"
    given = ["break #4", "tbreak x if value > 2", 'log on backward "{name}"', "ignore 1 1", "disable 2", "watch x.grad"]
    said = transcript(demo(), *given, "commands 1 print b", "mark here 7", f"save {path}")
    assert "saved 10 lines" in said
    text = path.read_text()
    assert "break b\n" in text
    assert "#4" not in text
    again, _ = talk(demo(), f"load {path}\ny\ninfo\ninfo watch\ngoto 'here\n")
    assert "tbreak x if value > 2" in again.partition("load it?")[0]
    assert "2  tbreak x if value > 2 (off)" in again
    assert "1  x.grad = " in again
    assert "event 7," in again


def test_a_session_is_the_same_after_it_was_read(tmp_path):
    path = tmp_path / "s.session"
    transcript(iterations(3), "break mul if value < 0", "break change w.grad", "watch w", "mark a 3", f"save {path}")
    app = app_of(iterations(3))
    screen = app._start
    for line in path.read_text().splitlines()[1:]:
        screen.controller.reader.typed(line)
        while (command := screen.controller.reader.next()) is not None:
            finished(work(spec_of(command).run(screen.session, command)))
    assert list(session_lines(screen.session)) == path.read_text().splitlines()[1:]


def test_expressions_of_a_file_are_left_alone_unless_they_are_wanted(tmp_path):
    path = tmp_path / "s.session"
    path.write_text("break x if value > 2\n")
    said, _ = talk(demo(), f"load {path}\nn\ninfo\n")
    assert "break x if value > 2" in said
    assert "nothing was changed" in said
    assert "there are no breakpoints" in said


@pytest.mark.parametrize(
    "lines",
    [
        ["break b", "commands .", "export {path}", "end"],
        ["break b", "commands .", "eval b", "end"],
        ["break b", "commands . save {path} ;; continue"],
        ["watch b"],
        ['log b "{{value}}"'],
        ['log b "it" if value < 9'],
        ["break b\tif value < 9"],
        ["break zeros(b) > 0.9"],
        ["tbreak change norm(b)"],
        ['log zeros(b) > 0.9 "it"'],
        ["break b if ("],
    ],
)
def test_what_a_session_evaluates_or_carries_out_is_shown_and_asked_for(tmp_path, lines):
    made, path = tmp_path / "made.dot", tmp_path / "s.session"
    lines = [line.format(path=made) for line in lines]
    path.write_text("\n".join(lines))
    said, _ = talk(demo(), f"load {path}\nn\ninfo\nc\n")
    asked, question, _ = said.partition("load it?")
    assert question
    acting = [line for line in lines if line not in ("break b", "commands .", "end")]
    assert all(line.replace("\t", " ") in asked.replace("\\t", " ") for line in acting)
    assert "there are no breakpoints" in said
    assert not made.exists()


def test_a_session_does_nothing_but_set_things(tmp_path):
    path = tmp_path / "s.session"
    path.write_text("break x\nquit\n")
    assert "quit cannot be part of" in transcript(demo(), f"load {path}")
    assert "cannot read" in transcript(demo(), f"load {tmp_path}")
    other = tmp_path / "mine.txt"
    other.write_text("a diary")
    assert "exists and is not a session" in transcript(demo(), f"save {other}")
    assert other.read_text() == "a diary"


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a file without an end")
def test_a_file_without_an_end_is_too_large():
    assert "is too large for a file of commands" in transcript(demo(), "source /dev/zero")


def test_a_script_stops_at_its_first_mistake_and_says_where(tmp_path):
    script = tmp_path / "walk"
    script.write_text("# a walk\nn\nfoo\nn\n")
    said, ended = talk(demo(), f"source {script}\n")
    assert f"at foo in {script}" in said
    assert "event 3," in said
    assert "event 5," not in said
    assert ended.refused == 1


def test_settings_are_checked_shown_and_told_apart():
    said = transcript(demo(), "set speed 4x", "show speed", "set speed 3x", "set sped 2x", "show")
    assert "speed is 4x" in said
    assert "speed cannot be 3x" in said
    assert "did you mean speed?" in said
    assert "keymap is default" in said


async def test_up_and_down_are_the_keys_u_and_d_and_the_panel_follows():
    screen = await after(failed(), "u", at=9)
    assert screen.frame == 0
    assert "outermost" in screen.remark


async def test_load_asks_on_the_screen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.session").write_text("break x if value > 2\nbreak b\n")
    for key, count in (("y", 2), ("n", 0), ("escape", 0), ("down", 0)):
        app = app_of(demo())
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press(":", *"load s.session", "enter")
            await pilot.pause()
            assert isinstance(app.screen, QuestionScreen)
            await pilot.press(key)
            await pilot.pause()
            assert len(app.screen.cursor.breakpoints.listed) == count


async def test_a_question_about_more_than_the_screen_holds_can_be_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.session").write_text("".join(f"break x if value > {number}\n" for number in range(40)))
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(":", *"load s.session", "enter")
        await pilot.pause()
        sheet = app.screen.query_one(Sheet)
        assert str(sheet.border_subtitle).endswith("more: PageDown")
        await pilot.press("pagedown", "pagedown", "pagedown")
        assert sheet.scroll_offset.y == sheet.max_scroll_y > 0
        await pilot.press("y")
        await pilot.pause()
        assert len(app.screen.cursor.breakpoints.listed) == 40


async def test_commands_can_be_given_line_by_line_on_the_screen():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*":break b", "enter", *":commands 1", "enter", *"watch b", "enter", *"end", "enter")
        await pilot.press(*"<c")
        await pilot.pause()
        assert app.screen.cursor.position == 7
        assert app.screen.cursor.asker.watched == ["b"]


@pytest.mark.parametrize("name", ["vscode", "jetbrains"])
async def test_a_keymap_changes_keys_row_and_bindings(name):
    app = app_of(demo(), config=Config(keymap=name))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        keys = keymaps.keys_of(name)
        await pilot.press(keys["time.next"][0])
        assert app.screen.cursor.position == 3
        assert app.screen.query_one(KeysRow).bottom_keys[1].keys == keymaps.first(
            keys, "time.next", "time.reverse-next"
        )
        await pilot.press(*":set keymap default", "enter")
        await pilot.press("n")
        assert app.screen.cursor.position == 5
        assert app.screen.query_one(KeysRow).bottom_keys[1].keys == "nN"


async def test_the_users_own_key_takes_the_place_of_the_other():
    app = app_of(demo(), config=Config(keys={"time.next": "x", "act.command": ";"}))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("x")
        assert app.screen.cursor.position == 3
        await pilot.press("n")
        assert app.screen.cursor.position == 3
        await pilot.press(*";n", "enter")
        await pilot.pause()
        assert app.screen.cursor.position == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("keymap = 'vs'", "no keymap vs"),
        ("[keys]\n'time.stp' = 'x'", "did you mean time.step?"),
        ("[keys]\n'time.step' = 3", "needs a key"),
        (
            "[keys]\n'time.step' = 'x'\n'time.next' = 'x'",
            "x is bound to both time.step and time.next hint: bind time.next to another key",
        ),
        ("[keys]\n'time.step' = ''", "is not a key"),
        ("[keys]\n'time.step' = 'xx'", "'xx' is not a key"),
        ("[keys]\n'time.step' = 'control+x'", "'control+x' is not a key"),
        ("[keys]\ntime.stp = 'x'", "did you mean time.step?"),
        ("them = 'x'", "did you mean theme?"),
        ("keys = 3", "[keys] is not a table"),
        ("=", "is not valid TOML"),
    ],
)
def test_a_wrong_config_is_one_clear_line(text, says, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(GvizError) as error:
        read(path)
    assert error.value.exit_code == 2
    said = " ".join(error.value.lines())
    assert says in said
    assert str(path) in said


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("F11", "f11"),
        ("Ctrl+K", "ctrl+k"),
        ("Shift+F11", "shift+f11"),
        ("shift+n", "N"),
        ("esc", "escape"),
        ("+", "plus"),
        ("ctrl+]", "ctrl+right_square_bracket"),
        ("right_square_bracket", "right_square_bracket"),
        ("ö", "ö"),
    ],
)
def test_a_key_may_be_written_as_it_stands_on_the_keyboard(written, key):
    assert keymaps.keys_of("default", {"time.step": written})["time.step"] == (key,)


@pytest.mark.parametrize("keymap", keymaps.KEYMAPS)
def test_what_gviz_keys_prints_can_be_written_into_the_file(keymap):
    for id, known in keymaps.keys_of(keymap).items():
        for key in known:
            assert keymaps.keys_of(keymap, {id: keymaps.key_text(key)})[id] == (key,)


def test_an_id_needs_no_quotes(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("[keys]\ntime.reverse-step = 'x'\nact.quit = 'f4'\n")
    assert read(path).keys == {"time.reverse-step": "x", "act.quit": "f4"}


def test_a_config_that_is_right_is_read_and_none_is_none(tmp_path):
    assert read(tmp_path / "nothing") == Config()
    path = tmp_path / "config.toml"
    path.write_text("keymap = 'jetbrains'\nmotion = false\n[keys]\n'time.step' = ['z', ']']\n")
    own = read(path)
    assert keymaps.keys_of(own.keymap, own.keys)["time.step"] == ("z", "right_square_bracket")
    assert keymaps.keys_of(own.keymap, own.keys)["view.zoom"] == ()
    assert not own.motion


def test_every_keymap_gives_every_act_a_key_and_no_key_to_two():
    for name in keymaps.KEYMAPS:
        keys = keymaps.keys_of(name)
        assert all(keys[act.id] for act in keymaps.ACTS)
        given = [key for names in keys.values() for key in names]
        assert len(given) == len(set(given)), name


async def test_the_menu_of_a_node_by_key_and_by_the_right_button():
    app = app_of(demo(), at=9)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("M")
        await pilot.pause()
        assert isinstance(app.screen, MenuScreen)
        await pilot.press("j", *["down"] * 6, "k", "enter")
        await pilot.pause()
        assert app.screen.cursor.asker.watched == ["#5"]
        await pilot.click("#node", button=3)
        await pilot.pause()
        assert isinstance(app.screen, MenuScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, MenuScreen)


async def test_the_menu_bears_keys_and_presses_that_are_faster_than_it():
    app = app_of(demo(), at=9)
    async with app.run_test(size=(80, 24)) as pilot:
        overlay_pages.menu(app.screen)
        app.screen.action_move(1)  # a key comes before the list is there
        overlay_pages.menu(app._start)  # and another press that was on its way to the panel
        menu = app.screen
        await pilot.pause()
        assert menu.query_one(OptionList).highlighted == 1
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is app._start
        menu.action_move(1)
        await pilot.pause()
        assert app.screen is app._start


def test_answers_are_of_a_closed_kind():
    app = app_of(demo(), at=33)
    for text in ("help", "help next", "keys", "show", "info", "print x"):
        answer = finished(work(spec_of(parse(text)).run(app._start.session, parse(text))))
        assert isinstance(answer, View | Answer)


async def test_show_ascii_tells_how_the_screen_is_drawn():
    for ascii, drawn in ((False, "off"), (True, "on")):
        app = app_of(demo(), ascii=ascii)
        async with app.run_test(size=(80, 24)) as pilot:
            for text in ("set ascii on", "set ascii off"):
                app.screen.run_line(text)
                assert app.screen.remark.startswith("ascii can only be chosen when gviz starts")
                app.screen.run_line("show ascii")
                await pilot.pause()
                assert app.screen.remark.startswith(f"ascii is {drawn}: ")


def test_line_mode_keeps_what_is_set():
    said = transcript(demo(), "set ascii on", "set theme light", "show")
    assert "ascii is on: " in said
    assert "theme is gviz-light: " in said
