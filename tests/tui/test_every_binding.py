"""Every key of the one table of bindings does something that can be seen, wherever the debugger stands."""

import pytest
from driving import app_of
from recording import timeline_of
from stories import demo

import gviz.engine as torch
from gviz.tui.keymaps import ACTS, KEYMAPS, keys_of
from gviz.tui.screens.debugger_screen import DebuggerScreen
from gviz.tui.screens.overlay_pages import SheetScreen

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


def trained():
    """A small net over two iterations."""

    def program():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (net(torch.ones(4, 2)) ** 2).mean().backward()
            optimizer.step()

    return timeline_of(program)


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


@pytest.mark.parametrize("panel", "1256780")
@pytest.mark.parametrize("zoomed", [False, True])
async def test_every_key_of_the_bar_and_of_questions_acts_or_answers_in_every_panel(panel, zoomed):
    ids = ("look.explain", "look.detail", "look.next", "look.previous", "look.inspect", "time.play", "look.page-down")
    for id in ids:
        app = app_of(trained(), at=30)
        async with app.run_test(size=(120, 40)) as pilot:
            assert await changed(app, pilot, keys_of("default")[id][:1], (panel, *"z" * zoomed)), id


async def test_e_in_the_modules_explains_the_gradient_of_the_chosen_one_or_says_why_it_cannot():
    app = app_of(trained(), at=len(trained()))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("7", "j", "e")
        await pilot.pause()
        assert isinstance(app.screen, SheetScreen)
        shown = " ".join(row for row in seen(app)[1] if "│" in row)
        assert "0.weight" in shown
        assert ".grad" in shown
        await pilot.press("escape", "7", "j", "e")
        await pilot.pause()
        assert "has no parameters, so there is no gradient to explain" in app.screen.remark


@pytest.mark.parametrize("keymap", KEYMAPS)
async def test_every_key_of_a_keymap_leads_to_its_act(keymap):
    app = app_of(demo(), at=12)
    async with app.run_test(size=(120, 40)) as pilot:
        app.screen.run_line(f"set keymap {keymap}")
        await pilot.pause()
        bound = app.screen.active_bindings
        led = {(act.id, key): bound[key].binding.action for act in ACTS for key in keys_of(keymap)[act.id]}
        assert led == {(act.id, key): act.action for act in ACTS for key in keys_of(keymap)[act.id]}


@pytest.mark.parametrize(("key", "text"), [("Z", "Z"), ("number_sign", "#"), ("tilde", "~"), ("ctrl+x", "ctrl+x")])
async def test_a_key_that_means_nothing_says_so(key, text):
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(key)
        assert app.screen.remark == f"{text} does nothing here. ?: help"
        await pilot.press("s")
        assert not app.screen.remark
        await pilot.press("question_mark", key)  # it also closes the page
        assert app.screen.remark == f"{text} does nothing here. ?: help"


async def test_a_key_that_a_prompt_reads_is_not_answered():
    app = app_of(demo(), at=1)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("colon", "Z", "number_sign", "backspace", "backspace", "escape")
        assert "does nothing" not in app.screen.remark
