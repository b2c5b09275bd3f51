"""What the modules of a graph say at a moment: the box of a collapsed one, and the tree of all of them.

A box says how much is in the module, what it gave, its gradients, and the worst state of a node in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import hypot

from gviz.render.boxes.box_size import BRIEF_GAP, BRIEF_TENSOR, Outline
from gviz.render.boxes.fold import CallGraph, Group, ModuleCall, shared
from gviz.render.boxes.node_rows import Now, as_grid
from gviz.render.boxes.row import Row
from gviz.render.boxes.state_words import State, has_failed
from gviz.trace.graph_state import OPTIMIZER, NodeState
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.values.number_text import count_text, number
from gviz.values.value import Value, capture
from gviz.values.value_text import NO_VALUE, bad_text, norm, short


def group_rows(place: Outline, group: Group, now: Now) -> tuple[Row, ...]:
    """The rows below the title of a closed module, as many as the place has room for."""
    if place.height == 1:
        return ()
    state = now.states[place.node]
    if now.options.density == "brief":
        return _brief(place, group, state, now)
    made = sum(now.states[node] is not None for node in group.inner)
    some = f"{made} of " if 0 < made < len(group.inner) else ""
    made_last = state.outputs[0].value if state is not None and state.outputs else None
    gives = as_grid(_gives(place, state), made_last, now.timeline.info(place.node).created.first_value, now)
    rows = [Row(f"{some}{len(group.inner)} nodes{_weights(group, now)}", "muted"), gives]
    if group.call.of > 1:
        rows.append(_adds(group, now))
    rows.append(_gradient(group, now))
    return tuple(rows[: place.height - 1])


def gradient_norm(nodes: Iterable[int], states: Mapping[int, NodeState | None]) -> float | None:
    """The length of all ``.grad`` of some leaves together; None if none has one that is known."""
    outputs = [state.outputs[0] for node in nodes if (state := states.get(node)) is not None and state.outputs]
    lengths = [_length(output.grad) for output in outputs if output.grad is not None]
    known = [length for length in lengths if length is not None]
    return hypot(*known) if known else None


_length = lru_cache(maxsize=8192)(norm)  # thousands of gradients, of which an event changes one


def group_states(group: Group, now: Now) -> tuple[State, ...]:
    """The states of a closed module: what is true of any node counts where it is trouble, of all where it is peace."""
    inner = [now.states[node] for node in group.inner]
    there = [state for state in inner if state is not None]
    if not there:
        return ("pending",)
    steps = {state.step for state in there} - {"none"}
    parameters = [state for node in group.parameters if (state := now.states[node]) is not None]
    everything = {*group.inner, *group.parameters}
    outputs = [out for state in (there[-1], *parameters) for out in state.outputs] if now.first_bad else []
    bad = "".join(bad_text(out.value) + bad_text(out.grad) for out in outputs)  # without a first one there is none
    facts: dict[State, bool] = {
        "current": now.moment.actor in everything,
        "receiving": any(map(now.receives, everything)),
        "running": "running" in steps,
        "waiting": bool(steps & {"waiting", "done"}) and steps != {"done"},
        "done": steps == {"done"},
        "released": any(state.saved == "freed" for state in there) and all(state.saved != "held" for state in there),
        "freed": len(there) == len(inner) and all(state.freed for state in there),
        "nan": "nan" in bad,
        "inf": bool(bad) and "nan" not in bad,
        "error": now.first_bad in everything
        or any(has_failed(node, now.states[node], now.moment) for node in everything),
    }
    return tuple(name for name, holds in facts.items() if holds)


def _brief(place: Outline, group: Group, state: NodeState | None, now: Now) -> tuple[Row, ...]:
    """One line: what it gave beside its gradient; of an optimizer, which makes nothing, how much is in it."""
    if group.call.path == OPTIMIZER:
        return (Row(f"{len(group.inner)} nodes", "muted"),)
    length = gradient_norm(group.parameters, now.states)
    if length is None:
        return (_gives(place, state, BRIEF_TENSOR),)
    gradient = Row(f"|g| {number(length, 3)}", "grad", ".grad", beside=True)
    room = place.width - BRIEF_GAP - gradient.characters - len("gives ")
    return _gives(place, state, min(room, BRIEF_TENSOR)), gradient


def _weights(group: Group, now: Now) -> str:
    infos = map(now.timeline.info, group.parameters)
    count = sum(value.size for info in infos if (value := info.created.first_value) is not None)
    return f", {count_text(count)} params" if count else ""


def _gives(place: Outline, state: NodeState | None, room: int = 0) -> Row:
    if state is None or not state.outputs:
        return Row(NO_VALUE, "muted", "gives")
    value = state.outputs[0].value
    return Row(short(value, room or place.width - 6), "bad" if bad_text(value) else "value", "gives")


def _adds(group: Group, now: Now) -> Row:
    """The length of what this one call has sent to the parameters, in the latest pass that reached them."""
    sent: dict[int, list[Value]] = {}
    for source, user, slot in _uses(group, now.timeline):
        part = now.contribution(source, 0, user, slot)
        if part is not None:
            sent.setdefault(source, []).append(part.value)
    lengths = [_length(parts[0]) if len(parts) == 1 else _length_of_sum(parts) for parts in sent.values()]
    known = [length for length in lengths if length is not None]
    if not known:
        return Row(NO_VALUE, "muted", "adds")
    return Row(f"|g| {number(hypot(*known))}", "sum", "adds")


def _uses(group: Group, timeline: Timeline) -> Iterator[tuple[int, int, int]]:
    """Where the nodes of a call use its parameters: parameter, user and input."""
    parameters = frozenset(group.parameters)
    for user in group.inner:
        for slot, (source, _) in enumerate(timeline.info(user).created.inputs):
            if source in parameters:
                yield source, user, slot


def _length_of_sum(parts: Sequence[Value]) -> float | None:
    """The length of a sum, None where the elements of some part were not stored."""
    arrays = [array for part in parts if (array := part.array()) is not None]
    return norm(capture(sum(arrays[1:], arrays[0]))) if len(arrays) == len(parts) else None


def _gradient(group: Group, now: Now) -> Row:
    """The length of the parameters' ``.grad``, to which every call of the module has added."""
    length = gradient_norm(group.parameters, now.states)
    if length is None:
        return Row("None", "muted", ".grad")
    every = f", all {group.call.of} calls" if group.call.of > 1 else ""
    return Row(f"|g| {number(length)}{every}", "grad", ".grad")


