"""Both front ends of the debugger, driven by a test."""

import io

from gviz.tui.app import DebuggerApp
from gviz.tui.beginning import Beginning
from gviz.tui.plain import debug
from gviz.tui.title import Title


def app_of(timeline, *, ascii=False, theme=None, config=None, **how):
    return DebuggerApp(timeline, Beginning(Title("demo.py"), **how), ascii=ascii, theme=theme, config=config)


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
    debug(timeline, commands, io.StringIO(), output, Beginning(at=at))
    return output.getvalue()
