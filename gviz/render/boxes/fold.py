"""Which boxes a graph has when modules are closed, or when only a part of it is asked for.

Pure, on plain numbers: whoever shows a graph (terminal, picture, page) says what it wants as a `Filter`, and gets the
nodes that have a box of their own and the groups that stand for many. What a group looks like at a moment is the
scene's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gviz.driven import Driven, Far, finished

FEW_BOXES = 200
"""Above so many nodes the modules of a picture close by themselves: a larger graph is not read box by box. So many are
left of it, if closing modules can do that."""

LARGE = 2000
"""From so many boxes on modules close in the terminal, too, where one can move about in a graph."""


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module: the number of its scope, the module's path (``Net.blocks.0``) and class, and which of the
    `of` calls of the module in the graph it is, from 1.

    What a backward pass made counts as called by it, and what an optimizer computed as called by its step: `scope` is
    then less than 0.
    """

    scope: int
    path: str
    kind: str
    nr: int = 1
    of: int = 1

    @property
    def of_module(self) -> bool:
        """Whether the program called a module."""
        return self.scope > 0


Closed = frozenset[str | int]


@dataclass(frozen=True, slots=True)
class Filter:
    """What is asked for. `closed`: paths of modules of which every call is one box, and scopes of single calls.

    With a `focus`, only the nodes within `radius` lines of it (0: however far), of its `ancestors` if asked; with
    scopes of calls in `inside`, only what was made in them, and what that uses.
    """

    closed: Closed = frozenset()
    focus: int = 0
    ancestors: bool = False
    radius: int = 0
    inside: frozenset[int] = frozenset()


ALL = Filter()
"""Every node has a box of its own."""


