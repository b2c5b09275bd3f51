"""The screen over what a program has done that waits in ``gviz.breakpoint()``: who leaves says what becomes of it."""

import io

import pytest
from driving import app_of
from stories import demo

from gviz.source.call_stack import Frame
from gviz.tui import line_mode, session_options, styled_lines
from gviz.tui.language.command import Command
from gviz.tui.line_mode import Conversation, debug
from gviz.tui.session_options import SessionOptions
from gviz.tui.widgets.source_panel import SourcePane


async def left(*keys, at=1):
    """How a screen was left by some keys, None if it was not."""
    app = app_of(demo(), at=at, waited_for=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
        return app.exit_action if app._exit else None


@pytest.mark.parametrize(("key", "how"), session_options.EXIT_ANSWERS.items())
async def test_q_asks_and_a_letter_answers(key, how):
    assert await left("q", key) == how


@pytest.mark.parametrize("key", ["q", "escape", "n", "y"])
async def test_any_other_key_leaves_all_as_it_is(key):
    assert await left("q", key) is None


async def test_continue_goes_to_the_end_and_from_there_lets_the_program_go_on():
    assert await left("c") is None
    assert await left("c", "c") == "continue"
    assert await left("n", at=33) is None


@pytest.mark.parametrize(("line", "how"), [*session_options.EXIT_COMMANDS.items(), ("q!", "stop")])
async def test_what_is_typed_answers_at_once(line, how):
    assert await left(":", *line, "enter") == how


async def test_the_end_says_how_the_program_goes_on():
    app = app_of(demo(), at=33, waited_for=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("s")
        assert app.screen.remark == "end of recording. c: resume the program · q: quit"
        await pilot.press("q")
        assert app.screen.remark == session_options.EXIT_QUESTION
        assert len(session_options.EXIT_QUESTION) < 80


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "how"), [*session_options.EXIT_ANSWERS.items(), ("", "continue")])
def test_line_by_line_a_person_is_asked(answer, how):
    said = io.StringIO()
    assert line_mode.exit_action(Conversation(0, Command("quit")), Terminal(f"{answer}\n"), said) == how
    assert len(said.getvalue()) < 80
    assert line_mode.exit_action(Conversation(0, Command("quit")), io.StringIO(f"{answer}\n"), said) == "stop"


def test_what_ends_otherwise_lets_the_program_go_on():
    assert [session_options.by_exit_code(code) for code in (0, 2, 70, -15)] == ["continue"] * 4
    codes = session_options.EXIT_CODES
    assert [session_options.by_exit_code(code) for code in codes.values()] == list(codes)


STACK = (Frame("/home/me/demo.py", "inner", 6, 6, 4, 9), Frame("/home/me/demo.py", "<module>", 2, 2, 0, 5))


async def test_the_source_and_the_stack_are_those_of_where_the_program_stands():
    app = app_of(demo(), at=3, waited_for=True, stack=STACK)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        source, screen = app.screen.query_one(SourcePane), app.screen
        assert "Source demo.py:6" in str(source.border_title)
        assert screen.stop.reason.words == "at demo.py:6 in inner"
        await pilot.press("5")
        await pilot.pause()
        assert "demo.py:6 in inner" in styled_lines.plain(screen.query_one("#stack").row(0))
        await pilot.press("1", "u")
        await pilot.pause()
        assert "Source demo.py:2, running :6" in str(source.border_title)
        await pilot.press("k")
        await pilot.pause()
        assert "Source demo.py:3, running :6" in str(source.border_title), "another node is looked at"
        await pilot.press("s", "S")
        await pilot.pause()
        assert "Source demo.py:2, running :6" in str(source.border_title), "back at that moment, and at that caller"


def test_line_by_line_it_is_said_where_the_program_stands():
    output = io.StringIO()
    options = SessionOptions(at=3, waited_for=True, stack=STACK)
    debug(demo(), ["where", "list", "up", "bt 1", "where -1", "w x"], io.StringIO(), output, options)
    said = output.getvalue()
    assert "the program is paused at demo.py:6 in inner.\n" in said
    assert "the program is paused at:\n  0  demo.py:6 in inner\n  1  demo.py:2\n" in said
    assert "demo.py:6 in inner:" in said.split("(gviz) list")[1]
    assert "demo.py:2:" in said.split("(gviz) up")[1]
    assert "(gviz) bt 1\nthe program is paused at:\n  0  demo.py:6 in inner\n(gviz)" in said
    assert "(gviz) where -1\nthe program is paused at:\n  1  demo.py:2\n(gviz)" in said
    assert "x is not a number of frames; hint: where 2, where -2." in said
