"""The kinds of commands: what the function of each kind is given, and how that becomes what the table runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from gviz.driven import Driven, Far, collected
from gviz.trace.timeline import Timeline
from gviz.tui import stop_search
from gviz.tui.arrival import Arrival
from gviz.tui.breakpoints import Breakpoints
from gviz.tui.commands.asking import Asker
from gviz.tui.cursor import Cursor, Move
from gviz.tui.folds import Folds
from gviz.tui.language.command import Command, Reply, Run, Said, Work
from gviz.tui.session import Session


def moves(move: Move, reason: str, *, backward: bool = False) -> Run:
    """Through time, as often as a count says."""
    return lambda session, command: session.cursor.travelling(move, reason, command.count, backward=backward)


def moves_by_nodes(move: Callable[[Folds, Timeline, int], int], *, backward: bool = False) -> Run:
    """By whole nodes, of which a closed module is one."""
    return lambda session, command: session.cursor.travelling(
        partial(move, session.folds), "next", command.count, backward=backward
    )


def with_cursor(act: Callable[[Cursor, str], Arrival | Driven[Arrival]]) -> Run:
    """What leads somewhere."""
    return lambda session, command: act(session.cursor, command.argument)


def said(found: Iterator[str | Far]) -> Work:
    """The lines of an answer, once all are there."""
    return Said((*(yield from collected(found)),))


def with_asker(answer: Callable[[Asker, str, int], Iterator[str | Far]]) -> Run:
    """What is evaluated at the moment that is looked at."""
    return lambda session, command: said(answer(session.cursor.asker, command.argument, session.cursor.position))


def with_breakpoints(change: Callable[[Breakpoints, str, int], Iterator[str | Far]]) -> Run:
    """What concerns breakpoints; one that is set without a place is set at the selected node."""
    return lambda session, command: said(change(session.cursor.breakpoints, command.argument, session.cursor.selected))


def with_session(act: Callable[[Session, str], Reply | Work]) -> Run:
    """What needs more than one part of the session."""
    return lambda session, command: act(session, command.argument)


def runs_on(*, backward: bool = False) -> Run:
    """To the next stop, or the one before, which is looked for a little at a time."""

    def run_on(session: Session, command: Command) -> Work:
        cursor = session.cursor
        yield from stop_search.searched(cursor.timeline, cursor.breakpoints, cursor.position, backward=backward)
        return cursor.run_on(command.count, backward=backward)

    return run_on
