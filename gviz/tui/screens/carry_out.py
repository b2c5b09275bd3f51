"""The commands of the prompt that concern the screen and not the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.explain import finding
from gviz.explain.docstring import about
from gviz.plain_text import clipped
from gviz.tui import asking, stopping
from gviz.tui.commands import Command, help_lines
from gviz.tui.cursor import explanation
from gviz.tui.drawing.explanation import explanation_lines
from gviz.tui.drawing.keys import commands_page
from gviz.tui.lines import line, paragraphs, wrapped
from gviz.tui.widgets.node import NodePanel

if TYPE_CHECKING:
    from gviz.tui.screens.debugger import DebuggerScreen

_PANELS = {"list": 1, "output": 2, "where": 3, "tape": 4}


def carry_out(screen: DebuggerScreen, command: Command) -> None:
    """Do what a command asks of the screen; raises GvizError where it cannot be done."""
    acts: dict[str, Callable[[str], None]] = {
        "quit": lambda _: screen.action_quit(),
        "lesson": lambda _: _lesson(screen),
        "help": lambda word: _help(screen, word),
        "theme": lambda name: _theme(screen, name),
        "export": lambda path: _export(screen, path),
        "print": lambda place: _inspect(screen, place),
        "explain": lambda text: _explain(screen, text),
    }
    if command.name in _PANELS:
        screen.action_panel(_PANELS[command.name])
        if command.name == "where":
            screen.query_one(NodePanel).scroll_end(animate=False)  # the call stack stands last
    elif command.name in stopping.COMMANDS:
        cursor = screen.cursor
        _say(screen, stopping.carry_out(cursor.breakpoints, command.name, command.argument, cursor.selected))
        screen.breaks += 1
    elif command.name in asking.COMMANDS:
        _say(screen, screen.cursor.asker.carry_out(command.name, command.argument, screen.cursor.position))
        screen.watched = tuple(screen.cursor.asker.watched)
    else:
        acts[command.name](command.argument)


def _say(screen: DebuggerScreen, answers: list[str]) -> None:
    """One line in the bottom row, more on a page of their own."""
    if len(answers) == 1:
        screen.say(answers[0])
    else:
        screen.show_sheet("Answer", lambda width: [row for text in answers for row in wrapped(line(text), width, 3)])


def _explain(screen: DebuggerScreen, text: str) -> None:
    rows = list(finding.lines(explanation(screen.cursor, text)))
    screen.show_sheet("Why", lambda width: explanation_lines(rows, width))


def _help(screen: DebuggerScreen, word: str) -> None:
    if word:
        screen.say(" ".join(next(help_lines(word)).split()))
    else:
        screen.show_sheet("Commands", commands_page)


def _lesson(screen: DebuggerScreen) -> None:
    text = about(screen.timeline)
    if not text:
        raise GvizError("this program says nothing about itself at its top", exit_code=2)
    screen.show_sheet("Lesson", lambda width: (*paragraphs(text, width), (), ((":lesson shows this again", "muted"),)))


def _theme(screen: DebuggerScreen, name: str) -> None:
    known = screen.app.available_themes
    if name not in known:
        raise GvizError(f"there is no theme {clipped(name, 30)}", hint=", ".join(sorted(known)[:6]) + " …", exit_code=2)
    screen.app.theme = name


def _inspect(screen: DebuggerScreen, place: str) -> None:
    screen.run_command(Command("select", 1, place))
    if not screen.remark:
        screen.action_inspect()


def _export(screen: DebuggerScreen, path: str) -> None:
    from gviz.tui.export import export

    screen.say(export(screen.timeline, screen.cursor.position, path))
