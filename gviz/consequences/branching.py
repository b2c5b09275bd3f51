"""Changes as people write them, and the branch of an iteration that has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.events import Edge
from gviz.explain.names import label
from gviz.plain_text import clipped, shown
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline
from gviz.whatif.change import parsed, target
from gviz.where import place as places
from gviz.words.evaluator import Evaluator

if TYPE_CHECKING:
    from gviz.whatif.branch import Branch

PLACES = 3
"""Nodes that are named of those for which one thing is said."""


def branch_of(timeline: Timeline, iteration: Iteration, changes: Sequence[str]) -> Branch:
    """What an iteration would have been with these changes. GvizError if it cannot be run again."""
    require_engine(timeline)
    from gviz.whatif.rerun import branched  # it needs the engine, which a viewer otherwise does not

    evaluator = Evaluator(timeline)
    output_of, is_name = partial(_output, evaluator, iteration), partial(named_in, evaluator, iteration)
    return branched(timeline, iteration, [parsed(text, output_of, is_name) for text in changes])


def meanings(timeline: Timeline, iteration: Iteration, changes: Sequence[str]) -> Iterator[str]:
    """Which node each change is of, where the iteration uses several of that name."""
    evaluator = Evaluator(timeline)
    targets = (target(change.partition("=")[0], partial(named_in, evaluator, iteration)) for change in changes)
    for place in dict.fromkeys(of.place for of in targets):
        first, *others = _meant(evaluator, iteration, place)
        if others:
            also = ", ".join(label(timeline, node) for node in others[:PLACES])
            more = f" and {len(others) - PLACES} more" if len(others) > PLACES else ""
            yield f"{shown(place)} is {label(timeline, first)} here; also called {shown(place)}: {also}{more}."


def named_in(evaluator: Evaluator, iteration: Iteration, text: str) -> bool:
    """Whether a text as it stands is what a tensor is called, by the end of an iteration: ``parts[1]``."""
    return bool(evaluator.names.called(text, iteration.end))


def _output(evaluator: Evaluator, iteration: Iteration, place: str) -> Edge:
    """The output that a place means. GvizError if there is none, or if it is the name of several together."""
    node = _meant(evaluator, iteration, place)[0]
    return node, evaluator.names.output_nr(node, place, iteration.end)


def _meant(evaluator: Evaluator, iteration: Iteration, place: str) -> list[int]:
    """The nodes that a place means of those that the iteration uses, in order, else the last one made by then.

    GvizError if there is none.
    """
    meant = places.place(place)
    if meant.kind == "node":
        return [evaluator.last(place, iteration.end)]
    infos = [evaluator.timeline.info(node) for node in evaluator.timeline.nodes.of(iteration)]
    named = [info.node for info in infos if info.name == place] or [info.node for info in infos if info.means(place)]
    if not named and "[" in meant.word:  # an index of an index: as a pattern it would mean another name
        near = evaluator.names.near(place, iteration.end)
        raise GvizError(f"there is no {clipped(place, 40)}", hint=f"did you mean {near}?" if near else "", exit_code=2)
    return named or [info.node for info in infos if meant.fits(info)] or [evaluator.last(place, iteration.end)]


def require_engine(timeline: Timeline) -> None:
    """GvizError unless the engine, which alone can run operations again, made the recording."""
    if timeline.framework != "gviz.engine":
        raise GvizError(
            f"only what gviz's own engine recorded can be run again; this is a trace of {shown(timeline.framework)}",
            hint="gviz record --engine builtin SCRIPT",
            exit_code=2,
        )
