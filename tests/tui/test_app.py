"""Whole-screen behaviour: sizes, hostile text, failures of gviz itself, and laws that hold for any keys."""

import asyncio
import contextlib
import gc
import os
import tempfile

import pytest
from driving import app_of
from hypothesis import given, settings
from hypothesis import strategies as st
from stories import chain, demo, failed, hostile, iterations

from gviz.system.crash import report
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.tui.screens.debugger_screen import DebuggerScreen

KEYS = [*"sSnNfFcCtTjkhlgGudvziomq12345/:?,.'x", "space", "enter", "escape", "backspace", "tab", "up", "down", "left",
        "right", "left_curly_bracket", "right_curly_bracket", "less_than_sign", "greater_than_sign", "home", "end",
        "pagedown", "pageup"]  # fmt: skip


def shown(app):
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def debugger(app):
    return next(screen for screen in app.screen_stack if isinstance(screen, DebuggerScreen))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60), (60, 16), (84, 50), (40, 10)])
async def test_every_size_shows_the_status_and_fills_its_rows(size):
    app = app_of(demo())
    async with app.run_test(size=size) as pilot:
        await pilot.press("n")
        await pilot.pause()
        rows = shown(app).splitlines()
        assert len(rows) == size[1]
        assert all(len(row) == size[0] for row in rows)
        assert "event 3" in rows[0]
        assert "Help" in rows[-1]


async def test_garbage_is_not_searched_for_between_a_key_and_its_repaint():
    before = gc.get_threshold()
    app = app_of(demo())
    async with app.run_test(size=(80, 24)):
        assert gc.get_threshold()[2] > before[2]
    assert gc.get_threshold() == before


async def test_a_tiny_terminal_says_what_it_needs_and_recovers():
    app = app_of(demo())
    async with app.run_test(size=(39, 9)) as pilot:
        await pilot.pause()
        assert "terminal too small need 40x10" in " ".join(shown(app).split())
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "Graph" in shown(app)
        await pilot.resize_terminal(30, 8)
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_resize_does_not_disturb_who_is_typing():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon", *"got")
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        await pilot.press(*"o 9", "enter")
        assert app.screen.cursor.position == 9


async def test_hostile_text_is_shown_as_text():
    for view in ([], ["v"], ["v", "v"], ["o"], ["enter"]):
        app = app_of(hostile())
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press(*view)
            await pilot.pause()
            text = shown(app)
            assert text.replace("\n", "").isprintable()
            assert "\x1b" not in text
            assert "[red]y[/red]" in text


async def test_an_empty_recording_opens():
    app = app_of(Timeline(MemoryLog()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*"snctjkhlgGvv123", "enter", "escape", *"/x", "enter")
        await pilot.pause()
        assert "This recording has no tensors" in shown(app)


async def test_ascii_uses_nothing_else():
    app = app_of(demo(), ascii=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(*"nnnnnn")
        await pilot.pause()
        assert [row for row in shown(app).splitlines() if not row.isascii()] == []


@pytest.mark.parametrize("theme", ["gviz-dark", "gviz-light", "gviz-contrast", "gviz-ansi", "nord", "textual-light"])
async def test_every_theme_knows_the_colours(theme):
    app = app_of(demo(), theme=theme)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.theme == theme


async def test_without_colour_no_colour_is_chosen(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = app_of(demo(), theme="gviz-light")
    async with app.run_test(size=(80, 24)):
        assert (app.theme, app.native_ansi_color) == ("gviz-ansi", True)
    monkeypatch.setenv("NO_COLOR", "")
    assert app_of(demo()).theme == "gviz-dark"
    assert "NO_COLOR" not in os.environ


async def test_boxes_never_move_while_time_does():
    app = app_of(demo())
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.pause()
        canvas = app.screen.query_one("#graph")
        places = set()
        for key in "nnnnnsssfcNNCS":
            await pilot.press(key)
            places.add(tuple(sorted(map(repr, canvas.drawing.canvas.layout.places.values()))))
        assert len(places) == 1


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([demo, failed, iterations, hostile]), st.lists(st.sampled_from(KEYS), max_size=25))
def test_no_keys_break_it(story, keys):
    async def play():
        timeline = story()
        app = app_of(timeline)
        async with app.run_test(size=(80, 24)) as pilot:
            for key in keys:
                if not app.is_running or app._exit:
                    break
                await pilot.press(key)
                screen = debugger(app)
                assert 0 <= screen.cursor.position <= len(timeline)
                assert screen.moment.n == screen.cursor.position
                assert screen.cursor.selected in (0, *timeline.nodes)

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # x and Enter write a picture
        asyncio.run(play())


async def test_a_long_tape_is_drawn_only_where_it_is_seen():
    app = app_of(chain(3000))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("G")
        await pilot.pause()
        assert "3001" in shown(app)
        assert len(app.screen.query_one("#tape")._states) < 100


async def test_an_error_of_gviz_is_kept_for_the_report(monkeypatch):
    app = app_of(demo())
    secret = "value of the user"

    def broken(*_):
        raise RuntimeError(secret)

    monkeypatch.setattr(DebuggerScreen, "action_detail", broken)
    with pytest.raises(RuntimeError):
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("i")
    assert isinstance(app.failure, RuntimeError)
    assert app.return_code == 70
    assert app._exit_renderables == []
    assert secret not in report(app.failure)
    assert "action" in report(app.failure)


async def test_the_palette_may_be_closed_twice():
    app = app_of(demo())
    async with app.run_test() as pilot:
        app.action_command_palette()
        await pilot.pause()
        palette = app.screen
        palette.dismiss()
        palette.dismiss()
        await pilot.pause()
        assert app.screen is debugger(app)
        await pilot.press("n")
    assert app.failure is None
