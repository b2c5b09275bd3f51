"""The keys that change what is looked at; the time does not move."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from textual.scroll_view import ScrollView

from gviz.tui.commands import graph_view
from gviz.tui.language.command import Command
from gviz.tui.language.parser import spec_of
from gviz.tui.screens.toggling import toggle_node
from gviz.tui.widgets.tape import Tape

if TYPE_CHECKING:
    from gviz.tui.screens.debugger import DebuggerScreen


def _caller(screen: DebuggerScreen, name: str) -> None:
    """Look at a caller further up or down: in the source, or in the stack if that is in front."""
    command = Command(name)
    if screen.query_one("#stack").display:
        screen.orders.attempt(partial(_move_to_caller, screen, command))
    else:
        screen.run_command(command)


def _move_to_caller(screen: DebuggerScreen, command: Command) -> None:
    spec_of(command).run(screen.session, command)
    screen.show_frame()


def _part(screen: DebuggerScreen) -> None:
    """Only what the selected node was made from, only what is near it, all."""
    screen.orders.attempt(partial(_next_part, screen))


def _next_part(screen: DebuggerScreen) -> None:
    said = graph_view.next_focus(screen.session)
    screen.follow_settings()
    screen.say(said.lines[0])


def _page(screen: DebuggerScreen, pages: int) -> None:
    """Scroll the focused panel by a page; in the tape select the node there."""
    panel = screen.focused
    if isinstance(panel, Tape):
        panel.action_page(pages)
    elif isinstance(panel, ScrollView):
        (panel.scroll_page_up if pages < 0 else panel.scroll_page_down)(animate=False)


def _redraw(screen: DebuggerScreen) -> None:
    """Draw everything anew, where something else has written on the terminal."""
    screen.app.refresh(layout=True)
    screen.say("drawn anew")


LOOKS: Mapping[str, Callable[[DebuggerScreen], None]] = {
    "up": lambda screen: _caller(screen, "up"),
    "down": lambda screen: _caller(screen, "down"),
    "part": _part,
    "page-up": lambda screen: _page(screen, -1),
    "page-down": lambda screen: _page(screen, 1),
    "redraw": _redraw,
    "break": toggle_node,
}
"""What a key does to the view."""
