"""Which tensors an operation keeps for backward: what the gradients that are needed are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline

_WORD = re.compile(r"\w+")


def kept_names(timeline: Timeline, node: int) -> tuple[str, ...]:
    """What a node keeps, by the names that its operation has for it: of ``x * 2`` alone the 2."""
    info = timeline.info(node)
    then = timeline.at(info.born)

    def requires_grad(source: int) -> bool:
        state = then.state(source)
        return state is None or state.requires_grad

    return tuple(info.op.saved[place] for place in kept(info, requires_grad))


def kept(info: NodeInfo, requires_grad: Callable[[int], bool]) -> Iterator[int]:
    """The places of what a node keeps among all that its operation may; the nodes that it is made of are asked about.

    Where no rule names a tensor, it is kept in any case.
    """
    if info.created.kind != "op" or info.created.untracked:
        return
    rules = [set(_WORD.findall(rule)) for rule in info.op.rules]
    needed: set[str] = set()
    for (node, _), rule in zip(info.created.inputs, rules, strict=False):
        if node and requires_grad(node):
            needed |= rule
    for place, name in enumerate(info.op.saved):
        if name in needed or not any(name in rule for rule in rules):
            yield place
