"""The commands that leave the debugger for a while, and come back."""

import io
import sys
from contextlib import nullcontext

import pytest
from driving import app_of, transcript
from recording import timeline_of
from stories import demo

import gviz.engine as torch
from gviz.errors import GvizError
from gviz.tui.commands import editor_and_browser, python_shell
from gviz.tui.cursor import Cursor
from gviz.tui.glyphs import UNICODE
from gviz.tui.session import Session


@pytest.fixture(scope="module")
def product():
    def program():
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x
        y.backward()
        return y

    return timeline_of(program)


def at(timeline, n):
    return Session(Cursor(timeline, n), UNICODE)


def test_the_shell_knows_the_numbers_of_the_moment_and_cannot_change_them(product):
    known = python_shell.numbers(at(product, 2))
    assert {name: float(array) for name, array in known.items()} == {
        "x": 3.0,
        "y": 9.0,
    }
    known = python_shell.numbers(at(product, len(product)))
    assert float(known["x_grad"]) == 6.0
    with pytest.raises(ValueError, match="read-only"):
        known["x"][...] = 1.0


def test_the_shell_knows_the_numbers_of_an_early_moment_of_a_long_recording(product, monkeypatch):
    monkeypatch.setattr(python_shell, "NEWEST_NODES", 1)
    assert set(python_shell.numbers(at(product, 1))) == {"x"}
    assert "y" in python_shell.numbers(at(product, 2))


def test_the_shell_asks_as_print_does_and_exit_leaves_only_the_shell(product, monkeypatch, capsys):
    def typed(banner, local, exitmsg):
        answers.append((banner, local["ask"]("x.grad * 2"), local["ask"]("nosuch")))
        raise SystemExit

    answers = []
    monkeypatch.setattr(python_shell, "interact", typed)
    assert python_shell.python(at(product, len(product)), "").run() == "back from Python"
    ((banner, asked, nothing),) = answers
    assert f"event {len(product)}: np, x" in banner
    assert (asked, nothing) == (12.0, None)
    assert "there is no nosuch here" in capsys.readouterr().out


@pytest.mark.parametrize("typed", ["exit()\n", "quit()\n", "exit(3)\n"])
def test_exit_leaves_standard_input_open_for_the_debugger(product, monkeypatch, typed):
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert python_shell.python(at(product, 1), "").run() == "back from Python"
    assert not sys.stdin.closed


@pytest.mark.parametrize(
    ("editor", "told"), [("vi", ["vi", "+{line}", "{path}"]), ("code -w", ["code", "-w", "--goto", "{path}:{line}"])]
)
def test_the_editor_opens_where_the_node_was_made(product, monkeypatch, editor, told):
    called = []
    monkeypatch.setenv("EDITOR", editor)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(editor_and_browser.subprocess, "call", lambda command: called.append(command) or 0)
    session = at(product, 1)
    assert editor_and_browser.edit(session, "y").run() == f"back from {editor.split()[0]}"
    frame = product.info(session.cursor.selected).frames[0]
    assert called == [[part.format(path=frame.path, line=frame.line) for part in told]]
    assert "y = x * x" in frame_text(frame)


def frame_text(frame):
    with open(frame.path) as file:
        return file.readlines()[frame.line - 1]


def test_what_cannot_be_edited_says_why(product, monkeypatch):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    with pytest.raises(GvizError, match="no editor is set"):
        editor_and_browser.edit(at(product, 1), "")
    monkeypatch.setenv("EDITOR", "vi '")
    with pytest.raises(GvizError, match="cannot start vi '"):
        editor_and_browser.edit(at(product, 1), "")
    monkeypatch.setenv("EDITOR", "no-such-editor")
    with pytest.raises(GvizError, match="cannot start no-such-editor"):
        editor_and_browser.edit(at(product, 1), "").run()
    with pytest.raises(GvizError, match=r"there is no file /home/me/demo\.py here"):
        editor_and_browser.edit(at(demo(), 7), "")


def test_the_browser_gets_a_page_at_this_moment(product, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    said = editor_and_browser.browse(at(product, 2), "").run()
    assert said.startswith("opened /")
    (address,) = opened
    assert address.endswith("/recording.html#e2")
    with open(said.split()[1].rstrip(";")) as page:
        assert "</html>" in page.read()


def test_commands_from_a_pipe_are_not_taken_for_python(product):
    assert "python needs a terminal" in transcript(product, "!", "s")


async def test_on_the_screen_the_terminal_is_given_away_and_taken_back(monkeypatch):
    app = app_of(demo(), at=1)
    monkeypatch.setattr(python_shell, "interact", lambda *given, **more: None)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("I")
        assert app.screen.remark == "this cannot be done here: the terminal cannot be lent to another program"
        monkeypatch.setattr(app, "suspend", nullcontext)
        await pilot.press("I")
        assert app.screen.remark == "back from Python"
