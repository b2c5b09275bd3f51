"""The commands that change a number and show what follows from it: ``set x = 5``, ``undo``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from gviz.driven import Driven
from gviz.errors import GvizError
from gviz.explain.whatif import ambiguous_names, branch_of, difference_rows, rerun_sentences, stop_sentences
from gviz.plain_text import shown
from gviz.tui import lines
from gviz.tui.commands.files import new_file
from gviz.tui.language.command import FrontEnd, Look, Said
from gviz.tui.lines import Line
from gviz.tui.session import Session

SUFFIX = ".gviz"
"""Of a file that holds a branch."""


def what_if(session: Session, text: str) -> Look | Said | Driven[Look]:
    """``whatif [CHANGE]``: one change more, and everything that is another number now; without one what was changed.

    From then on every moment of the iteration shows both numbers, until all is taken back. A range draws curves.
    """
    if ".." in text.partition("=")[2]:
        from gviz.tui.commands.sweeping import sweep  # it draws with what stands here

        return sweep(session, text, _changes(session))
    changes = (*_changes(session), text) if text else _changes(session)
    return (
        _changed(session, changes) if changes else Said(("nothing is changed; whatif x = 5 shows what would follow",))
    )


def undo(session: Session, _: str) -> Look | Said:
    """``undo``: take the last change back."""
    changes = _changes(session)
    if not changes:
        return Said(("nothing is changed",))
    if len(changes) > 1:
        return _changed(session, changes[:-1])
    session.cursor.asker.beside = None
    return Said((f"took back {shown(changes[-1])}; nothing is changed",))


def _changes(session: Session) -> tuple[str, ...]:
    return () if session.beside is None else session.beside.changes


def _changed(session: Session, changes: tuple[str, ...]) -> Look:
    from gviz.rerun.branch import BranchView

    timeline, iteration = session.timeline, session.timeline.iteration_at(session.cursor.position)
    branch = branch_of(timeline, iteration, changes)
    said = [
        *rerun_sentences(timeline, iteration),
        *ambiguous_names(timeline, iteration, changes),
        *stop_sentences(timeline, branch),
    ]
    rows = list(difference_rows(timeline, iteration, branch))
    session.cursor.asker.beside = BranchView(timeline, iteration, branch, changes)
    return Look(f"What if {', '.join(map(shown, changes))}", partial(_lines, said, rows))


def export(session: Session, path: str) -> Said:
    """``export FILE.gviz``: the branch as a trace. GvizError if nothing is changed or the file exists."""
    if session.beside is None:
        raise GvizError("nothing is changed", hint="whatif x = 5, then export branch.gviz", exit_code=2)
    target = new_file(path)
    session.beside.branch.write(target)
    return Said((f"wrote {shown(str(target))}; gviz open {shown(str(target))} steps through it.",))


def _lines(said: Sequence[str], rows: Sequence[str], width: int) -> Iterator[Line]:
    for sentence in said:
        yield from lines.wrapped(lines.line(sentence), width)
    yield from (lines.cut(lines.line(row), width) for row in rows)


def set_(session: Session, text: str) -> FrontEnd | Look | Said | Driven[Look]:
    """``set KEY VALUE``; ``set x = 5``, in gdb ``set var x = 5``, is ``whatif x = 5``."""
    if "=" in text:
        return what_if(session, text.removeprefix("var ").removeprefix("variable "))
    name, value = session.settings.asked(text)
    return FrontEnd("set", f"{name} {value}")
