"""Data preparation: what a program computes from its data before the model, as one box for each result that is used.

A program often makes its data in many operations that autograd does not track, because no input requires a gradient:

    t = linspace(-3, 3, 200)      t, sin, stack, mean, std, sub, div, index          8 boxes
    x = normalize(features(t))    x  (200,3)  6 operations on data                   1 box
    y = sin(t)                    y  (200,1)  …                                      1 box

`with_data` puts a call around these nodes, and `fold` makes one box of each call, unless the user expands it. Tape and
timeline keep all nodes. Which nodes share a box:

* An *entry* is data that something else uses: a tracked operation, or a module. All that an entry was computed from is
  in the box of the entry, up to other entries. What several entries were computed from, such as the indices of a batch,
  is in the box of each, as a parameter is in every call of its module that uses it.
* What more than `MOST_ENTRIES` were computed from, such as a sequence that a loop reads, has a box of its own.
* What the graph does not use, such as data for validation, is in one box, and no line leads to it.

A group with fewer than `FEWEST_OPERATIONS` operations has no box: each of its nodes does. Without an entry, as in a
program that only computes with data, the graph stays as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from gviz.explain.display_names import op_title
from gviz.render.boxes.fold import DATA, CallGraph, ModuleCall, Preparation
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline

FEWEST_OPERATIONS = 2
"""The fewest operations on data that are drawn as one box."""

MOST_ENTRIES = 3
"""The most entries whose boxes all contain what they were computed from."""

_MANY = frozenset({0})
"""Instead of the entries, if there are more than `MOST_ENTRIES`: no node has the number 0."""

_REASONS = ("", "inputs", "dtype")
"""Why autograd does not track operations on data, if the nodes that they were made from are not known."""


def with_data(timeline: Timeline, graph: CallGraph, infos: Mapping[int, NodeInfo]) -> CallGraph:
    """Return the graph with a call around the nodes of each group of data preparation."""
    data = _data(timeline, graph, infos)
    reached = _entries(graph, data)
    if not any(reached.values()):
        return graph
    groups: dict[frozenset[int], list[int]] = {}
    for node in data:
        groups.setdefault(reached[node], []).append(node)
    shared = {
        entries: nodes
        for entries, nodes in groups.items()
        if entries and entries != _MANY and nodes[-1] not in entries  # the entries come after them
    }
    operations: Counter[int] = Counter()  # by the last node of a group
    for entries, nodes in groups.items():
        count = sum(infos[node].created.kind == "op" for node in nodes)
        operations.update(dict.fromkeys(entries if entries in shared else nodes[-1:], count))
    calls, preparations = dict(graph.calls), dict(graph.preparations)
    for entries, nodes in groups.items():
        last = infos[nodes[-1]]
        if entries in shared or operations[last.node] < FEWEST_OPERATIONS:
            continue
        is_entry = last.node in entries or (entries == _MANY and _is_only_result(last.node, nodes, graph))
        place = last.created.stack or f"#{last.node}"
        call = ModuleCall(-DATA - last.node, f"data {place}", (last.name or op_title(last)) if is_entry else "data")
        preparations[call.scope] = Preparation(operations[last.node], is_entry, bool(entries))
        calls |= dict.fromkeys(nodes, (call,))
    owners = {
        node: tuple(calls[entry][0] for entry in sorted(entries))
        for entries, nodes in shared.items()
        if all(calls.get(entry) for entry in entries)
        for node in nodes
    }
    inside = {node for node in data if calls.get(node)} | owners.keys()
    buffers = frozenset(graph.buffers) - inside
    return replace(graph, calls=calls, buffers=buffers, preparations=preparations, shared_data=owners)


def _is_only_result(node: int, group: Collection[int], graph: CallGraph) -> bool:
    """Return whether no other node of a group is used outside of it."""
    inside = {*group}
    used = {source for user in graph.nodes if user not in inside for source in graph.inputs.get(user, ())}
    return used & inside == {node}


def _data(timeline: Timeline, graph: CallGraph, infos: Mapping[int, NodeInfo]) -> dict[int, None]:
    """Return the nodes that were computed from data only, and the data, in order of creation.

    They are outside of modules, backward passes and optimizers. What a program computes after a backward pass, such as
    an update of parameters by hand, does not count.
    """
    data: dict[int, None] = {}
    for node in graph.nodes:
        info = infos[node]
        if info.created.requires_grad or graph.calls.get(node) or node in graph.loose or node in graph.owned:
            continue
        at = bisect_right(timeline.phases, info.born, key=lambda phase: phase.start) - 1
        if at >= 0 and timeline.phases[at].kind in ("after backward", "optimizer"):
            continue
        sources = {source for source in graph.inputs.get(node, ()) if source}
        is_older = info.created.kind == "op" and not sources <= infos.keys()
        if (sources & infos.keys()) <= data.keys() and not (is_older and info.created.untracked not in _REASONS):
            data[node] = None
    return data


def _entries(graph: CallGraph, data: Collection[int]) -> dict[int, frozenset[int]]:
    """Return for each node of data the entries that were computed from it. An entry counts as its own."""
    reached: dict[int, set[int]] = {node: set() for node in data}
    result: dict[int, frozenset[int]] = {}
    used: set[int] = set()
    for node in graph.nodes:
        chain = graph.calls.get(node, ())
        if node not in reached and (not chain or chain[0].of_program):
            used.update(graph.inputs.get(node, ()))
    for node in reversed([*data]):
        entries = reached[node] | ({node} & used)
        result[node] = frozenset(entries) if len(entries) <= MOST_ENTRIES and 0 not in entries else _MANY
        for source in graph.inputs.get(node, ()):
            if source in reached:
                reached[source] |= result[node]
    return result
