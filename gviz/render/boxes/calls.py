"""What folding needs to know of a timeline: which node uses which, and in which module calls each was made.

What a backward pass made lies in the pass, what an optimizer computed in its step, not in a module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gviz.driven import Driven, Far, finished, parts
from gviz.explain.names import step_kind
from gviz.render.boxes.fold import CallGraph, ModuleCall
from gviz.trace.state import OPTIMIZER, NodeInfo
from gviz.trace.timeline import Timeline

Calls = tuple[ModuleCall, ...]
"""The calls around a node, the outermost first."""


def graph_of(timeline: Timeline, infos: Iterable[NodeInfo], *, whole: bool = True) -> CallGraph:
    """The graph of some nodes, which come in order of creation.

    Only where they are the `whole` of a graph it is known as what call of its module each came.
    """
    return finished(reading_graph(timeline, tuple(infos), whole=whole))


def reading_graph(timeline: Timeline, infos: Sequence[NodeInfo], *, whole: bool = True) -> Driven[CallGraph]:
    """`graph_of`, which rests often."""
    known: dict[int, Calls] = {}
    steps = _steps(timeline, infos)
    nodes, inputs, loose, buffers = [], {}, set(), set()
    calls: dict[int, Calls] = {}
    for part in parts(infos, "reading the calls: node"):
        if isinstance(part, Far):
            yield part
            continue
        for info in part:
            nodes.append(info.node)
            inputs[info.node] = tuple(node for node, _ in info.created.inputs)
            apart = steps.get(info.node) or _made_by(info.created.during[0])
            calls[info.node] = (apart,) if apart else _calls(timeline, info.created.scope, known)
            if info.created.kind == "parameter":
                loose.add(info.node)
            elif _is_buffer(info) and not calls[info.node]:
                buffers.add(info.node)
    return CallGraph(nodes, inputs, _numbered(calls) if whole else calls, loose, buffers)


def _is_buffer(info: NodeInfo) -> bool:
    """Whether it was an attribute of a module or another object, and not a variable, as the data are."""
    return info.created.kind != "op" and "." in (info.name or "")


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


def _steps(timeline: Timeline, infos: Sequence[NodeInfo]) -> dict[int, ModuleCall]:
    """The step of an optimizer that made each node itself; what an older one made is in the step that uses it here."""
    steps: dict[int, int] = {}
    here: dict[int, int] = {}  # by the place where they are called
    for info in reversed(infos):
        said = timeline.contexts.step_of(info)
        if said and info.iteration == infos[-1].iteration:
            steps[info.node] = here[info.created.stack] = said
        elif said:
            steps[info.node] = here.get(info.created.stack, said)
    return {node: ModuleCall(-2 * said - 1, OPTIMIZER, step_kind(timeline, said)) for node, said in steps.items()}


def _made_by(pass_nr: int) -> ModuleCall | None:
    return ModuleCall(-2 * pass_nr, f"backward pass {pass_nr}", "") if pass_nr else None


def _calls(timeline: Timeline, scope: int, known: dict[int, Calls]) -> Calls:
    """The calls a scope lies in, itself included, the outermost first."""
    way: list[ModuleCall] = []
    inner = scope
    while inner not in known and (entered := timeline.contexts.call(inner)) is not None:
        way.append(ModuleCall(inner, entered.name, entered.kind))
        inner = entered.parent
    outer = known.get(inner, ())
    for call in reversed(way):
        outer = known[call.scope] = (*outer, call)
    return outer
