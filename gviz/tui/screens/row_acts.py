"""What the row of a list does when it is gone to, edited, removed or switched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gviz.tui.breakpoints import Listed
from gviz.tui.language.command import Command
from gviz.tui.screens.prompting import Prompting, condition_of
from gviz.tui.session import Session
from gviz.tui.widgets.messages import RowActed


class Listing(Protocol):
    """What the rows need of their screen."""

    session: Session
    prompting: Prompting

    def run_command(self, command: Command) -> None:
        """Carry out a command."""

    def action_seek(self, position: int) -> None:
        """Go to an event."""

    def show_frame(self) -> None:
        """Let the source follow the frame that is looked at."""

    def say(self, remark: str) -> None:
        """Say something in the bottom row."""


Key = int | str
"""What a row stands for: the number of a watch, breakpoint or frame, the name of a module."""


def act(screen: Listing, message: RowActed) -> None:
    """Do what a row was asked to do; what its kind cannot do does nothing."""
    known = _ACTS.get((message.kind, message.act))
    if known is not None:
        known(screen, message.key)


def _watched(screen: Listing, key: Key) -> str:
    return screen.session.cursor.asker.watched[int(key) - 1]


def _breakpoint(screen: Listing, key: Key) -> Listed:
    (one,) = screen.session.cursor.breakpoints.numbered(str(key))
    return one


def _last_change(screen: Listing, key: Key) -> None:
    screen.run_command(Command("last", 1, _watched(screen, key)))


def _edit_watch(screen: Listing, key: Key) -> None:
    screen.prompting.open(":", f"rewatch {key} {_watched(screen, key)}")


def _edit_condition(screen: Listing, key: Key) -> None:
    screen.prompting.open(*condition_of(screen.session, int(key)))


def _to_hit(screen: Listing, key: Key) -> None:
    """To where a breakpoint stops next, or else stops first."""
    one = _breakpoint(screen, key)
    hit = next(one.after(screen.session.cursor.position), None) or next(one.after(0), None)
    if hit is None:
        screen.say(f"breakpoint {key} never stops in this recording")
    else:
        screen.action_seek(hit.n)


def _switch(screen: Listing, key: Key) -> None:
    screen.run_command(Command("disable" if _breakpoint(screen, key).enabled else "enable", 1, str(key)))


def _look_at_frame(screen: Listing, key: Key) -> None:
    screen.session.look_from(int(key))
    screen.show_frame()


def _fold(screen: Listing, key: Key) -> None:
    session = screen.session
    closed = session.folds.wanted(session.timeline.iteration_at(session.cursor.position)).closed
    screen.run_command(Command("open" if key in closed else "close", 1, str(key)))


_ACTS: dict[tuple[str, str], Callable[[Listing, Key], None]] = {
    ("watch", "go"): _last_change,
    ("watch", "edit"): _edit_watch,
    ("watch", "remove"): lambda screen, key: screen.run_command(Command("unwatch", 1, str(key))),
    ("break", "go"): _to_hit,
    ("break", "edit"): _edit_condition,
    ("break", "remove"): lambda screen, key: screen.run_command(Command("delete", 1, str(key))),
    ("break", "switch"): _switch,
    ("frame", "go"): _look_at_frame,
    ("module", "go"): _fold,
    ("module", "switch"): _fold,
}
