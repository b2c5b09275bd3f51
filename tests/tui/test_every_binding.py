"""Every key of the one table of bindings does something that can be seen, wherever the debugger stands."""

import pytest
from driving import app_of
from stories import demo

from gviz.tui.keymaps import ACTS, KEYMAPS, keys_of
from gviz.tui.screens.debugger_screen import DebuggerScreen

FIRST = {
    "find.next": ("slash", *"mul", "enter"),
    "find.previous": ("slash", *"mul", "enter"),
    "time.back": ("greater_than_sign",),
    "look.next": ("g",),
    "look.previous": ("G",),
    "look.page-up": ("9", "G"),
    "look.page-down": ("9", "g"),
    "look.input": ("G",),
    "look.user": ("g",),
    "look.down": ("u",),
    "view.leave": ("z",),
    "view.1": ("2",),
    "view.0": ("2",),
    "act.stop": ("space",),
}
"""What is pressed before, so that there is something to do."""


def seen(app):
    """Everything that a person can tell apart: the text of the screen, the node, the moment, which panels there are."""
    screen = app.screen
    main = next((one for one in app.screen_stack if isinstance(one, DebuggerScreen)), None)
    rows = tuple("".join(segment.text for segment in strip) for strip in screen._compositor.render_strips())
    styles = tuple(str(strip) for strip in screen._compositor.render_strips())
    playing = main is not None and main.controller.player.is_playing
    return type(screen), rows, styles, str(app.focused), playing, app._exit


async def changed(app, pilot, keys, before=()):
    await pilot.pause()
    await pilot.press(*before)
    await pilot.pause()
    start = seen(app)
    await pilot.press(*keys)
    await pilot.pause()
    return seen(app) != start


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.id)
async def test_the_keys_of_an_act_do_something_that_is_seen(act, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = app_of(demo(), at=12)
    async with app.run_test(size=(120, 40)) as pilot:
        assert await changed(app, pilot, keys_of("default")[act.id][:1], FIRST.get(act.id, ()))


@pytest.mark.parametrize("keymap", KEYMAPS)
async def test_every_key_of_a_keymap_leads_to_its_act(keymap):
    app = app_of(demo(), at=12)
    async with app.run_test(size=(120, 40)) as pilot:
        app.screen.run_line(f"set keymap {keymap}")
        await pilot.pause()
        bound = app.screen.active_bindings
        led = {(act.id, key): bound[key].binding.action for act in ACTS for key in keys_of(keymap)[act.id]}
        assert led == {(act.id, key): act.action for act in ACTS for key in keys_of(keymap)[act.id]}
