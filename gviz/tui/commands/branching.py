"""The commands that change a number and show what follows from it: ``set x = 5``, ``undo``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from gviz import where
from gviz.errors import GvizError
from gviz.explain.names import label
from gviz.numbers import short
from gviz.plain_text import shown
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline
from gviz.tui import lines
from gviz.tui.commands.asking import Asker
from gviz.tui.language.command import Look, Said
from gviz.tui.lines import Line, fitted
from gviz.tui.session import Session

if TYPE_CHECKING:
    from gviz.whatif.branch import Branch

SUFFIX = ".gviz"
"""Of a file that holds a branch."""

_NAME, _NUMBER = 20, 24
_PLACES = 3
"""Nodes that are named of those for which one thing is said."""


def what_if(session: Session, text: str) -> Look | Said:
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
    from gviz.whatif.beside import Beside

    timeline, iteration = session.timeline, session.timeline.iteration_at(session.cursor.position)
    branch = branch_of(timeline, iteration, changes)
    rows = [
        *what_runs_again(timeline, iteration),
        *meanings(timeline, iteration, changes),
        *stops(timeline, branch),
        *differences(timeline, iteration, branch),
    ]
    session.cursor.asker.beside = Beside(timeline, iteration, branch, changes)
    return Look(f"What if {', '.join(map(shown, changes))}", partial(_lines, rows))


def export(session: Session, path: str) -> Said:
    """``export FILE.gviz``: the branch as a trace. GvizError if nothing is changed or the file exists."""
    if session.beside is None:
        raise GvizError("nothing is changed", hint="whatif x = 5, then export branch.gviz", exit_code=2)
    target = Path(path).expanduser()
    if target.exists():
        raise GvizError(f"{shown(str(target))} already exists", hint="choose another name")
    session.beside.branch.write(target)
    return Said((f"wrote {shown(str(target))}; gviz open {shown(str(target))} steps through it.",))


def branch_of(timeline: Timeline, iteration: Iteration, changes: Sequence[str]) -> Branch:
    """What an iteration would have been with these changes. GvizError if it cannot be run again."""
    require_engine(timeline)
    from gviz.whatif.change import parsed  # it needs the engine, which a viewer otherwise does not
    from gviz.whatif.rerun import branched

    asker = Asker(timeline)
    given = [parsed(text, lambda place: _meant(asker, iteration, place)[0]) for text in changes]
    return branched(timeline, iteration, given)


def meanings(timeline: Timeline, iteration: Iteration, changes: Sequence[str]) -> Iterator[str]:
    """Which node each change is of, where the iteration uses several of that name."""
    asker = Asker(timeline)
    for place in dict.fromkeys(map(_place, changes)):
        first, *others = _meant(asker, iteration, place)
        if others:
            also = ", ".join(label(timeline, node) for node in others[:_PLACES])
            more = f" and {len(others) - _PLACES} more" if len(others) > _PLACES else ""
            yield f"{shown(place)} is {label(timeline, first)} here; also called {shown(place)}: {also}{more}."


def _place(change: str) -> str:
    """What a change is of: ``w`` of ``grad w[0] = 5``."""
    return change.partition("=")[0].partition("[")[0].strip().removeprefix("grad ").strip().removesuffix(".grad")


def _meant(asker: Asker, iteration: Iteration, place: str) -> list[int]:
    """The nodes that a place means of those that the iteration uses, in order, else the last one made by then.

    GvizError if there is none.
    """
    meant = where.place(place)
    if meant.kind == "node":
        return [asker.last(place, iteration.end)]
    infos = [asker.timeline.info(node) for node in asker.timeline.nodes_of(iteration)]
    named = [info.node for info in infos if info.name == place] if meant.kind == "word" else []
    return named or [info.node for info in infos if meant.fits(info)] or [asker.last(place, iteration.end)]


def require_engine(timeline: Timeline) -> None:
    """GvizError unless the engine, which alone can run operations again, made the recording."""
    if timeline.framework != "gviz.engine":
        raise GvizError(
            f"only what gviz's own engine recorded can be run again; this is a trace of {shown(timeline.framework)}",
            hint="gviz record --engine builtin SCRIPT",
            exit_code=2,
        )


def what_runs_again(timeline: Timeline, iteration: Iteration) -> Iterator[str]:
    """What runs again: which iteration and what its passes add to, where there is more than one; what does not."""
    if len(timeline.iterations) > 1:
        from gviz.compare.side import Side

        side = Side(timeline, iteration.index + 1)
        kept = [f"{label(timeline, node)} {short(grad, _NUMBER)}" for node, (grad, _) in side.kept.items() if grad]
        held = f"; .grad before it: {', '.join(kept[:_PLACES])}{' …' * (len(kept) > _PLACES)}" if kept else ""
        yield f"iteration {iteration.index + 1} of {len(timeline.iterations)} is run again{held}."
    if _takes_numbers_out(timeline, iteration):
        yield "numbers that the program took out of tensors, as .item(), an index, `if x:`, keep their recorded values."


def _takes_numbers_out(timeline: Timeline, iteration: Iteration) -> bool:
    """Whether a file of the program that made the iteration's nodes says so anywhere."""
    from gviz.whatif.readings import reads_tensors

    infos = [timeline.info(node) for node in timeline.nodes_of(iteration)]
    paths = {frame.path for info in infos for frame in info.frames}
    names = {info.name.rpartition(".")[2] for info in infos if info.name}
    return any(reads_tensors(timeline.source(path) or "", names) for path in paths)