@dataclass(slots=True)
class Module:
    """One module: its path and class, how deep it lies, how often it was called, and all nodes and parameters in it."""

    path: str
    kind: str
    depth: int
    calls: set[int] = field(default_factory=set)
    nodes: list[int] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)


def module_tree(graph: CallGraph) -> list[Module]:
    """Every module that was called, the ones within it below it. A parameter lies where all its uses lie."""
    found: dict[str, Module] = {}
    for node, chain in _chains(graph):
        for depth, call in enumerate(chain):
            module = found.setdefault(call.path, Module(call.path, call.kind, depth))
            if node in graph.loose:
                module.parameters.append(node)
            else:
                module.calls.add(call.scope)
                module.nodes.append(node)
    return sorted(found.values(), key=lambda module: _place(found, module.path))


def gradient_of(module: Module, moment: Moment) -> float | None:
    """The length of all ``.grad`` in a module; None where there is none yet."""
    states = dict(zip(module.parameters, moment.states(module.parameters), strict=True))
    return gradient_norm(module.parameters, states)


def _chains(graph: CallGraph) -> Iterator[tuple[int, tuple[ModuleCall, ...]]]:
    uses: dict[int, list[tuple[ModuleCall, ...]]] = {}
    for node in graph.nodes:
        chain = graph.calls.get(node, ())
        if node not in graph.loose:
            yield node, chain
        for source in {*graph.inputs.get(node, ())} & {*graph.loose}:
            uses.setdefault(source, []).append(chain)
    for node, chains in uses.items():
        yield node, shared(chains)


def _place(found: Mapping[str, Module], path: str) -> tuple[int, ...]:
    """Where a module stands: below those around it, by their first node."""
    parts = path.split(".")
    around = [".".join(parts[: end + 1]) for end in range(len(parts))]
    return tuple(found[outer].nodes[0] for outer in around if outer in found and found[outer].nodes)
