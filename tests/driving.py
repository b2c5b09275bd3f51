"""Both front ends of the debugger, driven by a test."""

import io

from gviz.tui.app import DebuggerApp
from gviz.tui.cursor import start_of
from gviz.tui.plain import debug
from gviz.tui.title import Title


def app_of(timeline, *, at=None, ascii=False, theme=None, **options):
    start = start_of(timeline) if at is None else at
    return DebuggerApp(timeline, title=Title("demo.py"), at=start, ascii=ascii, theme=theme, **options)


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