def stops(timeline: Timeline, branch: Branch) -> Iterator[str]:
    """Where the program would have gone another way, and where the branch could not go on: a sentence for each."""
    yield from _decisions(timeline, branch)
    places: dict[tuple[str, bool], list[int]] = {}
    for stopped in branch.stopped:
        places.setdefault((stopped.why, stopped.of_gradient), []).append(stopped.node)
    for (why, of_gradient), nodes in places.items():
        what = "gradients beyond it are not known" if of_gradient else "what follows from it is not known"
        names = ", ".join(label(timeline, node) for node in nodes[:_PLACES])
        more = f" and {len(nodes) - _PLACES} more" if len(nodes) > _PLACES else ""
        yield f"stopped at {names}{more}: {shown(why)}; {what}."


def _decisions(timeline: Timeline, branch: Branch) -> Iterator[str]:
    for decision in branch.decisions[:_PLACES]:
        frames = timeline.info(decision.node).frames
        place = f" ({shown(PurePath(frames[0].path).name)}:{frames[0].line})" if frames else ""
        now = f"{label(timeline, decision.node)}{place} is {decision.now} instead of {decision.was}"
        yield f"{now}: a program that decides by it goes another way, and here the recorded way is kept."
    if len(branch.decisions) > _PLACES:
        yield f"and so {len(branch.decisions) - _PLACES} more."


def differences(timeline: Timeline, iteration: Iteration, branch: Branch) -> Iterator[str]:
    """Everything that is another number in the branch, old and new, a row for each node."""
    from gviz.compare.closeness import SAME_NUMBERS
    from gviz.compare.comparison import compared
    from gviz.compare.side import Side

    before, after = Side(timeline, iteration.index + 1), Side(Timeline(branch.log), 1)
    pairs = [(node, branch.numbers.get(node, 0)) for node in before.infos]
    found = compared(before, after, SAME_NUMBERS, tuple([(x, y) for x, y in pairs if y in after.infos]))
    rows: dict[int, list[str]] = {}
    for one in found.without_gradients(branch.unknown).differences:
        if one.kind in ("value", "gradient"):
            old, new = [short(value, _NUMBER) if value is not None else "none" for value in one.values]
            rows.setdefault(one.pair[0], []).append(f"{one.kind} {old} -> {new}")
    if not rows:
        where = "nothing that could be run again" if branch.stopped else "nothing"
        yield f"{where} depends on it: no number changes."
    for node, changed in rows.items():
        yield f"{fitted(label(timeline, node), _NAME):<{_NAME}} {', '.join(changed)}"


def _lines(rows: Sequence[str], width: int) -> Iterator[Line]:
    return (lines.cut(lines.line(row), width) for row in rows)
