"""What the screen does with the answer to a command."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.app import SuspendNotSupported

from gviz.errors import GvizError
from gviz.plain_text import clipped
from gviz.tui.arrangement import PANELS
from gviz.tui.arrival import Arrival
from gviz.tui.commands.compare import Compared
from gviz.tui.commands.inspection import wrapped_lines
from gviz.tui.language.command import Confirm, FrontEnd, Look, Outside, Reply, Said
from gviz.tui.screens import pages
from gviz.tui.themes import colours_fall_together, named
from gviz.tui.widgets.node import NodePanel

if TYPE_CHECKING:
    from gviz.tui.screens.debugger import DebuggerScreen


def carry_out(screen: DebuggerScreen, reply: Reply) -> None:
    """Show the answer to a command, and do what is left to do; raises GvizError where it cannot be done."""
    screen.reader.take(reply)
    screen.follow_settings()
    match reply:
        case Arrival():
            screen.show_arrival(reply)
        case Said(lines):
            screen.orders.say(lines)
        case Look():
            _look(screen, reply)
        case Confirm(lines, question):
            pages.ask(screen, question, lines)
        case Outside(run):
            _outside(screen, run)
        case FrontEnd(what, argument):
            _WISHES[what](screen, argument)


def say(screen: DebuggerScreen, lines: tuple[str, ...]) -> None:
    """One line that fits in the bottom row, anything else on a page of its own."""
    if len(lines) == 1 and cell_len(lines[0]) < screen.size.width:
        screen.say(lines[0])
    elif lines:
        pages.show_sheet(screen, "Answer", partial(wrapped_lines, lines))


def _look(screen: DebuggerScreen, look: Look) -> None:
    """Bring its panel to the front, or open a page."""
    if look.panel == "inspector":
        screen.show_arrival(screen.cursor.select(screen.cursor.selected))
        pages.inspect(screen)
    elif look.panel in PANELS:
        screen.show_arrival(screen.cursor.select(screen.cursor.selected))
        screen.panels.bring(look.panel)
        if look.at_end:
            screen.query_one(NodePanel).scroll_end(animate=False)
    elif isinstance(look, Compared):
        pages.show_compared(screen, look)
    else:
        pages.show_sheet(screen, look.title, look.lines)
    screen.show_frame()


def _outside(screen: DebuggerScreen, run: Callable[[], str]) -> None:
    """Give the terminal away for a while. Ctrl+C there is for what runs there: it would end the debugger's own loop."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with screen.app.suspend():
            said = _interruptible(run)
    except SuspendNotSupported:
        raise GvizError("this needs a terminal of its own", exit_code=2) from None
    finally:
        signal.signal(signal.SIGINT, before)
    screen.refresh()
    screen.say(said)


def _interruptible(run: Callable[[], str]) -> str:
    waiting = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run()
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        signal.signal(signal.SIGINT, waiting)


def set_to(screen: DebuggerScreen, name: str, value: str) -> None:
    """Keep a setting and let it take effect; GvizError for a theme there is not, and for what cannot be another."""
    if name == "ascii":
        hint = "gviz --ascii, or GVIZ_ASCII=1"
        raise GvizError("the characters are chosen at the start", hint=hint, exit_code=2)
    if name == "theme":
        screen.app.theme = named(value, screen.app.available_themes)
    screen.session.settings.values[name] = value
    if name == "keymap":
        screen.follow_keymap()
    elif name == "motion":
        screen.app.animation_level = "full" if value == "on" else "none"


def _set(screen: DebuggerScreen, text: str) -> None:
    name, value = text.split(" ", 1)
    set_to(screen, name, value)
    remark = colours_fall_together(screen.app.current_theme) if name == "theme" else ""
    screen.say(remark or f"{name} is {value}")


def _play(screen: DebuggerScreen, text: str) -> None:
    if text in ("", *SPEEDS):
        screen.pause()
        screen.player.play(SPEEDS.get(text, 0))
    elif text == "stop":
        screen.pause()
    else:
        raise GvizError(f"play cannot be {clipped(text, 20)}", hint="play, play 2x, play stop", exit_code=2)


def _copy(screen: DebuggerScreen, text: str) -> None:
    """To the clipboard, by the escape sequence that most terminals take; nothing tells whether this one did."""
    screen.app.copy_to_clipboard(text)
    lines = text.count("\n")
    screen.say(f"sent to the terminal's clipboard: {f'{lines} lines' if lines > 1 else clipped(text, 40)}")


def _copy_script(screen: DebuggerScreen, text: str) -> None:
    _copy(screen, text)
    screen.say(f"{screen.remark}; copy script FILE writes a file")


SPEEDS = {"1x": 1, "2x": 2, "4x": 4, "8x": 8}
_WISHES: dict[str, Callable[[DebuggerScreen, str], None]] = {
    "quit": lambda screen, at_once: screen.leave_at_once() if at_once else screen.action_quit(),
    "set": _set,
    "play": _play,
    "copy": _copy,
    "copy script": _copy_script,
}