@dataclass(frozen=True, slots=True)
class CallGraph:
    """A graph as far as folding needs it: nodes in order of creation, their inputs, and the calls that each lies in,
    the outermost first. Nodes of `loose` (parameters) lie in no call; they go where all their users are. So do
    `buffers` in a drawing, which are no part of what a closed module has learnt."""

    nodes: Sequence[int]
    inputs: Mapping[int, Sequence[int]]
    calls: Mapping[int, tuple[ModuleCall, ...]]
    loose: Collection[int] = frozenset()
    buffers: Collection[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Group:
    """A closed call as one box: what it stands for in order of creation, `inner` its own nodes, `parameters` theirs.

    Parameters of a module that is called twice belong to both groups.
    """

    call: ModuleCall
    inner: tuple[int, ...]
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """The nodes that have a box of their own, in order of creation, and the groups, in the order of their calls."""

    shown: tuple[int, ...]
    groups: tuple[Group, ...]


def fold(graph: CallGraph, wanted: Filter) -> Folded:
    """The boxes of a graph. A call of which only one node would be hidden is not worth a box: the node is shown."""
    kept = asked_for(graph, wanted)
    homes = _homes(graph, kept, wanted.closed)
    inner: dict[int, list[int]] = {}
    for node, call in homes.items():
        inner.setdefault(call.scope, []).append(node)
    owners = _owners(graph, kept, homes)
    owned: dict[int, list[int]] = {}
    for node, scopes in owners.items():
        for scope in scopes:
            owned.setdefault(scope, []).append(node)
    closed = {call.scope: call for call in homes.values()}
    worth = {scope for scope in closed if len(inner[scope]) + len(owned.get(scope, ())) > 1}
    inside = {node for node, scopes in owners.items() if scopes <= worth}
    groups = [
        Group(closed[scope], tuple(inner[scope]), tuple(node for node in owned.get(scope, ()) if node in inside))
        for scope in closed
        if scope in worth
    ]
    hidden = {node for group in groups for node in (*group.inner, *group.parameters)}
    return Folded(tuple(node for node in kept if node not in hidden), tuple(groups))


def _homes(graph: CallGraph, nodes: Collection[int], closed: Closed) -> dict[int, ModuleCall]:
    """The closed call of each node that is in one. Nodes made in one call share one tuple, which is asked once."""
    known: dict[int, ModuleCall | None] = {}
    homes = {}
    for node in nodes:
        calls = graph.calls.get(node, ())
        if id(calls) not in known:
            known[id(calls)] = closed_call(calls, closed)
        if (call := known[id(calls)]) is not None:
            homes[node] = call
    return homes


def closed_call(calls: Sequence[ModuleCall], closed: Collection[str | int]) -> ModuleCall | None:
    """The outermost of the calls that is closed."""
    return next((call for call in calls if call.path in closed or call.scope in closed), None)


def around(graph: CallGraph, node: int) -> tuple[ModuleCall, ...]:
    """The calls a node lies in, the outermost first; for a loose node a call of each module that all users share."""
    if node not in graph.loose:
        return graph.calls.get(node, ())
    users = [graph.calls.get(user, ()) for user in graph.nodes if node in graph.inputs.get(user, ())]
    return shared(users)


def shared(chains: Iterable[tuple[ModuleCall, ...]]) -> tuple[ModuleCall, ...]:
    """The calls of the modules that several nodes lie in; what a pass or an optimizer made does not count."""
    of_program = (calls for calls in chains if not calls or calls[0].of_module)
    return tuple(calls[0] for calls in zip(*of_program, strict=False) if len({call.path for call in calls}) == 1)


def calls_of(graph: CallGraph) -> list[ModuleCall]:
    """Every call that a node lies in, in the order of the nodes."""
    innermost = {calls[-1].scope: calls for node in graph.nodes if (calls := graph.calls.get(node))}
    return [*{call.scope: call for calls in innermost.values() for call in calls}.values()]


def modules(graph: CallGraph) -> dict[str, str]:
    """The path of every module that was called, in the order of the calls, and its class."""
    return {call.path: call.kind for call in calls_of(graph)}


def closed_below(graph: CallGraph, depth: int) -> Closed:
    """The modules to close so that calls are open to a depth; with depth 0 all are closed."""
    chains = {id(calls): calls for calls in graph.calls.values()}  # of the nodes made in one call one
    return frozenset(call.path for calls in chains.values() for call in calls[depth:])


def closed_to_fit(graph: CallGraph, most: int, already: Closed = frozenset()) -> Closed:
    """The modules to close so that there are at most so many boxes, as few as possible; all of them if that fails.

    Those that are closed `already` are among them.
    """
    return finished(closing_to_fit(graph, most, already))


def closing_to_fit(graph: CallGraph, most: int, already: Closed = frozenset()) -> Driven[Closed]:
    """`closed_to_fit`, which rests before it tries the next depth."""
    if boxes(graph, already) <= most:
        return already
    deepest = max(map(len, graph.calls.values()), default=0)
    for depth in range(deepest - 1, 0, -1):
        yield Far("folding the graph: depth", deepest - depth, deepest)
        closed = closed_below(graph, depth) | already
        if boxes(graph, closed) <= most:
            return closed
    return closed_below(graph, 0)


def boxes(graph: CallGraph, closed: Closed) -> int:
    """How many boxes there are when some modules are closed."""
    folded = fold(graph, Filter(closed))
    return len(folded.shown) + len(folded.groups)


def _owners(graph: CallGraph, kept: Collection[int], homes: Mapping[int, ModuleCall]) -> dict[int, set[int]]:
    """The closed calls that hold a loose node: those of its users, if all of them lie in calls of one module.

    That a closed pass or optimizer uses it, too, does not count.
    """
    users: dict[int, set[ModuleCall | None]] = {}
    for node in kept:
        home = homes.get(node)
        for source in graph.inputs.get(node, ()):
            if source in graph.loose and (home is None or home.of_module):
                users.setdefault(source, set()).add(home)
    owners = {}
    for node, calls in users.items():
        scopes = {call.scope for call in calls if call is not None}
        if node in kept and None not in calls and len({call.path for call in calls if call is not None}) == 1:
            owners[node] = scopes
    return owners


def asked_for(graph: CallGraph, wanted: Filter) -> dict[int, None]:
    """The nodes that the focus and the modules leave, in order of creation."""
    if not wanted.inside and not wanted.focus:
        return dict.fromkeys(graph.nodes)
    near = set(_inside(graph, wanted.inside)) if wanted.inside else set(graph.nodes)
    if wanted.focus and (wanted.ancestors or wanted.radius):
        near &= set(_within(graph, wanted))
    return dict.fromkeys(node for node in graph.nodes if node in near)


def _inside(graph: CallGraph, scopes: frozenset[int]) -> Iterator[int]:
    """The nodes made in some calls, and their inputs."""
    for node in graph.nodes:
        if any(call.scope in scopes for call in graph.calls.get(node, ())):
            yield node
            yield from graph.inputs.get(node, ())


def _within(graph: CallGraph, wanted: Filter) -> Iterator[int]:
    """The nodes reached from the focus, breadth first."""
    users: dict[int, list[int]] = {}
    if not wanted.ancestors:
        for node in graph.nodes:
            for source in graph.inputs.get(node, ()):
                users.setdefault(source, []).append(node)
    front, seen, distance = [wanted.focus], {wanted.focus}, 0
    while front:
        yield from front
        if distance == wanted.radius and wanted.radius:
            return
        near = [other for node in front for other in (*graph.inputs.get(node, ()), *users.get(node, ()))]
        front = [node for node in dict.fromkeys(near) if node not in seen]
        seen.update(front)
        distance += 1
