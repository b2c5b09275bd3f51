"""Keys that arrive in one read do what they do one by one."""

import random

import pytest
from driving import app_of, send, until
from stories import demo
from textual.widgets import Input, OptionList

from gviz.tui.widgets.node_panel import NodePanel
from gviz.tui.widgets.prompt import Prompt

LINES = (
    [":", *"watch x.grad", "enter"], [":", *"goto loss", "enter"], ["/", *"op:mul", "enter"], [":", *"bre", "tab"],
    ["ctrl+p", *"go to end", "enter"], ["p", *"x + 1", "enter"], ["M", "down", "down", "enter"], ["m", "a"],
    ["apostrophe", "a"], ["P", "down", "enter"], ["question_mark", "pagedown"], ["B", "enter"], ["w", "enter"],
    [":", *"print x", "escape"], ["ctrl+p", "escape"], [":", *"print x", "left", "backspace", "2", "enter"],
    [":", "up", "enter"], ["ctrl+p", "pagedown", "enter"], [":", *"info break", "enter"], ["e", "j"], ["enter", "j"],
)  # fmt: skip
KEYS = [*"snSNtTcC<>jkgGhlvziboey1234567890,.;", "escape", "enter", "tab", "up", "down", "home", "end", "backspace"]


def everything(app):
    """What keys have done."""
    start, prompt = app._start, app._start.query_one(Prompt)
    cursor = start.cursor
    lists = [(each.highlighted, each.option_count) for each in app.screen.query(OptionList)]
    return {
        "screen": type(app.screen).__name__,
        "lists": lists,
        "position": cursor.position,
        "selected": cursor.selected,
        "breakpoints": [each.words for each in cursor.breakpoints.listed],
        "watched": tuple(cursor.asker.watched),
        "prompt": (prompt.display, prompt.query_one(Input).value if prompt.display else ""),
        "panels": sorted(each.id for each in start.query(".-panel") if each.display),
        "focus": app.focused.id if app.focused is not None else None,
        "full": start.full,
    }


def typed(seed):
    """Some keys, many of them such that the next depends on what the one before has opened."""
    chance = random.Random(seed)
    keys = []
    for _ in range(6):
        keys += chance.choice(LINES) if chance.random() < 0.6 else chance.choices(KEYS, k=3)
    return keys


async def done(keys, *, at_once, size=(80, 24)):
    app = app_of(demo())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for key in keys:
            send(app, key)
            if not at_once:
                await quiet(app, pilot)
        await quiet(app, pilot)
        return everything(app)


async def quiet(app, pilot):
    """Wait until everything that was typed is done."""
    for _ in range(3):
        await pilot.pause(0.01)
        await until(pilot, lambda: not app.typed_ahead)


@pytest.mark.parametrize("seed", range(6))
async def test_keys_at_once_do_what_they_do_one_by_one(seed):
    keys = typed(seed)
    assert await done(keys, at_once=True) == await done(keys, at_once=False), keys


@pytest.mark.parametrize(("keys", "position"), [("s" * 20, 21), ("s" * 30 + "S" * 9, 22), ("n" * 3 + "sss", None)])
async def test_a_key_that_is_held_down_loses_no_key_and_draws_less_often_than_it_is_sent(keys, position, monkeypatch):
    drawn = []
    draw = NodePanel.draw
    monkeypatch.setattr(NodePanel, "draw", lambda self: (drawn.append(1), draw(self))[1])
    one_by_one = (await done(keys, at_once=False))["position"]
    often = len(drawn)
    drawn.clear()
    at_once = (await done(keys, at_once=True))["position"]
    assert at_once == one_by_one == (position or one_by_one)
    assert len(drawn) < often
