"""What people type without thinking, because gdb, pdb or vi take it: it works, or a line says what to type instead."""

import re

import pytest
from driving import after, app_of, transcript
from stories import Story, demo

from gviz.errors import GvizError
from gviz.tui.commands.command_table import BY_NAME, SPECS
from gviz.tui.commands.info_pages import PAGES
from gviz.tui.language.other_debuggers import INFO_INSTEAD, INSTEAD
from gviz.tui.language.parser import parse
from gviz.tui.widgets.prompt import Prompt

KNOWN = """bt; bt 2; info b; info display; info locals; p x; p x.item(); l; l 3; l 2,4; l .; ll; longlist; finish
tbreak 4; cond 1; ignore 1 3; disable; enable 1; display x; display; undisplay 1; commands; end; jump 5; return
!x * 2; pp x; whatis x; ptype x; unt; advance 4; until 4; set var x = 5; w; help b; r; n 2; cl 1; q!"""


def test_what_fingers_know_is_understood():
    said = transcript(demo(), "break 4", *re.split("; |\n", KNOWN), at=5)
    for word in ("there is no", "takes no argument", "needs ", "ambiguous", "cannot"):
        assert word not in said, said[said.index(word) - 200 :]


@pytest.mark.parametrize("word", INSTEAD)
def test_the_words_of_others_are_answered_with_what_is_typed_here(word):
    with pytest.raises(GvizError) as caught:
        parse(f"{word} 3")
    assert caught.value.hint == INSTEAD[word]
    assert len(f"{caught.value.what} ({caught.value.hint})") < 80, "it has one row of the screen"
    assert word not in BY_NAME
    assert not any(spec.name.startswith(word) for spec in SPECS)


@pytest.mark.parametrize("moment", ["iteration 12", "forward 2", "bwd 3", "backward", "nan"])
def test_a_moment_alone_is_answered_with_goto(moment):
    with pytest.raises(GvizError, match="there is no command") as caught:
        parse(moment)
    assert caught.value.hint == f"goto {moment} goes there"


@pytest.mark.parametrize("word", INFO_INSTEAD)
def test_the_same_of_what_follows_info(word):
    assert f"hint: {INFO_INSTEAD[word]}." in transcript(demo(), f"info {word}")
    assert not any(page.startswith(word) for page in PAGES)


def test_what_is_named_instead_is_a_command_or_a_key():
    named = re.findall(r"(?:^|, )([a-z-]+)\b", "\n".join([*INSTEAD.values(), *INFO_INSTEAD.values()]), re.MULTILINE)
    elsewhere = {"ctrl", "v", "tab", "fg", "the", "gviz", "up"}
    assert set(named) <= {*BY_NAME, *elsewhere}, set(named) - {*BY_NAME, *elsewhere}


def test_info_takes_the_beginning_of_a_word():
    assert transcript(demo(), "info w") == transcript(demo(), "info watch").replace("info watch", "info w")
    assert "info s is ambiguous; hint: it may mean saved, stats." in transcript(demo(), "info s")


def test_locals_are_the_names_and_what_they_hold():
    said = transcript(demo(), "info locals", at=5)
    assert "3 names of tensors\n  a = -6  #3\n" in said
    assert "no tensor has a name yet" in transcript(demo(), "info locals", at=0)


def test_list_shows_the_lines_it_is_asked_for():
    said = transcript(demo(), "list 2,3", "list 3,2", "list 99", "longlist")
    assert "\n     2\n" in said
    assert "line 2 is before line 3; hint: list 2,3." in said
    assert "lines." in said


def test_longlist_is_the_function_around_the_line():
    from gviz.tui.commands.source_listing import _around_line

    text = "x = 1\ndef f():\n    def g():\n        return 2\n    return g\ny = 3\n"
    assert [_around_line(text, line) for line in (1, 2, 4, 5)] == [(1, 6), (2, 5), (3, 4), (2, 5)]
    assert _around_line("def f(:\n  x\n", 1) == (1, 2)


async def test_the_screen_leaves_without_a_question_too():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.run_line("q!")
        await pilot.pause()
    assert app._exit


async def test_a_word_of_others_has_one_row_of_the_screen():
    screen = await after(demo(), ":", *"frame", "enter")
    assert screen.remark == f"there is no command 'frame' ({INSTEAD['frame']})"


def long_program(lines):
    """A program of so many lines, the last but three of which makes its second node."""
    story = Story(source="".join(f"y{number} = {number}\n" for number in range(1, lines + 1)))
    x = story.leaf("x", 3, lines // 2)
    story.mul("y", x, x, lines - 3)
    return story.timeline()


def listed(said):
    """The numbers of the lines of source in a transcript."""
    return [int(found) for found in re.findall(r"^.? {1,5}(\d+)(?: |$)", said, re.MULTILINE)]


def test_list_again_goes_on_behind_what_it_has_shown():
    timeline = long_program(40)
    assert listed(transcript(timeline, "list 3", "list", "l -", "l .", at=1)) == [
        *range(1, 8), 20, *range(8, 17), *range(1, 8), *range(16, 25)
    ]  # fmt: skip
    assert listed(transcript(timeline, "list 5,6", "", "", at=1)) == [5, 6, *range(7, 16), *range(16, 25)]
    assert listed(transcript(timeline, "list", "n", "list", at=1)) == [*range(16, 25), *range(33, 41)]


def test_list_says_where_the_file_ends():
    said = transcript(long_program(20), "list 15,20", "l", "list 1,2", "l -")
    assert "demo.py has 20 lines; hint: list . shows the current one." in said
    assert "demo.py begins there; hint: list . shows the current one." in said


def test_an_empty_line_repeats_what_looks_and_nothing_that_sets_something():
    again = transcript(demo(), "where", "", at=3).split("(gviz) ")
    assert again[1].removeprefix("where") == again[2]
    assert transcript(demo(), "break x", "", "info break").count("breakpoint 1") == 1
    assert "there is no" not in transcript(demo(), "info watch", "")


async def test_ctrl_d_leaves_from_an_empty_prompt_as_from_anywhere():
    for keys in (["ctrl+d"], [":", "ctrl+d"]):
        app = app_of(demo())
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press(*keys)
            await pilot.pause()
        assert app._exit, keys


async def test_ctrl_d_in_a_line_takes_the_next_letter():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(":", *"xy", "left", "ctrl+d")
        prompt = app.screen.query_one(Prompt)
        assert (prompt.display, prompt.line) == (True, ":x")


async def test_ctrl_d_ends_the_commands_of_a_breakpoint_and_leaves_a_search():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*":break x", "enter", *":commands", "enter", *"print x", "enter")
        await pilot.pause()
        await pilot.press("ctrl+d")
        await pilot.pause()
        assert app.screen.cursor.breakpoints.commands_of(1) == ("print x",)
        await pilot.press("/", "ctrl+d")
        await pilot.pause()
        assert not app.screen.query_one(Prompt).display
    assert not app._exit
