"""What people type without thinking, because gdb, pdb or vi take it: it works, or a line says what to type instead."""

import re

import pytest
from driving import after, app_of, transcript
from stories import demo

from gviz.errors import GvizError
from gviz.tui.commands.informing import PAGES
from gviz.tui.commands.table import BY_NAME, SPECS
from gviz.tui.language.habits import INFO_INSTEAD, INSTEAD
from gviz.tui.language.parsing import parse

KNOWN = """bt; info b; info display; info locals; p x; p x.item(); l; l 3; l 2,4; l .; ll; longlist; finish; tbreak 4
cond 1; ignore 1 3; disable; enable 1; display x; display; undisplay 1; commands; end; jump 5; return; !x * 2; pp x
whatis x; ptype x; unt; advance 4; until 4; set var x = 5; w; help b; r; n 2; delete 1; q!"""


def test_what_fingers_know_is_understood():
    said = transcript(demo(), "break 4", *re.split("; |\n", KNOWN), at=5)
    for word in ("there is no", "takes nothing", "needs ", "ambiguous", "cannot"):
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
    from gviz.tui.commands.listing import _around_line

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
