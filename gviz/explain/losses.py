"""The losses of one backward: what its root adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gviz.explain.operations import LISTS, RESHAPING
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline

MOST_LOSSES = 20
"""A sum of more is one loss of many steps or rows."""

_SUMS = {"add", "sub", "sum", "mean", *LISTS}
_SCALES = {"mul", "div", "neg", *RESHAPING}


@dataclass(frozen=True, slots=True)
class Losses:
    """By loss the nodes of the sum that use it, and all nodes of the sum."""

    uses: Mapping[int, frozenset[int]]
    summing: frozenset[int]


def losses_of(timeline: Timeline, roots: Sequence[int]) -> Losses | None:
    """The losses that a pass from these roots began with; None if there is only one.

    Factors on the way down belong to the sum: of ``l1 + 0.1 * l2`` the losses are ``l1`` and ``l2``.
    """
    uses: dict[int, frozenset[int]] = {}
    summing: set[int] = set()
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting and len(uses) <= MOST_LOSSES:
        node, user = waiting.pop()
        if node in summing:
            continue  # a sum that is used twice, as in x + dt * x: all below it is known
        below = _added(timeline, timeline.info(node))
        if below:
            summing.add(node)
            waiting += [(source, node) for source in reversed(below)]
        else:
            uses[node] = uses.get(node, frozenset()) | {user}
    return Losses(uses, frozenset(summing)) if 1 < len(uses) <= MOST_LOSSES else None


def _added(timeline: Timeline, info: NodeInfo) -> list[int]:
    """What a node of the sum is the sum of, or a multiple of; nothing if it is a loss itself."""
    sources = _tracked(timeline, info)
    op = info.op.base_name
    known = (op in _SUMS and bool(sources)) or (op in _SCALES and len(sources) == 1)
    if known and all(map(_is_scalar, sources)):
        return [source.node for source in sources]
    stacked = op in {"sum", "mean"} and len(sources) == 1 and sources[0].op.name in LISTS
    return [sources[0].node] if stacked and all(map(_is_scalar, _tracked(timeline, sources[0]))) else []


def _tracked(timeline: Timeline, info: NodeInfo) -> list[NodeInfo]:
    sources = (timeline.info(node) for node, _ in info.created.inputs if node)
    return [source for source in sources if source.created.requires_grad]


def _is_scalar(info: NodeInfo) -> bool:
    value = info.created.first_value
    return value is not None and value.size == 1
