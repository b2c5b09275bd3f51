"""What can be found by typing a part of it: the palette, and the completion of the prompt."""

import re

import pytest
from driving import app_of, rows_of, send, until
from recording import timeline_of
from stories import demo
from textual.command import CommandPalette
from textual.widgets import Input

import gviz.engine as torch
from gviz.query.nodes import NamedNodes, last
from gviz.tui.commands.command_table import SPECS
from gviz.tui.config import Config
from gviz.tui.keymaps import ACTS, keys_of
from gviz.tui.language.completion import completions
from gviz.tui.language.parser import parse
from gviz.tui.screens.palette import entries, key_acts
from gviz.tui.widgets.prompt import Prompt


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("con", ["continue", "condition"]),
        ("goto lo", ["goto loss", "goto loss.grad"]),
        ("b on acc", ["b on accumulate"]),
        ("break m", ["break mul"]),
        ("break ch", ["break change"]),
        ("print norm(lo", ["print norm(loss", "print norm(loss.grad"]),
        ("info st", ["info stats"]),
        ("set key", ["set keymap"]),
        ("set keymap v", ["set keymap vscode"]),
        ("theme cs", ["theme cs231n"]),
        ("help ste", ["help step"]),
        ("nosuch x", []),
        ("step 1", []),
    ],
)
def test_a_line_is_completed_by_what_its_command_takes(text, found):
    assert completions(app_of(demo())._start.session, text)[: max(len(found), 1)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("break conv", ["break convolution"]),
        ("break op:co", ["break op:conv2d", "break op:convolution"]),
        ("break op:", ["break op:conv2d", "break op:sum", "break op:convolution"]),
    ],
)
def test_a_completed_operation_is_found(text, found):
    def program():
        torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3, requires_grad=True), torch.ones(1, 1, 2, 2)).sum()

    session = app_of(timeline_of(program))._start.session
    assert completions(session, text) == found
    for line in found:
        assert last(NamedNodes(session.timeline), line.partition(" ")[2], len(session.timeline))


def test_files_are_completed(tmp_path):
    (tmp_path / "walk.gdb").write_text("n")
    (tmp_path / "wide").mkdir()
    session = app_of(demo())._start.session
    assert completions(session, f"source {tmp_path}/wa") == [f"source {tmp_path}/walk.gdb"]
    assert completions(session, f"source {tmp_path}/wi") == [f"source {tmp_path}/wide/"]
    assert completions(session, f"source {tmp_path}/nothing/x") == []


def test_the_palette_knows_every_command_and_only_lines_that_can_be_read():
    known = list(entries(keys_of("vscode")))
    assert {text.split()[0] for _, text, _ in known} >= {spec.name for spec in SPECS}
    for title, text, _ in known:
        if not text.endswith((" ", "@")):
            parse(text)
        assert title
    assert any(title == "step [N]  (F11)" for title, _, _ in known)


async def test_the_palette_may_be_left_before_it_is_there():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        app.action_command_palette()
        assert isinstance(app.screen, CommandPalette)
        app.screen.dismiss()  # its own parts take Esc before it is mounted
        await pilot.pause()
        assert app.screen is app._start
        await pilot.press("ctrl+p", "escape", "n")
        await pilot.pause()
        assert app._start.cursor.position > 1


async def test_the_palette_may_come_back_while_it_leaves():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p")
        await pilot.pause()
        app.screen.dismiss()
        app.action_command_palette()
        await pilot.pause()
        assert isinstance(app.screen, CommandPalette)


MOVES = ("pageup", "pagedown", "ctrl+home", "ctrl+end", "up", "down", "home", "end", "tab", "shift+tab")


@pytest.mark.parametrize("opener", ["ctrl+p", "M", "P", "question_mark", "enter", "colon"])
async def test_a_key_may_come_before_what_it_moves_in_is_laid_out(opener):
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for move in MOVES:
            for key in (opener, move, move):
                send(app, key)
            await pilot.pause(0.01)
            while app.screen is not app._start or app._start.query_one(Prompt).display:
                await pilot.press("escape")


async def test_what_is_typed_for_the_palette_in_one_go_is_carried_out():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for key in ("ctrl+p", *"go to end", "enter"):
            send(app, key)
        await until(pilot, lambda: (app.screen, app._start.cursor.position) == (app._start, 33))


