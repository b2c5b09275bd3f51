"""What folding needs to know of a timeline: which node uses which, and in which module calls each was made."""

from __future__ import annotations

from collections.abc import Iterable

from gviz.render.fold import Call, Graph
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline


def graph_of(timeline: Timeline, infos: Iterable[NodeInfo]) -> Graph:
    """The graph of some nodes, which come in order of creation. What a pass made lies in the pass, not in a module."""
    known: dict[int, tuple[Call, ...]] = {}
    nodes, inputs, calls, loose = [], {}, {}, set()
    for info in infos:
        nodes.append(info.node)
        inputs[info.node] = tuple(node for node, _ in info.created.inputs)
        pass_nr = info.created.during[0]
        calls[info.node] = (_made_by(pass_nr),) if pass_nr else _calls(timeline, info.created.scope, known)
        if info.created.kind == "parameter":
            loose.add(info.node)
    return Graph(nodes, inputs, calls, loose)


def _made_by(pass_nr: int) -> Call:
    return Call(-pass_nr, f"backward pass {pass_nr}", "")


def _calls(timeline: Timeline, scope: int, known: dict[int, tuple[Call, ...]]) -> tuple[Call, ...]:
    """The calls a scope lies in, itself included, the outermost first."""
    way: list[Call] = []
    inner = scope
    while inner not in known and (entered := timeline.call(inner)) is not None:
        way.append(Call(inner, entered.name, entered.kind))
        if entered.parent >= inner:  # a call begins after the one around it
            break
        inner = entered.parent
    outer = known.get(inner, ())
    for call in reversed(way):
        outer = known[call.scope] = (*outer, call)
    return outer
