"""Data preparation: what a program computes from its data before the model, as one box for each result that is used.

A program often makes its data in many operations that autograd does not track, because no input requires a gradient:

    t = linspace(-3, 3, 200)      t, sin, stack, mean, std, sub, div, index          8 boxes
    x = normalize(features(t))    x  (200,3)  6 operations on data                   1 box
    y = sin(t)                    y  (200,1)  …                                      1 box

`with_data` puts a call around these nodes, and `fold` makes one box of each call, unless the user expands it. Tape and
timeline keep all nodes. Which nodes share a box:

* An *entry* is data that something else uses: a tracked operation, a module, or the call that failed. All that an entry
  was computed from is in the box of the entry, up to other entries. What several entries were computed from, such as
  the indices of a batch, is in the box of each, as a parameter is in every call of its module that uses it.
* What more than `MOST_ENTRIES` were computed from, such as a sequence that a loop reads, has a box of its own.
* What the graph does not use, such as data for validation, is in one box, and no line leads to it.

A group with few operations has no box: each of its nodes does. Two operations are a box in the debugger, where each of
them would be a step (`FEWEST_OPERATIONS`), three in a picture, because small graphs are easy to read as they are
(`FEWEST_IN_PICTURES`). Without an entry, as in a program that only computes with data, the graph stays as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gviz.events import RequiresGradSet
from gviz.explain.display_names import op_title
from gviz.explain.failed_call import failed_call
from gviz.render.boxes.folding import DATA, CallGraph, ModuleCall, Preparation
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline

FEWEST_OPERATIONS = 2
"""The fewest operations on data that are one box in the debugger."""

FEWEST_IN_PICTURES = 3
"""The fewest operations on data that are one box in a picture or on a page."""

MOST_ENTRIES = 3
"""The most entries whose boxes all contain what they were computed from."""

_MANY = frozenset({0})
"""Instead of the entries, if there are more than `MOST_ENTRIES`: no node has the number 0."""

_REASONS = ("", "inputs", "dtype")
"""Why autograd does not track operations on data, if the nodes that they were made from are not known."""


def with_data(
    timeline: Timeline, graph: CallGraph, infos: Mapping[int, NodeInfo], fewest: int = FEWEST_OPERATIONS
) -> CallGraph:
    """Return the graph with a call around the nodes of each group of data preparation with the `fewest` operations."""
    data = _data(timeline, graph, infos)
    reached = _entries(graph, data, _operands_of_failure(timeline, infos))
    if not any(reached.values()):
        return graph
    groups: dict[frozenset[int], list[int]] = {}
    for node in data:
        groups.setdefault(reached[node], []).append(node)
    shared = {entries: nodes for entries, nodes in groups.items() if len(entries) > 1}
    operations = _operations(groups, infos, fewest)
    calls, preparations = dict(graph.calls), dict(graph.preparations)
    for entries, nodes in groups.items():
        last = infos[nodes[-1]]
        if last.node not in operations:
            continue
        is_entry = last.node in entries or (entries == _MANY and _is_only_result(last.node, nodes, graph))
        place = last.created.stack or f"#{last.node}"
        call = ModuleCall(-DATA - last.node, f"data {place}", (last.name or op_title(last)) if is_entry else "data")
        preparations[call.scope] = Preparation(operations[last.node], is_entry, bool(entries))
        calls |= dict.fromkeys(nodes, (call,))
    owners = {
        node: tuple(calls[entry][0] for entry in sorted(entries))
        for entries, nodes in shared.items()
        if entries <= operations.keys()
        for node in nodes
    }
    inside = {node for node in data if calls.get(node)} | owners.keys()
    buffers = frozenset(graph.buffers) - inside
    return replace(graph, calls=calls, buffers=buffers, preparations=preparations, shared_data=owners)


def _operations(
    groups: Mapping[frozenset[int], Sequence[int]], infos: Mapping[int, NodeInfo], fewest: int
) -> dict[int, int]:
    """Return the number of operations in each group that has a box, by the last node of the group.

    What several entries were computed from counts for each of them, if all of them have a box.
    """
    count = {entries: sum(infos[node].created.kind == "op" for node in nodes) for entries, nodes in groups.items()}
    own = {nodes[-1]: count[entries] for entries, nodes in groups.items() if len(entries) <= 1}
    shared: defaultdict[int, set[frozenset[int]]] = defaultdict(set)
    operations = Counter(own)
    for entries in (entries for entries in groups if len(entries) > 1):
        operations.update(dict.fromkeys(entries, count[entries]))
        for entry in entries:
            shared[entry].add(entries)
    few = [last for last, number in operations.items() if number < fewest]
    while few:
        last = few.pop()
        del operations[last]
        for entries in [*shared.pop(last, ())]:  # they count for none of their entries then
            for entry in entries - {last}:
                shared[entry].discard(entries)
                if entry in operations:
                    was_enough = operations[entry] >= fewest
                    operations[entry] -= count[entries]
                    if was_enough and operations[entry] < fewest:
                        few.append(entry)
    return dict(operations)


def _is_only_result(node: int, group: Collection[int], graph: CallGraph) -> bool:
    """Return whether no other node of a group is used outside of it."""
    inside = {*group}
    used = {source for user in graph.nodes if user not in inside for source in graph.inputs.get(user, ())}
    return used & inside == {node}


def _data(timeline: Timeline, graph: CallGraph, infos: Mapping[int, NodeInfo]) -> dict[int, None]:
    """Return the nodes that were computed from data only, and the data, in order of creation.

    They are outside of modules, backward passes and optimizers. What a program computes after a backward pass, such as
    an update of parameters by hand, does not count, nor does a leaf: ``torch.linspace(-3, 3, 7).requires_grad_()``.
    """
    data: dict[int, None] = {}
    leaves = _later_leaves(timeline, infos)
    for node in graph.nodes:
        info = infos[node]
        if (
            info.created.requires_grad
            or node in leaves
            or graph.calls.get(node)
            or node in graph.loose
            or node in graph.owned
        ):
            continue
        at = bisect_right(timeline.phases, info.born, key=lambda phase: phase.start) - 1
        if at >= 0 and timeline.phases[at].kind in ("after backward", "optimizer"):
            continue
        sources = {source for source in graph.inputs.get(node, ()) if source}
        is_older = info.created.kind == "op" and not sources <= infos.keys()
        if (sources & infos.keys()) <= data.keys() and not (is_older and info.created.untracked not in _REASONS):
            data[node] = None
    return data


def _later_leaves(timeline: Timeline, infos: Mapping[int, NodeInfo]) -> set[int]:
    """Return the nodes that became leaves after they were made."""
    if not infos:
        return set()
    born = [info.born for info in infos.values()]
    end = timeline.iteration_at(max(born)).end
    changes = (event for _, event in timeline.select([RequiresGradSet], max(min(born), 1), end + 1))
    return {event.node for event in changes if event.requires_grad and event.node in infos}


def _operands_of_failure(timeline: Timeline, infos: Mapping[int, NodeInfo]) -> tuple[int, ...]:
    """Return the operands of the call that failed in the iteration of these nodes; empty if none did."""
    if not infos or not timeline.failures:
        return ()
    failed = failed_call(timeline, timeline.iteration_at(max(info.born for info in infos.values())))
    return failed.operands if failed is not None else ()


def _entries(graph: CallGraph, data: Collection[int], operands: Collection[int]) -> dict[int, frozenset[int]]:
    """Return for each node of data the entries that were computed from it. An entry counts as its own.

    The `operands` of a failed call are entries, too.
    """
    reached: dict[int, set[int]] = {node: set() for node in data}
    result: dict[int, frozenset[int]] = {}
    used = {*operands}
    for node in graph.nodes:
        chain = graph.calls.get(node, ())
        if node not in reached and (not chain or chain[0].of_program):
            used.update(graph.inputs.get(node, ()))
    for node in reversed([*data]):
        entries = {node} if node in used else reached[node]  # what a later entry needs of this one, its box has
        result[node] = frozenset(entries) if len(entries) <= MOST_ENTRIES and 0 not in entries else _MANY
        for source in graph.inputs.get(node, ()):
            if source in reached:
                reached[source] |= result[node]
    return result
