"""A breakpoint where somebody points, or none any more."""

from __future__ import annotations

from pathlib import PurePath
from typing import Protocol

from gviz.tui.breakpoints import marked_lines
from gviz.tui.session import Session
from gviz.tui.widgets.messages import LinePointed
from gviz.where.stop import stop


class Stopping(Protocol):
    """What setting a breakpoint needs of a screen."""

    session: Session

    def follow_settings(self) -> None:
        """Let the panels know the breakpoints."""

    def say(self, remark: str) -> None:
        """Say something in the bottom row."""


def toggle_node(screen: Stopping) -> None:
    """Set a breakpoint at the selected node, or take it away."""
    if screen.session.cursor.selected:
        _toggle(screen, f"#{screen.session.cursor.selected}")


def toggle_line(screen: Stopping, pointed: LinePointed) -> None:
    """Set a breakpoint at a line, or take away those that it shows."""
    breakpoints = screen.session.cursor.breakpoints
    there = marked_lines(breakpoints, pointed.path).get(pointed.line)
    if there:
        breakpoints.delete(there)
        screen.follow_settings()
        screen.say(f"no breakpoint at line {pointed.line}")
    elif calls := [one for one in breakpoints.calls if (one.site.path, one.site.line) == (pointed.path, pointed.line)]:
        for one in calls:
            one.enabled = True
        screen.follow_settings()
        screen.say("; ".join(f"breakpoint {one.number} at line {pointed.line}: {one.words}" for one in calls))
    else:
        _toggle(screen, f"{PurePath(pointed.path).name}:{pointed.line}")


def _toggle(screen: Stopping, place: str) -> None:
    made = screen.session.cursor.breakpoints.toggle(stop(place))
    screen.follow_settings()
    never = "" if made is None or made.hits.can_hit() else ": nothing was made there, so it never stops"
    screen.say(f"breakpoint {made.number} at {place}{never}" if made else f"no breakpoint at {place} any more")
