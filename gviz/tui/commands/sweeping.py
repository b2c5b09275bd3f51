"""One number changed over a range, ``x = -3..3``: what follows from it, as curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import isnan, nan

from gviz.errors import GvizError
from gviz.events import BackwardStarted
from gviz.explain.names import symbol
from gviz.plain_text import clipped
from gviz.render.curve import text_curve
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline
from gviz.tui import lines
from gviz.tui.commands.asking import Asker
from gviz.tui.commands.branching import branch_of, meanings, require_engine, stops, what_runs_again
from gviz.tui.language.command import Look
from gviz.tui.lines import Line
from gviz.tui.session import Session

POINTS = 25
FEWEST_POINTS = 5
MOST_RUNS = 12_000
"""Nodes that are run again while a debugger waits, those of all points together: two or three seconds."""

SHOW = "--show"

Curve = tuple[str, list[tuple[float, float]]]


def sweep(session: Session, text: str, kept: Sequence[str]) -> Look:
    """``set x = -3..3 [--show EXPR,...]``: curves of a value and of a gradient, with the changes that are `kept`.

    Nothing is changed by it. GvizError for what is no range, and where too much would have to be run again.
    """
    from gviz.whatif.sweep import swept

    timeline, iteration = session.timeline, session.timeline.iteration_at(session.cursor.position)
    require_engine(timeline)
    change, _, asked = (part.strip() for part in text.partition(SHOW))
    points = list(swept(change, _points(timeline, iteration, change)))
    if not points:
        branch_of(timeline, iteration, [change])  # says what is wrong with it
    what = change.partition("=")[0].strip()
    drawn, stopped = curves(timeline, iteration, points, named(asked) or usual(timeline, iteration, what), kept)
    before = (*what_runs_again(timeline, iteration), *meanings(timeline, iteration, (change,)))
    said = [*before, *stopped, _as_svg((*kept, change), [text for text, _ in drawn])]
    title = f"What if {', '.join([clipped(each, 40) for each in (*kept, change)])}"
    return Look(title, partial(_lines, what, drawn, said, ascii=session.glyphs.ascii))


def named(text: str) -> list[str]:
    """The expressions of a list with commas, ``z,x.grad``."""
    return [part.strip() for part in text.split(",") if part.strip()]


def usual(timeline: Timeline, iteration: Iteration, what: str) -> list[str]:
    """What is shown unless something is asked for: the result of the iteration, and the gradient of what is changed.

    GvizError where a gradient is changed, and where there is neither.
    """
    asker = Asker(timeline)
    root = _root(timeline, iteration)
    name = symbol(timeline, root) if root else ""
    result = name if name and asker.last(name, iteration.end) == root else f"#{root}"
    of_gradient = what.startswith("grad ") or what.endswith(".grad")
    texts = () if of_gradient or not root else (result, _gradient(what))
    shows = [text for text in (_as_one(asker, text, iteration.end) for text in texts) if text]
    if not shows:
        raise GvizError("it is not clear what to draw", hint=f"{clipped(what, 40)} = -3..3 {SHOW} x.grad", exit_code=2)
    return shows


def curves(
    timeline: Timeline,
    iteration: Iteration,
    points: Sequence[tuple[float, str]],
    shows: Sequence[str],
    kept: Sequence[str] = (),
    told: Callable[[int], None] = lambda done: None,
) -> tuple[list[Curve], list[str]]:
    """The points of each expression, nan where a branch had to stop before it; and why it had to, if any is nan.

    `told` hears how many points are done. GvizError for an expression that is more than one number.
    """
    _refuse_several(timeline, iteration, shows)
    drawn: dict[str, list[tuple[float, float]]] = {text: [] for text in shows}
    why: list[str] = []
    for done, (x, change) in enumerate(points):
        told(done)
        branch = branch_of(timeline, iteration, [*kept, change])
        other = Timeline(branch.log)
        asker = Asker(other)
        for text, curve in drawn.items():
            try:
                y = asker.number(branch.expression(text), len(other))
            except GvizError:
                if not branch.stopped:
                    raise
                y = nan
            curve.append((x, y))
            if (isnan(y) or branch.decisions) and not why:
                why = list(stops(timeline, branch))
    return list(drawn.items()), why


def _points(timeline: Timeline, iteration: Iteration, change: str) -> int:
    """How many points a debugger can be kept waiting for."""
    nodes = len(timeline.nodes_of(iteration))
    points = min(POINTS, MOST_RUNS // max(nodes, 1))
    if points < FEWEST_POINTS:
        why = f"the iteration has {nodes} nodes, and each is run again for every point"
        hint = f'outside of the debugger: gviz whatif TRACE "{clipped(change, 40)}" {SHOW} z,x.grad'
        raise GvizError("this range would take long", why=why, hint=hint, exit_code=2)
    return points


def _root(timeline: Timeline, iteration: Iteration) -> int:
    """Where the last backward pass of an iteration began, else its last node; 0 where there is none."""
    started = timeline.select([BackwardStarted], max(iteration.start, 1), iteration.end + 1)
    roots = [event.roots[0][0] for _, event in started if isinstance(event, BackwardStarted) and event.roots]
    return roots[-1] if roots else max(timeline.nodes_of(iteration), default=0)


def _gradient(what: str) -> str:
    """The gradient of a place: of ``w[0, 1]`` it is ``w.grad[0, 1]``."""
    place, bracket, index = what.partition("[")
    return f"{place.strip()}.grad{bracket}{index}"


def _as_one(asker: Asker, text: str, n: int) -> str:
    """An expression that is one number: the sum of what is more; empty for what is none."""
    try:
        count = asker.elements(text, n)
    except GvizError:
        return ""
    return text if count == 1 else f"({text}).sum()" if count else ""


def _refuse_several(timeline: Timeline, iteration: Iteration, shows: Sequence[str]) -> None:
    """Raise `GvizError` for an expression that is more than one number."""
    asker = Asker(timeline)
    for text in shows:
        if asker.elements(text, iteration.end) > 1:
            raise GvizError(f"{text} is more than one number", hint=f"({text}).sum() is one", exit_code=2)


def _as_svg(changes: Sequence[str], shows: Sequence[str]) -> str:
    quoted = " ".join([f'"{clipped(change, 40)}"' for change in changes])
    return f'as a picture: gviz whatif TRACE {quoted} {SHOW} "{clipped(",".join(shows), 40)}" -o curve.svg'


def _lines(what: str, drawn: Sequence[Curve], said: Sequence[str], width: int, *, ascii: bool) -> Iterator[Line]:
    for text, points in drawn:
        title, *rows = text_curve(f"{text} over {what}", points, ascii=ascii)
        yield lines.line((title, "title"))
        yield from (lines.cut(lines.line((row, "value")), width) for row in rows)
        yield ()
    for sentence in said:
        yield from lines.wrapped(lines.line((sentence, "muted")), width)
