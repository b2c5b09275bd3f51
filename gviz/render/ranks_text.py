"""The text of a comparison of training ranks: where they agree, where they diverge, and what differs as expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from gviz.compare.compared_iteration import Side
from gviz.compare.ranks import INTERRUPTED, OWN, Course, Divergence, Own, Part, RankDifferences, Shared
from gviz.compare.recording_comparison import Difference
from gviz.events import Event, Failed
from gviz.explain.display_names import label
from gviz.explain.finding import Finding
from gviz.render.comparison_table import apart
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values import value_text
from gviz.values.plain_text import clipped, file_line, shown

_VALUE_WIDTH = 24

_AGREES = "agrees in parameters, used gradients, buffers and graph"
"""The text for a rank that does the same as the first one."""

EXPECTED: dict[Own, str] = {
    "data": "data",
    "random": "random masks",
    "result": "results of these",
    "own gradient": "gradients that no optimizer used",
    "own work": "operations outside training",
}
"""The text for what each rank has of its own."""

_BREAKS: dict[Shared | Course, str] = {
    "parameter": "a parameter differs",
    "gradient": "the optimizer used another gradient",
    "buffer": "a buffer differs",
    "graph": "another graph",
    "passes": "another number of backward passes",
    "steps": "another number of optimizer steps",
    "end": "it is not finished",
    "iterations": "another number of iterations",
}
"""The text for what two ranks should have in common but do not."""

_WHY: dict[Shared | Course, str] = {
    "parameter": "every rank should begin an iteration with the same parameters",
    "gradient": "it was not averaged over the ranks, or changed after that on one of them",
    "buffer": "where it is not broadcast (broadcast_buffers=False, after no_sync()) each rank has its own, and saves "
    "or evaluates with it",
    "graph": "it may be intended (find_unused_parameters); otherwise ranks wait for gradients that never arrive",
    "passes": "each pass of one rank waits for one of the others",
    "steps": "a rank that steps less often keeps older parameters",
    "end": "the other ranks wait for it, or fail because of it",
    "iterations": "the others wait for it, unless they use Join",
}


def agreement(rank: Timeline, other: str) -> str:
    """Return the sentence that a rank agrees with the `other`, with the number of parameters whose values are unknown.

    The values of sharded parameters are not recorded.
    """
    side = Side(rank, rank.iterations[-1].number)
    values = (rank.info(node).created.first_value for node in side.learnt)
    unknown = sum(value is None or value.statistics() is None for value in values)
    known = f", but the numbers of {unknown} parameter{'s' * (unknown != 1)} are not known" if unknown else ""
    return f"{_AGREES} with {other}{known}"


def headline(parting: Divergence, a: str, b: str) -> str:
    """Return where rank `b` diverges from rank `a`, in one line: ``iteration 2: a parameter differs, ...``."""
    where = f"iteration {parting.iteration}: {_BREAKS[parting.what]}"
    return f"{where}, {_first(parting)}" if parting.difference is not None else f"{where}, {_counts(parting, a, b)}"


def sentences(parting: Divergence, a: str, b: str) -> Iterator[str]:
    """Yield the headline, both values, why it matters, and what differs as expected."""
    yield f"{headline(parting, a, b)}."
    difference = parting.difference
    if difference is not None and difference.kind != "missing" and parting.between is not None:
        texts = [value_text.short(value, _VALUE_WIDTH) if value is not None else "none" for value in difference.values]
        if any(difference.values):
            yield f"{clipped(a, 30)} {texts[0]}, {clipped(b, 30)} {texts[1]}{_gap(parting)}."
    yield f"why it matters: {_WHY[parting.what]}."
    if parting.between is not None:
        yield from expected(parting.between)


def finding(parting: Divergence, a: str, b: str) -> Finding:
    """Return the divergence as a finding about rank `b`. Different graphs and buffers may be intended."""
    difference, at = parting.difference, None
    if difference is not None and parting.between is not None:
        at = _source_line(parting.between, difference)
    text = f"this rank stops agreeing with {a}: {headline(parting, a, b)}"
    parts = tuple(Finding("rank", line) for line in islice(sentences(parting, a, b), 1, None))
    return Finding("ranks-part", text, parts=parts, at=at, suspected=parting.what in ("graph", "buffer"))


def _gap(parting: Divergence) -> str:
    text = apart(parting.difference) if parting.difference is not None else ""
    return f", {text}" if text else ""


def expected(between: RankDifferences) -> Iterator[str]:
    """Yield a sentence about expected differences between two ranks, if there are any."""
    counts: Counter[Part] = Counter(part for part, _ in between.parts)
    words = [f"{EXPECTED[part]} ({counts[part]})" for part in OWN if counts[part]]
    if words:
        yield f"each rank's own, as expected: {', '.join(words)}."


def _first(parting: Divergence) -> str:
    difference, between = parting.difference, parting.between
    if difference is None or between is None:
        return ""
    side, node = _of(between, difference)
    at = _source_line(between, difference)
    return f"first {label(side.timeline, node)}{f' ({file_line(at.path, at.line)})' if at is not None else ''}"


def _source_line(between: RankDifferences, difference: Difference) -> Frame | None:
    """Return the source line of a difference, if the iteration made the node."""
    side, node = _of(between, difference)
    frames = side.infos[node].frames
    return frames[0] if frames and side.creates(node) else None


def _of(between: RankDifferences, difference: Difference) -> tuple[Side, int]:
    """Return the rank and the node that represent a difference: the first rank, unless only the second has the node."""
    which = 0 if difference.pair[0] else 1
    return (between.comparison.a, between.comparison.b)[which], difference.pair[which]


def _counts(parting: Divergence, a: str, b: str) -> str:
    here, there = parting.counts
    if parting.what == "end":
        if not here or not there:
            return f"{a if here else b} stops early"
        return f"both stop early, {a if here < there else b} first"
    return f"{a} has {here}, {b} {there}"


def ending(timeline: Timeline) -> str:
    """Return how a rank ended, ``failed: ValueError: no``; empty if it finished."""
    if timeline.failures:
        return _failure(timeline, timeline.event(timeline.failures[-1]))
    return "" if timeline.finished else f"killed or still running{_last_line(timeline)}"


def _failure(timeline: Timeline, event: Event) -> str:
    if not isinstance(event, Failed):
        return "failed"
    frames = timeline.stack(event.stack)
    line = f" ({file_line(frames[0].path, frames[0].line)})" if frames else ""
    if event.error == INTERRUPTED:
        return f"interrupted{line}"
    return f"failed: {shown(event.error)}: {clipped(shown(event.message), 60)}{line}"


def _last_line(timeline: Timeline) -> str:
    """Return the source line of the last event that has one."""
    for n in range(len(timeline), max(len(timeline) - 200, 0), -1):
        frames = timeline.stack(getattr(timeline.event(n), "stack", 0))
        if frames:
            return f", last seen at {file_line(frames[0].path, frames[0].line)}"
    return ""


def iterations_of(timeline: Timeline) -> str:
    """Return ``3 iterations, 240 events``."""
    counts = (len(timeline.iterations), "iteration"), (len(timeline), "event")
    return ", ".join(f"{count} {what}{'s' * (count != 1)}" for count, what in counts)
