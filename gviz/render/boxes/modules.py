"""The modules of an iteration as a tree: what is in each, and how long its gradients are at a moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gviz.render.boxes.fold import CallGraph, ModuleCall, shared
from gviz.render.boxes.groups import gradient_norm
from gviz.trace.moment import Moment


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
