"""Both front ends of the debugger, driven by a test."""

import io

from textual.events import Key
from textual.keys import _character_to_key, key_to_character

from gviz.tui.app import DebuggerApp
from gviz.tui.line_mode import debug
from gviz.tui.session_options import SessionOptions, Title


def app_of(timeline, *, ascii=False, theme=None, config=None, **how):
    return DebuggerApp(timeline, SessionOptions(Title("demo.py"), **how), ascii=ascii, theme=theme, config=config)


def send(app, key):
    """A key as the terminal sends it, without waiting for what it does: the next may come in the same read."""
    name = _character_to_key(key) if len(key) == 1 else key
    event = Key(name, key if len(key) == 1 else key_to_character(name))
    event.set_sender(app)
    app._driver.send_message(event)


async def until(pilot, holds):
    """Wait until something is so."""
    for _ in range(1000):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError("it does not come")


def rows_of(app):
    """The rows of the screen."""
    return ["".join(part.text for part in strip) for strip in app.screen._compositor.render_strips()]


async def after(timeline, *keys, at=1, size=(80, 24)):
    """The screen after some keys."""
    app = app_of(timeline, at=at)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
        return app.screen


def transcript(timeline, *commands, at=None):
    """What line mode says to some commands."""
    output = io.StringIO()
    debug(timeline, commands, io.StringIO(), output, SessionOptions(at=at))
    return output.getvalue()
