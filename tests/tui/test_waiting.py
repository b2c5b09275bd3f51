"""The screen over what a program has done that waits in ``gviz.breakpoint()``: who leaves says what becomes of it."""

import io

import pytest
from driving import app_of
from stories import demo

from gviz.tui import leaving, plain
from gviz.tui.language.command import Command
from gviz.tui.plain import Conversation


async def left(*keys, at=1):
    """How a screen was left by some keys, None if it was not."""
    app = app_of(demo(), at=at, waited_for=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
        return app.leaving if app._exit else None


@pytest.mark.parametrize(("key", "how"), leaving.ANSWERS.items())
async def test_q_asks_and_a_letter_answers(key, how):
    assert await left("q", key) == how


@pytest.mark.parametrize("key", ["q", "escape", "n", "y"])
async def test_any_other_key_leaves_all_as_it_is(key):
    assert await left("q", key) is None


async def test_continue_goes_to_the_end_and_from_there_lets_the_program_go_on():
    assert await left("c") is None
    assert await left("c", "c") == "go on"
    assert await left("n", at=33) is None


@pytest.mark.parametrize(("line", "how"), [*leaving.ACTS.items(), ("q!", "stop")])
async def test_what_is_typed_answers_at_once(line, how):
    assert await left(":", *line, "enter") == how


async def test_the_end_says_how_the_program_goes_on():
    app = app_of(demo(), at=33, waited_for=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("s")
        assert app.screen.remark == "end of recording: c lets the program go on, q asks"
        await pilot.press("q")
        assert app.screen.remark == leaving.QUESTION
        assert len(leaving.QUESTION) < 80


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("answer", "how"), [*leaving.ANSWERS.items(), ("", "go on")])
def test_line_by_line_a_person_is_asked(answer, how):
    said = io.StringIO()
    assert plain.leaving(Conversation(0, Command("quit")), Terminal(f"{answer}\n"), said) == how
    assert len(said.getvalue()) < 80
    assert plain.leaving(Conversation(0, Command("quit")), io.StringIO(f"{answer}\n"), said) == "stop"


def test_what_ends_otherwise_lets_the_program_go_on():
    assert [leaving.by_exit_code(code) for code in (0, 2, 70, -15)] == ["go on"] * 4
    assert [leaving.by_exit_code(code) for code in leaving.EXIT_CODES.values()] == list(leaving.EXIT_CODES)
