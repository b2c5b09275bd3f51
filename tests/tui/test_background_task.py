"""A command that takes long: the screen stays awake, a key ends it, and it is answered as a short one is."""

import asyncio
import sys

import pytest
from driving import app_of, transcript
from stories import iterations
from textual.timer import Timer

from gviz.errors import GvizError
from gviz.system.cooperative_work import finished
from gviz.trace import breakpoint_hits, error_index
from gviz.tui import line_mode
from gviz.tui.cursor import CursorStop
from gviz.tui.language.command import Command, View, work
from gviz.tui.language.parser import parse, spec_of
from gviz.tui.screens import controller
from gviz.tui.screens.overlay_pages import Sheet

LONG = ("check", "check all", "diff @1 @60", "info params", "info graph", "info leaks",
        "/nosuchname", "/nan", "break finding", "until y if value > 1e9", "next 20", "continue", "last y",
        "first y.grad", "info locals")  # fmt: skip
"""Commands that look at many nodes or events."""


@pytest.fixture
def slow(monkeypatch):
    """Nothing is done at once: events are looked at seven at a time, and then the screen has its turn."""
    monkeypatch.setattr(breakpoint_hits, "STRETCH", 7)
    monkeypatch.setattr(controller, "AT_ONCE_SECONDS", -1.0)


def story():
    return iterations(6)


def compared(reply):
    """What can be compared of an answer."""
    return (reply.title, list(reply.lines(80))) if isinstance(reply, View) else reply


def at_once(text):
    """The answer to a command that nothing else waits for."""
    session = app_of(story(), at=90)._start.session
    try:
        return compared(finished(work(spec_of(parse(text)).run(session, parse(text)))))
    except GvizError as error:
        return error.what


@pytest.mark.parametrize("text", LONG)
async def test_a_long_command_is_answered_as_a_short_one_is(slow, monkeypatch, text):
    replies = []
    monkeypatch.setattr(controller.Controller, "show", lambda self, reply: replies.append(compared(reply)))
    app = app_of(story(), at=90)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.run_line(text)
        assert app.screen.busy
        assert app.screen.remark.endswith("; Ctrl+C stops")
        while app.screen.busy:
            await pilot.pause()
        assert (replies or [app.screen.remark])[0] == at_once(text)


async def test_a_long_command_is_answered_on_a_machine_so_busy_that_the_time_of_a_timer_is_over_before_it_is_set(
    slow, monkeypatch
):
    async def too_late(timer, run=Timer._run):
        if timer._repeat is None:  # Textual leaves out a time that is over: a timer for once has no other
            await run(timer)

    monkeypatch.setattr(Timer, "_run", too_late)
    app = app_of(story(), at=90)
    async with app.run_test(size=(80, 24)):
        screen = app.screen
        screen.run_line("info params")
        for _ in range(1000):
            if not screen.busy:
                break
            await asyncio.sleep(0.01)
        assert not screen.busy


async def test_a_check_says_what_it_looks_for_and_how_far_it_is(slow):
    said = []
    app = app_of(story(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        screen.watch(screen, "remark", lambda remark: said.append(remark))
        screen.run_line("check")
        while screen.busy:
            await pilot.pause()
        await pilot.pause()
        assert isinstance(app.screen.query_one(Sheet), Sheet)
    assert "checking: leaves, 1 of" in " ".join(said)
    assert "checking: unused losses, " in " ".join(said)


@pytest.mark.parametrize("key", ["ctrl+c", "escape", "s"])
@pytest.mark.parametrize(("text", "name"), [("break y if value > 1e9;;continue", "continue"), ("check", "check")])
async def test_a_key_ends_it(slow, key, text, name):
    app = app_of(story(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        for line in text.split(";;"):
            app.screen.run_line(line)
        await pilot.press(key)
        assert not app.screen.busy
        assert app.screen.cursor.position == (2 if key == "s" else 1)
        assert f"{name} was stopped" in app.screen.remark or key == "s"
        await pilot.pause(0.1)
        assert not app.screen_stack[-1].query(Sheet)


async def test_a_key_that_moves_no_time_is_taken_meanwhile(slow):
    app = app_of(story(), at=90)
    async with app.run_test(size=(80, 24)) as pilot:
        screen, before = app.screen, app.screen.cursor.selected
        screen.run_line("check")
        await pilot.press("k")
        assert screen.cursor.selected != before
        while screen.busy:
            await pilot.pause()
        await pilot.pause()
        assert app.screen.query(Sheet)


@pytest.mark.parametrize(("name", "start"), [("continue", 1), ("reverse-continue", None)])
async def test_a_long_search_ends_where_a_short_one_does(slow, name, start):
    timeline = story()
    app = app_of(timeline, at=len(timeline) if start is None else start)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.run_line("break y if value > 1e9")
        app.screen.run_command(Command(name))
        assert app.screen.busy
        assert "Ctrl+C stops" in app.screen.remark
        while app.screen.busy:
            await pilot.pause()
        assert app.screen.cursor.position == (0 if start is None else len(timeline))
        assert app.screen.cursor.breakpoints.listed


async def test_what_waits_behind_it_is_carried_out_after_it(slow):
    timeline = story()
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.run_line("break y if value > 1e9")
        app.screen.controller.reader.typed("watch x")
        app.screen.controller.reader.typed("continue")
        app.screen.show_result_of(app.screen.controller.run_waiting)
        assert app.screen.cursor.asker.watched == []
        while app.screen.busy:
            await pilot.pause()
        assert app.screen.cursor.asker.watched == ["x"]


async def test_the_next_match_is_looked_for_while_the_screen_is_awake(slow):
    app = app_of(story(), at=90)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.run_line("/y")
        while app.screen.busy:
            await pilot.pause()
        seen = [app.screen.selected]
        for key in (",", ","):
            await pilot.press(key)
            while app.screen.busy:
                await pilot.pause()
            seen.append(app.screen.selected)
        assert len(set(seen)) == 3


@pytest.mark.parametrize("text", ["continue", "goto nan", "info stats", "/nan"])
async def test_values_that_nobody_has_looked_at_are_looked_at_in_parts(slow, monkeypatch, text):
    monkeypatch.setattr(error_index, "_PART", 7)
    timeline = story()
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        screen, said = app.screen, []
        timeline.error_index._searched = 0
        screen.watch(screen, "remark", lambda remark: said.append(remark))
        screen.run_line(text)
        while screen.busy:
            await pilot.pause()
    assert any(remark.startswith("looking for nan and inf: event 7 of") for remark in said)


@pytest.mark.parametrize("terminal", [True, False])
def test_line_mode_says_on_a_terminal_how_far_it_has_come(slow, monkeypatch, capsys, terminal):
    monkeypatch.setattr(line_mode, "PROGRESS_SECONDS", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    said = transcript(story(), "break y if value > 1e9", "continue", at=1)
    assert "end of recording" in said
    assert "looking for a stop" not in said
    assert ("looking for a stop: event 13 of" in capsys.readouterr().err) is terminal


def test_the_answer_of_a_short_command_is_no_work():
    session = app_of(story(), at=1)._start.session
    assert isinstance(finished(work(spec_of(Command("step")).run(session, Command("step")))), CursorStop)