async def test_the_palette_says_where_nothing_fits():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p", *"zzzz")
        await pilot.pause()
        assert any("No matches" in row for row in rows_of(app))
        await pilot.press("enter", "pagedown", "up")
        assert isinstance(app.screen, CommandPalette)


async def test_the_palette_carries_out_and_asks_on():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        for typed, done in (("break on accum", 1), ("break on free", 2)):
            await pilot.press("ctrl+p")
            await pilot.pause()
            assert isinstance(app.screen, CommandPalette)
            await pilot.press(*typed)
            await app.workers.wait_for_complete()
            await pilot.pause()
            await pilot.press("enter")
            await pilot.pause()
            assert len(app.screen.cursor.breakpoints.listed) == done


async def test_tab_goes_through_the_completions_and_back():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*":con", "tab")
        entry = app.screen.query_one(Input)
        assert entry.value == "continue"
        await pilot.press("tab")
        assert entry.value == "condition"
        await pilot.press("tab")
        assert entry.value == "con"
        await pilot.press("tab", "enter")
        await pilot.pause()
        assert app.screen.cursor.position == 33


async def test_the_only_completion_is_gone_on_from():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*":got", "tab", *"los", "tab")
        entry = app.screen.query_one(Input)
        assert entry.value == "goto loss"
        await pilot.press("tab")
        assert entry.value == "goto loss.grad"


async def test_what_is_being_typed_waits_behind_the_history():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*":next", "enter", *":pri", "up")
        entry = app.screen.query_one(Input)
        assert entry.value == "next"
        await pilot.press("up", "down")
        assert entry.value == "pri"


async def test_a_search_is_not_completed():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("/", *"con", "tab")
        assert app.screen.query_one(Input).value == "con"


async def chosen(pilot, typed):
    """Open the palette, type into it, and take what comes first."""
    await pilot.press("ctrl+p", *typed)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    if isinstance(pilot.app.screen, CommandPalette):
        await pilot.press("enter")
        await pilot.pause()


def test_the_palette_knows_what_every_key_does():
    keys = keys_of("default")
    lines, actions = ({text.strip() for _, text, _ in found} for found in (entries(keys), key_acts(keys)))
    for act in ACTS:
        word, _, arguments = act.action.partition("(")
        line = " ".join(re.findall(r"'(\S+)'", arguments))
        assert line in lines if word in ("travel", "do") else act.action in actions or act.id == "act.palette", act.id


async def test_the_palette_does_what_a_key_does():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await chosen(pilot, "this panel only")
        assert app.screen.query_one("#graph").display
        assert not app.screen.query_one("#node").display


async def test_the_palette_offers_nothing_that_the_debugger_does_not_know():
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await chosen(pilot, "maximize")
        assert isinstance(app.screen, CommandPalette)  # nothing fits


@pytest.mark.parametrize("page", ["question_mark", "enter", "M", "P"])
async def test_a_page_leaves_where_the_palette_comes(page):
    app = app_of(demo())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(page)
        await chosen(pilot, "go to end")
        assert (app.screen, app.screen.cursor.position) == (app._start, 33)


async def test_the_palette_shows_what_stands_in_brackets():
    app = app_of(demo())
    async with app.run_test(size=(100, 120)) as pilot:
        await pilot.press("ctrl+p", *"break")
        await app.workers.wait_for_complete()
        await pilot.pause()
        rows = rows_of(app)
        assert any("break [PLACE]" in row for row in rows)
        assert any("on EVENT [PLACE]" in row for row in rows)


async def test_the_palette_keeps_to_ascii():
    app = app_of(demo(), ascii=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p", *"go to")
        await app.workers.wait_for_complete()
        await pilot.pause()
        rows = rows_of(app)
        assert any("Go to event..." in row for row in rows)
        assert all(row.isascii() for row in rows)


async def test_the_palette_has_the_key_that_the_keymap_gives_it():
    app = app_of(demo(), config=Config(keys={"act.palette": "ctrl+k", "time.step": "ctrl+p"}))
    async with app.run_test(size=(80, 24)) as pilot:
        at = app.screen.cursor.position
        await pilot.press("ctrl+p")
        assert app.screen.cursor.position == at + 1
        await pilot.press("question_mark", "ctrl+k")
        assert isinstance(app.screen, CommandPalette)
