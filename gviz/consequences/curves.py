"""One number changed over a range: what follows from it at each point."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isnan, nan

from gviz.consequences.branching import branch_of, named_in
from gviz.consequences.telling import stops
from gviz.driven import Driven, Far
from gviz.errors import GvizError
from gviz.events import BackwardStarted
from gviz.explain.names import symbol
from gviz.plain_text import clipped
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline
from gviz.whatif.change import target
from gviz.words.evaluator import Evaluator

SHOW = "--show"

Curve = tuple[str, list[tuple[float, float]]]


def named(text: str) -> list[str]:
    """The expressions of a list with commas, ``z,x.grad``."""
    return [part.strip() for part in text.split(",") if part.strip()]


def usual(timeline: Timeline, iteration: Iteration, what: str) -> list[str]:
    """What is shown unless something is asked for: the result of the iteration, and the gradient of what is changed.

    GvizError where a gradient is changed, and where there is neither.
    """
    evaluator = Evaluator(timeline)
    root = _root(timeline, iteration)
    name = symbol(timeline, root) if root else ""
    result = name if name and evaluator.last(name, iteration.end) == root else f"#{root}"
    of = target(what, partial(named_in, evaluator, iteration))
    texts = () if of.of_gradient or not root else (result, f"{of.place}.grad{of.index}")
    shows = [text for text in (_as_one(evaluator, text, iteration.end) for text in texts) if text]
    if not shows:
        raise GvizError("it is not clear what to draw", hint=f"{clipped(what, 40)} = -3..3 {SHOW} x.grad", exit_code=2)
    return shows


def curves(
    timeline: Timeline,
    iteration: Iteration,
    points: Sequence[tuple[float, str]],
    shows: Sequence[str],
    kept: Sequence[str] = (),
) -> Driven[tuple[list[Curve], list[str]]]:
    """The points of each expression, nan where a branch had to stop before it; and what is said of the first
    branch that had to, or of which the program would have gone another way.

    GvizError for an expression that is more than one number.
    """
    from gviz.whatif.beside import Beside  # it needs the engine, which a viewer otherwise does not

    _refuse_several(timeline, iteration, shows)
    evaluator, end = Evaluator(timeline), iteration.end
    drawn: dict[str, list[tuple[float, float]]] = {text: [] for text in shows}
    why: list[str] = []
    for done, (x, change) in enumerate(points):
        yield Far("running again: point", done, len(points))
        branch = branch_of(timeline, iteration, [*kept, change])
        states = partial(Beside(timeline, iteration, branch, (*kept, change)).states, n=end)
        for text, curve in drawn.items():
            try:
                y = evaluator.number(text, end, states)
            except GvizError:
                if not branch.stopped:
                    raise
                y = nan
            curve.append((x, y))
            if (isnan(y) or branch.decisions) and not why:
                why = list(stops(timeline, branch))
    return list(drawn.items()), why


def _root(timeline: Timeline, iteration: Iteration) -> int:
    """Where the last backward pass of an iteration began, else its last node; 0 where there is none."""
    started = timeline.select([BackwardStarted], max(iteration.start, 1), iteration.end + 1)
    roots = [event.roots[0][0] for _, event in started if event.roots]
    return roots[-1] if roots else max(timeline.nodes.of(iteration), default=0)


def _as_one(evaluator: Evaluator, text: str, n: int) -> str:
    """An expression that is one number: the sum of what is more; empty for what is none."""
    try:
        count = evaluator.elements(text, n)
    except GvizError:
        return ""
    return text if count == 1 else f"({text}).sum()" if count else ""


def _refuse_several(timeline: Timeline, iteration: Iteration, shows: Sequence[str]) -> None:
    """Raise `GvizError` for an expression that is more than one number."""
    evaluator = Evaluator(timeline)
    for text in shows:
        if evaluator.elements(text, iteration.end) > 1:
            raise GvizError(f"{text} is more than one number", hint=f"({text}).sum() is one", exit_code=2)
