"""Which boxes a graph has when modules are collapsed, or when only a part of it is asked for.

The graph of an iteration may have thousands of nodes. Whoever shows it (terminal, picture, page) says what it wants as
a `Filter`, and gets the nodes that have a box of their own and the groups that stand for many:

    graph_of(timeline, infos)            the nodes, their inputs, and the module calls around each: a `CallGraph`
    named_calls(graph, ["encoder.*"])    the calls that a pattern of the user means
    fold(graph, Filter(closed=...))      the boxes: `Folded`

For example, of ``x -> Linear -> ReLU -> loss`` with the path of the `Linear` in ``closed``, one group holds its
operations and its weights, and the rest keep their boxes. A parameter lies where all its users are; if two collapsed
calls of different modules use it, it keeps its own box. What a backward pass made lies in the pass, what an optimizer
computed in its step, and not in a module. `fold` itself works on plain numbers and knows no moment: what a group says
at one is in `modules`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache

from gviz.errors import GvizError
from gviz.explain.display_names import step_kind
from gviz.system import notice
from gviz.system.cooperative import Driven, Far, finished, parts
from gviz.trace.graph_state import OPTIMIZER, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

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
    then less than 0. So it is where the program called no module but a function (`is_source_call`), and for what
    repeats (`is_repeat`): see `gviz.render.boxes.calls`.
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

    @property
    def of_program(self) -> bool:
        """Whether the program made it, and no backward pass or optimizer."""
        return self.scope > 0 or self.scope <= -CALLS

    @property
    def is_source_call(self) -> bool:
        """Whether the program called a function."""
        return -REPEATS < self.scope <= -CALLS

    @property
    def is_repeat(self) -> bool:
        """Whether it stands for several equal calls, or for turns of a loop."""
        return self.scope <= -REPEATS


CALLS, REPEATS = 1 << 40, 1 << 41
"""From minus so much downwards are the scopes of calls of functions, and of what repeats."""

Closed = frozenset[str | int]


@dataclass(frozen=True, slots=True)
class Repeat:
    """What several equal parts are drawn as: a title, how many there are, the nodes of each part (`members`), which of
    how many equal parts in a row they are (`place`: the number of the first from 0, and all), the paths of modules,
    and of how many calls these are, if they are calls of one module."""

    title: str
    count: int
    members: tuple[tuple[int, ...], ...]
    place: tuple[int, int]
    modules: tuple[str, ...] = ()
    of: int = 1


@dataclass(frozen=True, slots=True)
class Filter:
    """What is asked for. `closed`: paths of modules of which every call is one box, and scopes of single calls.

    With a `focus`, only the nodes within `radius` lines of it (0: however far), of its `ancestors` if asked; with
    scopes of calls in `inside`, only what was made in them, and what that uses. With `calls`, all nodes that one call
    of the program made are one box, with `repeats` equal parts are, too, of which a `sample` shows the first by itself.
    The calls whose scopes are in `opened` are open whatever else is asked for.
    """

    closed: Closed = frozenset()
    focus: int = 0
    ancestors: bool = False
    radius: int = 0
    inside: frozenset[int] = frozenset()
    calls: bool = False
    repeats: bool = False
    sample: bool = False
    opened: frozenset[int] = frozenset()


ALL = Filter()
"""Every node has a box of its own."""


@dataclass(frozen=True, slots=True)
class CallGraph:
    """A graph as far as folding needs it: nodes in order of creation, their inputs, and the calls that each lies in,
    the outermost first. Nodes of `loose` (parameters) and `buffers` lie in no call; they go where all their users are,
    but into a collapsed call only those that are `held` by its module.
    `units` are scopes of modules that call one function only, with its name, `wrappers` those of modules that call one
    module only, and `repeats` what repeats, by the scopes of its calls."""

    nodes: Sequence[int]
    inputs: Mapping[int, Sequence[int]]
    calls: Mapping[int, tuple[ModuleCall, ...]]
    loose: Collection[int] = frozenset()
    buffers: Collection[int] = frozenset()
    held: Collection[int] = frozenset()
    units: Mapping[int, str] = field(default_factory=dict)
    wrappers: Collection[int] = frozenset()
    repeats: Mapping[int, Repeat] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """A closed call as one box: what it stands for in order of creation, `inner` its own nodes, `parameters` and
    `buffers` theirs.

    Parameters of a module that is called twice belong to both groups. `does` names the only function that a module
    calls, `repeat` are the equal parts that it stands for.
    """

    call: ModuleCall
    inner: tuple[int, ...]
    parameters: tuple[int, ...]
    buffers: tuple[int, ...] = ()
    does: str = ""
    repeat: Repeat | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """All nodes that it stands for."""
        return (*self.inner, *self.parameters, *self.buffers)


@dataclass(frozen=True, slots=True)
class Folded:
    """The nodes that have a box of their own, in order of creation, and the groups, in the order of their calls."""

    shown: tuple[int, ...]
    groups: tuple[Group, ...]


def fold(graph: CallGraph, wanted: Filter) -> Folded:
    """The boxes of a graph. A call of which only one node would be hidden is not worth a box: the node is shown."""
    kept = asked_for(graph, wanted)
    homes = _homes(graph, kept, wanted)
    inner: dict[int, list[int]] = {}
    for node, call in homes.items():
        inner.setdefault(call.scope, []).append(node)
    owners = _owners(graph, kept, homes)
    owned: dict[int, list[int]] = {}
    for node, scopes in owners.items():
        for scope in scopes:
            owned.setdefault(scope, []).append(node)
    closed = {call.scope: call for call in homes.values()}
    worth = {
        scope
        for scope, call in closed.items()
        if len(inner[scope]) + len(owned.get(scope, ())) > 1 or (wanted.calls and call.of_module)
    }
    inside = {node for node, scopes in owners.items() if scopes <= worth}
    groups = [
        Group(
            closed[scope],
            tuple(inner[scope]),
            tuple(node for node in owned.get(scope, ()) if node in inside and node not in graph.held),
            tuple(node for node in owned.get(scope, ()) if node in inside and node in graph.held),
            graph.units.get(scope, ""),
            graph.repeats.get(scope),
        )
        for scope in closed
        if scope in worth
    ]
    hidden = {node for group in groups for node in group.nodes}
    return Folded(tuple(node for node in kept if node not in hidden), tuple(groups))


def _homes(graph: CallGraph, nodes: Collection[int], wanted: Filter) -> dict[int, ModuleCall]:
    """The closed call of each node that is in one. Nodes made in one call share one tuple, which is asked once."""
    known: dict[int, ModuleCall | None] = {}
    homes = {}
    for node in nodes:
        calls = graph.calls.get(node, ())
        if id(calls) not in known:
            known[id(calls)] = _closed_in(graph, calls, wanted)
        if (call := known[id(calls)]) is not None:
            homes[node] = call
    return homes


def _closed_in(graph: CallGraph, calls: Sequence[ModuleCall], wanted: Filter) -> ModuleCall | None:
    """The outermost of some calls that is closed; the one around it, where that has nothing else in it."""
    for at, call in enumerate(calls):
        is_one = wanted.calls and (call.scope in graph.units or call.scope <= -CALLS)
        if (is_one or call.path in wanted.closed or call.scope in wanted.closed) and call.scope not in wanted.opened:
            while at > 1 and calls[at - 1].scope in graph.wrappers and calls[at - 1].scope not in wanted.opened:
                at -= 1
            return calls[at]
    return None


def around(graph: CallGraph, node: int) -> tuple[ModuleCall, ...]:
    """The calls a node lies in, the outermost first; for a loose node a call of each module that all users share."""
    if node not in graph.loose and node not in graph.buffers:
        return graph.calls.get(node, ())
    users = [graph.calls.get(user, ()) for user in graph.nodes if node in graph.inputs.get(user, ())]
    return shared(users)


def shared(chains: Iterable[tuple[ModuleCall, ...]]) -> tuple[ModuleCall, ...]:
    """The calls of the modules that several nodes lie in; what a pass or an optimizer made does not count."""
    of_program = (calls for calls in chains if not calls or calls[0].of_program)
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


def boxes(graph: CallGraph, closed: Closed, *, calls: bool = False) -> int:
    """How many boxes there are when some modules are closed."""
    folded = fold(graph, Filter(closed, calls=calls))
    return len(folded.shown) + len(folded.groups)


def _owners(graph: CallGraph, kept: Collection[int], homes: Mapping[int, ModuleCall]) -> dict[int, set[int]]:
    """The closed calls that hold a loose node: those of its users, if all of them lie in calls of one module, or in
    boxes that hold calls of one module.

    That a closed pass or optimizer uses it, too, does not count.
    """
    users: dict[int, set[ModuleCall | None]] = {}
    modules: dict[int, set[str]] = {}
    for node in kept:
        home = homes.get(node)
        for source in graph.inputs.get(node, ()):
            if (source in graph.loose or source in graph.held) and (home is None or home.of_program):
                users.setdefault(source, set()).add(home)
                modules.setdefault(source, set()).add(_module_path(graph.calls.get(node, ())))
    owners = {}
    for node, calls in users.items():
        scopes = {call.scope for call in calls if call is not None}
        paths = {call.path for call in calls if call is not None}
        is_of_one = len(paths) == 1 or (len(modules[node]) == 1 and modules[node] != {""})
        if node in kept and None not in calls and is_of_one:
            owners[node] = scopes
    return owners


def _module_path(calls: Sequence[ModuleCall]) -> str:
    """The innermost module of some calls; empty where there is none."""
    return next((call.path for call in reversed(calls) if call.of_module), "")


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
    nodes, inputs, loose = [], {}, set()
    buffers: dict[int, str] = {}
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
            elif _is_attribute(info):
                buffers[info.node] = (info.name or "").rpartition(".")[0]
    paths = {call.path.partition(".")[2] for chain in {*calls.values()} for call in chain if call.of_module}
    held = frozenset(node for node, path in buffers.items() if path in paths)
    calls |= dict.fromkeys(held, ())
    placed = frozenset(node for node in buffers if not calls[node])
    return CallGraph(nodes, inputs, _numbered(calls) if whole else calls, loose, placed, held)


def _is_attribute(info: NodeInfo) -> bool:
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


NUMBERED = re.compile(r"(.+):(\d+)")
SOME = 6
"""So many modules are named to somebody who has named none that is there."""


def fitting_calls(graph: CallGraph, patterns: Sequence[str], *, within: bool = False) -> frozenset[int]:
    """The scopes of the calls that fit one of the patterns; ``block.*`` is also what was made `within` the block."""
    fitting = (call for call in calls_of(graph) if any(_fits(call, one, within=within) for one in patterns))
    return frozenset(call.scope for call in fitting)


def named_calls(graph: CallGraph, patterns: Sequence[str], *, within: bool = False) -> frozenset[int]:
    """The same; where none fits, capital letters do not count; `GvizError` where there are patterns, and none fits.

    A model goes by its class, and many a variable is called so but for these: ``head = Head(8)``.
    """
    found = fitting_calls(graph, patterns, within=within)
    if patterns and not found:
        found = _in_other_letters(graph, patterns, within=within)
    if patterns and not found:
        what = f"no module fits {shown(' '.join(patterns))}"
        raise GvizError(what, hint=_hint(graph, calls_of(graph), patterns), exit_code=2)
    return found


def _in_other_letters(graph: CallGraph, patterns: Sequence[str], *, within: bool) -> frozenset[int]:
    """The calls that fit a pattern but for capital letters; what is drawn for it is said."""
    small = [pattern.lower() for pattern in patterns]
    calls = [replace(call, path=call.path.lower(), kind=call.kind.lower()) for call in calls_of(graph)]
    found = frozenset(call.scope for call in calls if any(_fits(call, one, within=within) for one in small))
    meant = dict.fromkeys(call.path for call in calls_of(graph) if call.scope in found)
    if found:
        _note(f"gviz: note: no module is called {' '.join(patterns)}: {_some(meant)} is drawn for it")
    return found


@cache
def _note(text: str) -> None:
    """Say it once, however often a picture is made until it fits."""
    notice.say(text)


def _fits(call: ModuleCall, pattern: str, *, within: bool) -> bool:
    """Whether a call is one of a module whose class fits, or its path, with or without what all paths begin with."""
    numbered = NUMBERED.fullmatch(pattern)
    name, nr = (numbered[1], int(numbered[2])) if numbered else (pattern, call.nr)
    names = [call.path, call.path.partition(".")[2], call.kind]
    names += [f"{path}." for path in names[:2] if within]
    return nr == call.nr and any(fnmatchcase(one, name) for one in names)


def _hint(graph: CallGraph, every: Sequence[ModuleCall], patterns: Sequence[str]) -> str:
    """How often a module was called of which too late a call was asked for, else the modules that there are."""
    numbered = [found[1] for pattern in patterns if (found := NUMBERED.fullmatch(pattern))]
    often = next((call for name in numbered for call in every if _fits(call, name, within=False)), None)
    if often is not None:
        return f"{shown(often.path)} was called {often.of} time{'s' * (often.of != 1)}, counted from 1"
    known = modules(graph)
    if not known:
        return "nothing here was made in a module"
    kinds = dict.fromkeys(filter(None, known.values()))
    return f"modules: {_some(known)}" + (f"; classes: {_some(kinds)}" if kinds else "")


def _some(names: dict[str, str] | dict[str, None]) -> str:
    more = f" and {len(names) - SOME} more" if len(names) > SOME else ""
    return ", ".join(map(shown, list(names)[:SOME])) + more
