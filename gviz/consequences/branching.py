"""Changes as people write them, and the branch of an iteration that has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.explain.names import label
from gviz.plain_text import shown
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline
from gviz.where import place as places
from gviz.words.evaluator import Evaluator

if TYPE_CHECKING:
    from gviz.whatif.branch import Branch

PLACES = 3
"""Nodes that are named of those for which one thing is said."""


def branch_of(timeline: Timeline, iteration: Iteration, changes: Sequence[str]) -> Branch:
    """What an iteration would have been with these changes. GvizError if it cannot be run again."""
    require_engine(timeline)
    from gviz.whatif.change import parsed  # it needs the engine, which a viewer otherwise does not
    from gviz.whatif.rerun import branched

    evaluator = Evaluator(timeline)
    given = [parsed(text, lambda place: _meant(evaluator, iteration, place)[0]) for text in changes]
    return branched(timeline, iteration, given)


def meanings(timeline: Timeline, iteration: Iteration, changes: Sequence[str]) -> Iterator[str]:
    """Which node each change is of, where the iteration uses several of that name."""
    evaluator = Evaluator(timeline)
    for place in dict.fromkeys(map(_place, changes)):
        first, *others = _meant(evaluator, iteration, place)
        if others:
            also = ", ".join(label(timeline, node) for node in others[:PLACES])
            more = f" and {len(others) - PLACES} more" if len(others) > PLACES else ""
            yield f"{shown(place)} is {label(timeline, first)} here; also called {shown(place)}: {also}{more}."


def _place(change: str) -> str:
    """What a change is of: ``w`` of ``grad w[0] = 5``."""
    return change.partition("=")[0].partition("[")[0].strip().removeprefix("grad ").strip().removesuffix(".grad")


def _meant(evaluator: Evaluator, iteration: Iteration, place: str) -> list[int]:
    """The nodes that a place means of those that the iteration uses, in order, else the last one made by then.

    GvizError if there is none.
    """
    meant = places.place(place)
    if meant.kind == "node":
        return [evaluator.last(place, iteration.end)]
    infos = [evaluator.timeline.info(node) for node in evaluator.timeline.nodes.of(iteration)]
    named = [info.node for info in infos if info.name == place] if meant.kind == "word" else []
    return named or [info.node for info in infos if meant.fits(info)] or [evaluator.last(place, iteration.end)]


def require_engine(timeline: Timeline) -> None:
    """GvizError unless the engine, which alone can run operations again, made the recording."""
    if timeline.framework != "gviz.engine":
        raise GvizError(
            f"only what gviz's own engine recorded can be run again; this is a trace of {shown(timeline.framework)}",
            hint="gviz record --engine builtin SCRIPT",
            exit_code=2,
        )
