"""A long search for the next stop: the screen stays awake, ctrl+c ends it, and it ends where a short one does."""

import pytest
from driving import app_of, transcript
from stories import iterations

from gviz.trace import stops
from gviz.tui import plain
from gviz.tui.language.command import Command
from gviz.tui.screens import searching


@pytest.fixture
def slow(monkeypatch):
    """Nothing is found at once: events are looked at seven at a time, and then the screen has its turn."""
    monkeypatch.setattr(stops, "STRETCH", 7)
    monkeypatch.setattr(searching, "AT_ONCE_SECONDS", -1.0)


def story():
    return iterations(6)


@pytest.mark.parametrize(("name", "start"), [("continue", 1), ("reverse-continue", None)])
async def test_a_long_search_ends_where_a_short_one_does(slow, monkeypatch, name, start):
    timeline = story()
    app = app_of(timeline, at=len(timeline) if start is None else start)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.run_line("break y if value > 1e9")
        app.screen.run_command(Command(name))
        assert app.screen.busy
        assert "ctrl+c stops" in app.screen.remark
        while app.screen.busy:
            await pilot.pause()
        assert app.screen.cursor.position == (0 if start is None else len(timeline))
        assert app.screen.cursor.breakpoints.listed


async def test_what_waits_behind_a_search_is_carried_out_after_it(slow):
    timeline = story()
    app = app_of(timeline, at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.run_line("break y if value > 1e9")
        app.screen.reader.typed("watch x")
        app.screen.reader.typed("continue")
        app.screen.orders.attempt(app.screen.orders.go_on)
        assert app.screen.cursor.asker.watched == []
        while app.screen.busy:
            await pilot.pause()
        assert app.screen.cursor.asker.watched == ["x"]


@pytest.mark.parametrize("key", ["ctrl+c", "escape", "s"])
async def test_a_key_ends_a_search(slow, key):
    app = app_of(story(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.run_line("break y if value > 1e9")
        app.screen.run_command(Command("continue"))
        await pilot.press(key)
        assert not app.screen.busy
        assert app.screen.cursor.position == (2 if key == "s" else 1)
        assert "stopped" in app.screen.remark or key == "s"


def test_line_mode_says_how_far_it_has_come(slow, monkeypatch):
    monkeypatch.setattr(plain, "PROGRESS_SECONDS", -1.0)
    said = transcript(story(), "break y if value > 1e9", "continue", at=1)
    assert "looking for a stop: event 13 of" in said
    assert "end of recording" in said
