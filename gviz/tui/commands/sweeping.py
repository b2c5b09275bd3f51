"""One number changed over a range, ``x = -3..3``: what follows from it, as curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from gviz.driven import Driven
from gviz.errors import GvizError
from gviz.explain.whatif import (
    SHOW,
    Curve,
    ambiguous_names,
    branch_of,
    curves,
    default_expressions,
    expressions_in,
    require_engine,
    rerun_sentences,
)
from gviz.plain_text import clipped
from gviz.render.curve import text_curve
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline
from gviz.tui import lines
from gviz.tui.language.command import Look
from gviz.tui.lines import Line
from gviz.tui.session import Session

POINTS = 25
FEWEST_POINTS = 5
MOST_RUNS = 12_000
"""Nodes that are run again while a debugger waits, those of all points together: two or three seconds."""


def sweep(session: Session, text: str, kept: Sequence[str]) -> Driven[Look]:
    """``set x = -3..3 [--show EXPR,...]``: curves of a value and of a gradient, with the changes that are `kept`.

    Nothing is changed by it. GvizError for what is no range, and where too much would have to be run again.
    """
    from gviz.rerun.change import sweep

    timeline, iteration = session.timeline, session.timeline.iteration_at(session.cursor.position)
    require_engine(timeline)
    change, _, asked = (part.strip() for part in text.partition(SHOW))
    points = list(sweep(change, _points(timeline, iteration, change)))
    if not points:
        branch_of(timeline, iteration, [change])  # says what is wrong with it
    what = change.partition("=")[0].strip()
    shows = expressions_in(asked) or default_expressions(timeline, iteration, what)
    drawn, stopped = yield from curves(timeline, iteration, points, shows, kept)
    before = (*rerun_sentences(timeline, iteration), *ambiguous_names(timeline, iteration, (change,)))
    said = [*before, *stopped, _as_svg((*kept, change), [text for text, _ in drawn])]
    title = f"What if {', '.join([clipped(each, 40) for each in (*kept, change)])}"
    return Look(title, partial(_lines, what, drawn, said, ascii=session.glyphs.ascii))


def _points(timeline: Timeline, iteration: Iteration, change: str) -> int:
    """How many points a debugger can be kept waiting for."""
    nodes = len(timeline.nodes.of(iteration))
    points = min(POINTS, MOST_RUNS // max(nodes, 1))
    if points < FEWEST_POINTS:
        why = f"the iteration has {nodes} nodes, and each is run again for every point"
        hint = f'outside of the debugger: gviz whatif TRACE "{clipped(change, 40)}" {SHOW} z,x.grad'
        raise GvizError("this range would take long", why=why, hint=hint, exit_code=2)
    return points


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
