"""The time steps of a loop: one operation of one line of the program that ran several times, each time a new node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gviz.explain.finding import Finding, Number
from gviz.explain.names import innermost, made_at
from gviz.numbers import number
from gviz.trace.state import Contribution
from gviz.trace.timeline import Timeline
from gviz.value_text import bad_text, norm


@dataclass(frozen=True, slots=True)
class Step:
    """A node is the `nth` of `count` that its line made, the first is 1."""

    nth: int
    count: int


def steps(timeline: Timeline, nodes: Iterable[int]) -> dict[int, Step]:
    """By node: which time it is of those of its line; nodes whose line made no other of them are left out."""
    by_line: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for node, created in timeline.nodes.all_created(sorted({*nodes} - {0})):
        by_line[created.stack, created.op].append(node)
    return {
        node: Step(nth, len(line)) for line in by_line.values() if len(line) > 1 for nth, node in enumerate(line, 1)
    }


def unrolled(timeline: Timeline, parts: Sequence[Contribution], known: Mapping[int, Step]) -> Finding | None:
    """Which step of a loop sent most and which least, where all contributions come from the `known` steps of one."""
    if len(parts) < 3 or len(known) < len(parts) or len({step.count for step in known.values()}) > 1:
        return None
    sizes = [(norm(part.value), part) for part in parts if not bad_text(part.value)]
    told = [(size, part) for size, part in sizes if size is not None]
    if len(told) < len(parts):
        return None
    (least, last), (most, first) = (pick(told, key=lambda pair: pair[0]) for pick in (min, max))
    info = timeline.info(first.source)
    text = (
        f"{len(parts)} steps of a loop{made_at(info.frames)} sent to it: step {known[first.source].nth} most, "
        f"|g| {number(most)}; step {known[last.source].nth} least, |g| {number(least)}"
    )
    numbers = (Number("most", most, first.seq), Number("least", least, last.seq))
    return Finding("steps", text, first.seq, first.source, at=innermost(info), numbers=numbers)
