"""Text that is pasted while a panel has the focus goes into the prompt, and runs only after Enter."""

import pytest
from driving import app_of
from stories import demo
from textual import events

from gviz.tui.widgets.prompt import Prompt


@pytest.mark.parametrize("pasted", [":goto 5", "goto 5\n", "\n  :goto 5\nq\n"])
async def test_a_paste_over_the_panels_waits_in_the_prompt(pasted):
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        before = app._start.cursor.position
        app.post_message(events.Paste(pasted))
        await pilot.pause()
        assert app._start.query_one(Prompt).line == ":goto 5"
        assert app._start.cursor.position == before
        await pilot.press("enter")
        await pilot.pause()
        assert app._start.cursor.position == 5


async def test_an_empty_paste_does_nothing():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        app.post_message(events.Paste(" \n"))
        await pilot.pause()
        assert not app._start.query_one(Prompt).display
