"""The tree of all modules that were called, with the gradients of their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gviz.render.boxes.collapsed_box import gradient_norm
from gviz.render.boxes.folding import CallGraph, ModuleCall, shared
from gviz.trace.timeline import Moment


@dataclass(slots=True)
class Module:
    """One module: its path and class, its depth, its calls, and all its nodes and parameters."""

    path: str
    kind: str
    depth: int
    calls: set[int] = field(default_factory=set)
    nodes: list[int] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)


def module_tree(graph: CallGraph) -> list[Module]:
    """Return every module that was called, followed by the modules in it. A parameter lies where all its uses lie."""
    modules: dict[str, Module] = {}
    for node, chain in _chains(graph):
        for depth, call in enumerate(chain if not chain or not chain[0].is_data else ()):
            module = modules.setdefault(call.path, Module(call.path, call.kind, depth))
            if node in graph.loose:
                module.parameters.append(node)
            else:
                module.calls.add(call.scope)
                module.nodes.append(node)
    return sorted(modules.values(), key=lambda module: _place(modules, module.path))


def gradient_of(module: Module, moment: Moment) -> float | None:
    """Return the norm of all ``.grad`` in a module; None where there is none yet."""
    states = dict(zip(module.parameters, moment.states(module.parameters), strict=True))
    return gradient_norm(module.parameters, states)


def is_frozen(module: Module, moment: Moment) -> bool:
    """Return whether a module has parameters, and none of them requires a gradient."""
    states = moment.states(module.parameters)
    return bool(states) and all(state is not None and not state.requires_grad for state in states)


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


def _place(modules: Mapping[str, Module], path: str) -> tuple[int, ...]:
    """Return the sort key of a module: below the modules around it, by their first node."""
    parts = path.split(".")
    around = [".".join(parts[: end + 1]) for end in range(len(parts))]
    return tuple(modules[outer].nodes[0] for outer in around if outer in modules and modules[outer].nodes)
