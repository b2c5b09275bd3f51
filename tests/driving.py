"""Both front ends of the debugger, driven by a test."""

import io

from gviz.tui.app import DebuggerApp
from gviz.tui.cursor import start_of
from gviz.tui.plain import debug


def app_of(timeline, **options):
    at = options.pop("at", start_of(timeline))
    return DebuggerApp(timeline, title="demo.py", at=at, ascii=False, theme=None, **options)


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
    debug(timeline, commands, io.StringIO(), output, at=at)
    return output.getvalue()
