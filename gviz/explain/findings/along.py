"""A gradient that dies out or blows up along the way: a waterfall of factors, and the line with the strongest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, label_at, made_at, op_title
from gviz.explain.survey import Survey
from gviz.numbers import norm, number
from gviz.trace.timeline import Timeline

VANISHED, EXPLODED = 1e-8, 1e8
"""Beyond these factors between two places of one way no number format of training has anything left to say."""

_STRONG = 0.5
_MOST_LINES = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One node on the way back: `size` is the length (L2) of the gradient it passes on, by event `seq`."""

    node: int
    size: float
    seq: int


def vanished(survey: Survey) -> Iterator[Finding]:
    """The leaf with the smallest gradient of a pass, if the way to it lost nearly all."""
    for way in _ways(survey, smallest=True):
        largest = max(way, key=lambda step: step.size)
        if way[-1].size < VANISHED * largest.size:
            yield _finding(survey.timeline, way[way.index(largest) :], "vanishing")
            return


def exploded(survey: Survey) -> Iterator[Finding]:
    """The leaf with the largest gradient of a pass, if it grew to that on the way."""
    for way in _ways(survey, smallest=False):
        smallest = min(way, key=lambda step: step.size)
        if way[-1].size > EXPLODED * smallest.size:
            yield _finding(survey.timeline, way[way.index(smallest) :], "exploding")
            return


def _ways(survey: Survey, *, smallest: bool) -> Iterator[list[Step]]:
    """Of the first and the last pass: the way to the leaf with the smallest (largest) gradient that is not zero."""
    sizes: defaultdict[int, dict[int, tuple[float, int]]] = defaultdict(dict)
    passes = [event.pass_nr for _, event in survey.passes]
    for seq, event in survey.accumulated:
        if event.pass_nr in (passes[:1] + passes[-1:]) and (size := norm(event.part)):
            sizes[event.pass_nr][event.node] = size, seq
    for leaves in sizes.values():
        node = (min if smallest else max)(leaves, key=lambda leaf: leaves[leaf][0])
        size, seq = leaves[node]
        yield [*way_to(survey.timeline, node, seq), Step(node, size, seq)]


def way_to(timeline: Timeline, node: int, seq: int) -> list[Step]:
    """From the root to the node, over the largest contribution to each."""
    way: list[Step] = []
    moment, seen = timeline.at(seq), {node}
    while True:
        state = moment.state(node)
        parts = [part for output in state.outputs for part in output.parts if part.source] if state is not None else []
        if not parts:
            return way
        largest = max(parts, key=lambda part: norm(part.value) or 0.0)
        if largest.source in seen:
            return way
        node = largest.source
        seen.add(node)
        way.insert(0, Step(node, norm(largest.value) or 0.0, largest.seq))


def _finding(timeline: Timeline, way: list[Step], kind: str) -> Finding:
    first, last = way[0], way[-1]
    factors = [(after, after.size / before.size) for before, after in pairwise(way[:-1]) if before.size]
    by_line = _by_line(timeline, factors)
    strongest = sorted(by_line, key=lambda rows: prod(factor for _, factor in rows), reverse=kind == "exploding")
    parts = tuple(_line(timeline, rows) for rows in strongest[:_MOST_LINES] if _is_strong(rows, kind))
    step = _first_strong(strongest[0] if strongest else factors, kind)
    info = timeline.info(step.node if step is not None else last.node)
    total = f"from {number(first.size)} at {label(timeline, first.node)} to {number(last.size)}"
    what = "dies out" if kind == "vanishing" else "blows up"
    text = f"the gradient {what} on its way to {label(timeline, last.node)}: {total}, over {len(way) - 1} operations"
    numbers = (Number("at the start", first.size, first.seq), Number("at the end", last.size, last.seq))
    named = f"the first strong factor is at {label_at(timeline, info.node)}"
    parts = (Finding("first", named, step.seq if step else last.seq, info.node), *parts)
    return Finding(kind, text, last.seq, info.node, parts, _FIXES[kind], innermost(info), numbers)


_FIXES = {
    "vanishing": "relu instead of sigmoid or tanh, residual connections, normalization, or larger weights at the start",
    "exploding": "smaller weights at the start, normalization, fewer steps, or clip_grad_norm_ before the step",
}


def _by_line(timeline: Timeline, factors: list[tuple[Step, float]]) -> list[list[tuple[Step, float]]]:
    rows: defaultdict[tuple[int, int], list[tuple[Step, float]]] = defaultdict(list)
    for step, factor in factors:
        created = timeline.info(step.node).created
        rows[created.stack, created.op].append((step, factor))
    return list(rows.values())


def _line(timeline: Timeline, rows: list[tuple[Step, float]]) -> Finding:
    step = rows[0][0]
    info = timeline.info(step.node)
    total = prod(factor for _, factor in rows)
    often = f", {len(rows)} times" if len(rows) > 1 else ""
    text = f"x{number(total, 3)} by {op_title(info)}{made_at(info.frames)}{often}"
    return Finding("factor", text, step.seq, step.node, at=innermost(info))


def _is_strong(rows: list[tuple[Step, float]], kind: str) -> bool:
    total = prod(factor for _, factor in rows)
    return total < _STRONG if kind == "vanishing" else total > 1 / _STRONG


def _first_strong(rows: list[tuple[Step, float]], kind: str) -> Step | None:
    strong = (row[0] for row in rows if _is_strong([row], kind))
    return next(strong, rows[0][0] if rows else None)


VANISHING = Kind("vanishing", "warning", "a gradient that dies out on its way to a leaf", find=vanished)
EXPLODING = Kind("exploding", "warning", "a gradient that blows up on its way to a leaf", find=exploded)
