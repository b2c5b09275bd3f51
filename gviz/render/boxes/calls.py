"""What folding needs to know of a timeline: which node uses which, and in which module calls each was made.

What a backward pass made lies in the pass, what an optimizer computed in its step, not in a module.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gviz.events import OptimizerStepped
from gviz.render.boxes.fold import CallGraph, ModuleCall
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline

Calls = tuple[ModuleCall, ...]
"""The calls around a node, the outermost first."""

OPTIMIZER = "optimizer step"
"""The path that the steps of all optimizers have."""


def graph_of(
    timeline: Timeline, infos: Iterable[NodeInfo], steps: Sequence[int] = (), *, whole: bool = True
) -> CallGraph:
    """The graph of some nodes, which come in order of creation; `steps` are the events of optimizers that count.

    Only where they are the `whole` of a graph it is known as what call of its module each came.
    """
    known: dict[int, Calls] = {}
    stepped = Steps(timeline, steps)
    nodes, inputs, loose = [], {}, set()
    calls: dict[int, Calls] = {}
    for info in infos:
        nodes.append(info.node)
        inputs[info.node] = tuple(node for node, _ in info.created.inputs)
        apart = stepped.call(info) or _made_by(info.created.during[0])
        calls[info.node] = (apart,) if apart else _calls(timeline, info.created.scope, known)
        if info.created.kind == "parameter":
            loose.add(info.node)
    return CallGraph(nodes, inputs, _numbered(calls) if whole else calls, loose)


def _numbered(calls: Mapping[int, Calls]) -> dict[int, Calls]:
    """The calls of each node, those of a module that was called several times with their number."""
    distinct = {chain[-1].scope: chain for chain in calls.values() if chain}
    every = {call.scope: call for chain in distinct.values() for call in chain}
    count = Counter(call.path for call in every.values())
    seen: Counter[str] = Counter()
    known = {}
    for scope, call in sorted(every.items()):
        seen[call.path] += 1
        known[scope] = replace(call, nr=seen[call.path], of=count[call.path])
    chains = {scope: tuple(known[call.scope] for call in chain) for scope, chain in distinct.items()}
    return {node: chains[chain[-1].scope] if chain else () for node, chain in calls.items()}


class Steps:
    """Some steps of optimizers: which of them computed a node, as far as the place where they were called tells."""

    def __init__(self, timeline: Timeline, steps: Sequence[int]) -> None:
        self._kinds: dict[int, str] = {}
        self._by_stack: dict[int, list[int]] = {}
        for seq in steps:
            event = timeline.event(seq)
            if isinstance(event, OptimizerStepped):
                self._kinds[seq] = event.kind
                self._by_stack.setdefault(event.stack, []).append(seq)

    @property
    def known(self) -> bool:
        """Whether there is any."""
        return bool(self._kinds)

    def call(self, info: NodeInfo) -> ModuleCall | None:
        """The first step after the node was made where it was made, the last one there if none is."""
        seqs = self._by_stack.get(info.created.stack)
        if not seqs or info.created.requires_grad:
            return None
        seq = seqs[min(bisect_left(seqs, info.born), len(seqs) - 1)]
        return ModuleCall(-2 * seq - 1, OPTIMIZER, self._kinds[seq])


def _made_by(pass_nr: int) -> ModuleCall | None:
    return ModuleCall(-2 * pass_nr, f"backward pass {pass_nr}", "") if pass_nr else None


def _calls(timeline: Timeline, scope: int, known: dict[int, Calls]) -> Calls:
    """The calls a scope lies in, itself included, the outermost first."""
    way: list[ModuleCall] = []
    inner = scope
    while inner not in known and (entered := timeline.contexts.call(inner)) is not None:
        way.append(ModuleCall(inner, entered.name, entered.kind))
        if entered.parent >= inner:  # a call begins after the one around it
            break
        inner = entered.parent
    outer = known.get(inner, ())
    for call in reversed(way):
        outer = known[call.scope] = (*outer, call)
    return outer
