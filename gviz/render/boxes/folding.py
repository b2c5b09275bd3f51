"""Folding: which boxes a graph has when modules are collapsed, or when the user requests only a part of it.

The graph of an iteration may have thousands of nodes. A view (terminal, picture, page) describes the part it shows as a
`Filter`. It gets the nodes that have a box of their own, and the groups that represent many nodes:

    graph_of(timeline, infos)            the nodes, their inputs, and the module calls around each: a `CallGraph`
    named_calls(graph, ["encoder.*"])    the calls that match a pattern of the user
    fold(graph, Filter(closed=...))      the boxes: `Folded`

Which modules are ``closed`` at first is chosen in `collapse_choice`.

For example, in ``x -> Linear -> ReLU -> loss`` with the path of the `Linear` in ``closed``, one group contains its
operations and its weights, and the other nodes keep their boxes. A parameter lies in the calls that all its users
share. If two collapsed calls of different modules use it, it keeps its own box. Nodes that a backward pass made lie in
the pass, and nodes that an optimizer computed lie in its step; neither lies in a module. `fold` itself works on plain
numbers and does not depend on a moment. `collapsed_box` has the text of a group at a moment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

from gviz.errors import GvizError
from gviz.explain.iteration_words import step_kind
from gviz.system import notice
from gviz.system.cooperative_work import LongWork, WorkProgress, finished, parts
from gviz.trace.graph_state import OPTIMIZER, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

LARGE = 2000
"""The number of boxes from which modules collapse in the terminal, too. A terminal can scroll through a graph."""


@dataclass(frozen=True, slots=True)
class ModuleCall:
    """One call of a module: the number of its scope, the module's path (``Net.blocks.0``) and its class.

    The graph has `of` calls of the module, and this is number `nr`, counted from 1.

    A scope below 0 represents other groups of nodes. A backward pass contains the nodes that it made, and the step of
    an optimizer contains the nodes that it computed. A call of a function (`is_source_call`) and a repeat (`is_repeat`)
    have such scopes, too: see `gviz.render.boxes.function_calls`. So has data preparation (`is_data`): see
    `gviz.render.boxes.data_preparation`.
    """

    scope: int
    path: str
    kind: str
    nr: int = 1
    of: int = 1

    @property
    def of_module(self) -> bool:
        """Return whether the program called a module."""
        return self.scope > 0

    @property
    def of_program(self) -> bool:
        """Return whether the program made the call, not a backward pass or an optimizer."""
        return self.scope > 0 or self.scope <= -CALLS

    @property
    def is_source_call(self) -> bool:
        """Return whether the program called a function."""
        return -REPEATS < self.scope <= -CALLS

    @property
    def is_repeat(self) -> bool:
        """Return whether it represents several equal calls, or iterations of a loop."""
        return -DATA < self.scope <= -REPEATS

    @property
    def is_data(self) -> bool:
        """Return whether it represents operations that prepare data."""
        return self.scope <= -DATA


CALLS, REPEATS, DATA = 1 << 40, 1 << 41, 1 << 42
"""Scopes down from ``-CALLS`` are calls of functions, down from ``-REPEATS`` repeats, down from ``-DATA`` data."""

Closed = frozenset[str | int]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Several equal parts that are drawn as one box.

    It has a `title`, the number of parts (`count`), the nodes of each part (`members`) and the paths of their
    `modules`. `place` says where these parts are in the whole run of equal parts: the number of the first, from 0, and
    the length of the run. If all are calls of one module, `of` is how often the graph calls it.
    """

    title: str
    count: int
    members: tuple[tuple[int, ...], ...]
    place: tuple[int, int]
    modules: tuple[str, ...] = ()
    of: int = 1


@dataclass(frozen=True, slots=True)
class Preparation:
    """Operations on data that are drawn as one box, and how many they are.

    Something else uses their last result (`is_entry`), or several results (`is_used`), or the graph uses none.
    """

    operations: int
    is_entry: bool
    is_used: bool


@dataclass(frozen=True, slots=True)
class Filter:
    """The part of a graph to show, and the calls to collapse.

    * `closed`: paths of modules whose calls are one box each, and scopes of single calls.
    * `focus`: only the nodes within `radius` lines of this node (0: at any distance), or only its `ancestors`.
    * `inside`: scopes of calls; only the nodes made in them, and the inputs of these nodes.
    * `calls`: one box for all nodes of one function call.
    * `repeats`: one box for equal parts; with a `sample` the first part is shown by itself.
    * `data`: one box for at least this many operations that prepare data; 0 for none.
    * `opened`: scopes of calls that are expanded, whatever the other fields say.
    * `unfolded`: patterns of equal parts that are drawn apart, although `repeats` is set.
    """

    closed: Closed = frozenset()
    focus: int = 0
    ancestors: bool = False
    radius: int = 0
    inside: frozenset[int] = frozenset()
    calls: bool = False
    repeats: bool = False
    sample: bool = False
    data: int = 0
    opened: frozenset[int] = frozenset()
    unfolded: tuple[str, ...] = ()


ALL = Filter()
"""Every node has a box of its own."""


@dataclass(frozen=True, slots=True)
class CallGraph:
    """A graph in the form that folding needs: nodes in order of creation, their inputs, and the calls around each node.

    The calls around a node come with the outermost first. Nodes of `loose` (parameters) and `buffers` lie in no call:
    they are placed in the calls that all their users share. A collapsed call takes only the buffers that its module
    owns (`owned`).

    `units` maps the scopes of modules that call only one function to its name. `wrappers` are the scopes of modules
    that call only one module. `repeats` and `preparations` map the scopes of repeats and of data preparation to their
    description. Nodes of `shared_data` lie in the data preparation of several results.
    """

    nodes: Sequence[int]
    inputs: Mapping[int, Sequence[int]]
    calls: Mapping[int, tuple[ModuleCall, ...]]
    loose: Collection[int] = frozenset()
    buffers: Collection[int] = frozenset()
    owned: Collection[int] = frozenset()
    units: Mapping[int, str] = field(default_factory=dict)
    wrappers: Collection[int] = frozenset()
    repeats: Mapping[int, Repeat] = field(default_factory=dict)
    preparations: Mapping[int, Preparation] = field(default_factory=dict)
    shared_data: Mapping[int, tuple[ModuleCall, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """A collapsed call as one box: its `inner` nodes in order of creation, and its `parameters` and `buffers`.

    Parameters of a module that is called twice belong to both groups. So does shared data, which counts as buffers.
    `does` names the only function that a module calls. `repeat` describes the equal parts that the group represents,
    `preparation` the operations on data.
    """

    call: ModuleCall
    inner: tuple[int, ...]
    parameters: tuple[int, ...]
    buffers: tuple[int, ...] = ()
    does: str = ""
    repeat: Repeat | None = None
    preparation: Preparation | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """Return all nodes that the group represents."""
        return (*self.inner, *self.parameters, *self.buffers)

    @property
    def is_unused(self) -> bool:
        """Return whether it is data that the graph does not use."""
        return self.preparation is not None and not self.preparation.is_used


@dataclass(frozen=True, slots=True)
class Folded:
    """The nodes that have a box of their own, in order of creation, and the groups, in the order of their calls."""

    shown: tuple[int, ...]
    groups: tuple[Group, ...]


def fold(graph: CallGraph, graph_filter: Filter) -> Folded:
    """Return the boxes of a graph. A call that would hide only one node gets no box: the node is shown instead."""
    kept = requested_nodes(graph, graph_filter)
    homes = _homes(graph, kept, graph_filter)
    inner: dict[int, list[int]] = {}
    for node, call in homes.items():
        inner.setdefault(call.scope, []).append(node)
    owners = _owners(graph, kept, homes) | _data_owners(graph, kept, graph_filter)
    owned: dict[int, list[int]] = {}
    for node, scopes in owners.items():
        for scope in scopes:
            owned.setdefault(scope, []).append(node)
    closed = {call.scope: call for call in homes.values()}
    worth = {
        scope
        for scope, call in closed.items()
        if len(inner[scope]) + len(owned.get(scope, ())) > 1 or (graph_filter.calls and call.of_module)
    }
    inside = {node for node, scopes in owners.items() if scopes <= worth}
    groups = [
        Group(
            closed[scope],
            tuple(inner[scope]),
            tuple(node for node in owned.get(scope, ()) if node in inside and not _is_buffer(graph, node)),
            tuple(node for node in owned.get(scope, ()) if node in inside and _is_buffer(graph, node)),
            graph.units.get(scope, ""),
            graph.repeats.get(scope),
            graph.preparations.get(scope),
        )
        for scope in closed
        if scope in worth
    ]
    hidden = {node for group in groups for node in group.nodes}
    return Folded(tuple(node for node in kept if node not in hidden), tuple(groups))


def _is_buffer(graph: CallGraph, node: int) -> bool:
    return node in graph.owned or node in graph.shared_data


def _homes(graph: CallGraph, nodes: Collection[int], graph_filter: Filter) -> dict[int, ModuleCall]:
    """Return the collapsed call of each node that is in one.

    Nodes that were made in one call share one tuple of calls, so each tuple is searched only once.
    """
    known: dict[int, ModuleCall | None] = {}
    homes = {}
    for node in nodes:
        calls = graph.calls.get(node, ())
        if id(calls) not in known:
            known[id(calls)] = closed_in(graph, calls, graph_filter)
        if (call := known[id(calls)]) is not None:
            homes[node] = call
    return homes


def closed_in(graph: CallGraph, calls: Sequence[ModuleCall], graph_filter: Filter) -> ModuleCall | None:
    """Return the outermost collapsed call of a chain, or the call around it if that contains nothing else."""
    for at, call in enumerate(calls):
        is_one = graph_filter.calls and (call.scope in graph.units or call.is_source_call or call.is_repeat)
        is_one = is_one or (graph_filter.data > 0 and call.is_data)
        if (
            is_one or call.path in graph_filter.closed or call.scope in graph_filter.closed
        ) and call.scope not in graph_filter.opened:
            while at > 1 and calls[at - 1].scope in graph.wrappers and calls[at - 1].scope not in graph_filter.opened:
                at -= 1
            return calls[at]
    return None


def around(graph: CallGraph, node: int) -> tuple[ModuleCall, ...]:
    """Return the calls around a node, the outermost first; for a loose node the calls that all its users share.

    Calls of one module count as shared, even if each user lies in another of them.
    """
    if node in graph.shared_data:
        return graph.shared_data[node][:1]
    if node not in graph.loose and node not in graph.buffers:
        return graph.calls.get(node, ())
    users = [graph.calls.get(user, ()) for user in graph.nodes if node in graph.inputs.get(user, ())]
    return shared(users)


def shared(chains: Iterable[tuple[ModuleCall, ...]]) -> tuple[ModuleCall, ...]:
    """Return the calls of the modules that several nodes share, ignoring nodes of backward passes and optimizers."""
    of_program = (calls for calls in chains if not calls or calls[0].of_program)
    return tuple(calls[0] for calls in zip(*of_program, strict=False) if len({call.path for call in calls}) == 1)


def calls_of(graph: CallGraph) -> list[ModuleCall]:
    """Return every call that contains a node, in the order of the nodes."""
    innermost = {calls[-1].scope: calls for node in graph.nodes if (calls := graph.calls.get(node))}
    return [*{call.scope: call for calls in innermost.values() for call in calls}.values()]


def modules(graph: CallGraph) -> dict[str, str]:
    """Return the path and the class of every module that was called, in the order of the calls."""
    return {call.path: call.kind for call in calls_of(graph) if not call.is_data}


def _owners(graph: CallGraph, kept: Collection[int], homes: Mapping[int, ModuleCall]) -> dict[int, set[int]]:
    """Return the collapsed calls that contain each loose node.

    They are the calls of its users, if all of these are calls of one module or are boxes around calls of one module.
    Uses in a collapsed backward pass or optimizer step do not count.
    """
    users: dict[int, set[ModuleCall | None]] = {}
    modules: dict[int, set[str]] = {}
    for node in kept:
        home = homes.get(node)
        for source in graph.inputs.get(node, ()):
            if (source in graph.loose or source in graph.owned) and (home is None or home.of_program):
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


def _data_owners(graph: CallGraph, kept: Collection[int], graph_filter: Filter) -> dict[int, set[int]]:
    """Return the collapsed data preparations that contain each node of shared data, if all of them are collapsed."""
    if not graph_filter.data:
        return {}
    owners = ((node, {call.scope for call in calls}) for node, calls in graph.shared_data.items() if node in kept)
    return {node: scopes for node, scopes in owners if graph_filter.opened.isdisjoint(scopes)}


def _module_path(calls: Sequence[ModuleCall]) -> str:
    """Return the path of the innermost module in a chain of calls; empty if there is none."""
    return next((call.path for call in reversed(calls) if call.of_module), "")


def requested_nodes(graph: CallGraph, graph_filter: Filter) -> dict[int, None]:
    """Return the nodes that the focus and the requested modules leave, in order of creation."""
    if not graph_filter.inside and not graph_filter.focus:
        return dict.fromkeys(graph.nodes)
    near = set(_inside(graph, graph_filter.inside)) if graph_filter.inside else set(graph.nodes)
    if graph_filter.focus and (graph_filter.ancestors or graph_filter.radius):
        near &= set(_near_focus(graph, graph_filter))
    return dict.fromkeys(node for node in graph.nodes if node in near)


def _inside(graph: CallGraph, scopes: frozenset[int]) -> Iterator[int]:
    """Yield the nodes made in some calls, and their inputs."""
    for node in graph.nodes:
        if any(call.scope in scopes for call in graph.calls.get(node, ())):
            yield node
            yield from graph.inputs.get(node, ())


def _near_focus(graph: CallGraph, graph_filter: Filter) -> Iterator[int]:
    """Yield the nodes reached from the focus, breadth first."""
    users: dict[int, list[int]] = {}
    if not graph_filter.ancestors:
        for node in graph.nodes:
            for source in graph.inputs.get(node, ()):
                users.setdefault(source, []).append(node)
    front, seen, distance = [graph_filter.focus], {graph_filter.focus}, 0
    while front:
        yield from front
        if distance == graph_filter.radius and graph_filter.radius:
            return
        near = [other for node in front for other in (*graph.inputs.get(node, ()), *users.get(node, ()))]
        front = [node for node in dict.fromkeys(near) if node not in seen]
        seen.update(front)
        distance += 1


Calls = tuple[ModuleCall, ...]
"""The calls around a node, the outermost first."""


def graph_of(timeline: Timeline, infos: Iterable[NodeInfo], *, whole: bool = True) -> CallGraph:
    """Return the graph of some nodes, which come in order of creation.

    The calls of a module are numbered only if these nodes are the `whole` of a graph.
    """
    return finished(reading_graph(timeline, tuple(infos), whole=whole))


def reading_graph(timeline: Timeline, infos: Sequence[NodeInfo], *, whole: bool = True) -> LongWork[CallGraph]:
    """Compute `graph_of` cooperatively, with frequent yields."""
    known: dict[int, Calls] = {}
    steps = _steps(timeline, infos)
    nodes, inputs, loose = [], {}, set()
    buffers: dict[int, str] = {}
    calls: dict[int, Calls] = {}
    for part in parts(infos, "reading the calls: node"):
        if isinstance(part, WorkProgress):
            yield part
            continue
        for info in part:
            nodes.append(info.node)
            inputs[info.node] = tuple(node for node, _ in info.created.inputs)
            own = steps.get(info.node) or _pass_call(info.created.during[0])
            calls[info.node] = (own,) if own else calls_around(timeline, info.created.scope, known)
            if info.created.kind == "parameter":
                loose.add(info.node)
            elif _is_attribute(info):
                buffers[info.node] = (info.name or "").rpartition(".")[0]
    paths = {call.path.partition(".")[2] for chain in {*calls.values()} for call in chain if call.of_module}
    owned = frozenset(node for node, path in buffers.items() if {path, _without_model(path)} & paths)
    calls |= dict.fromkeys(owned, ())
    placed = frozenset(node for node in buffers if not calls[node])
    return CallGraph(nodes, inputs, _numbered_as_made(timeline, calls) if whole else calls, loose, placed, owned)


def _without_model(path: str) -> str:
    """Return a path without its first part: of several models, each one's variable stands before its paths."""
    return path.partition(".")[2] or path


def _is_attribute(info: NodeInfo) -> bool:
    """Return whether a leaf was an attribute of a module or another object, and not a variable, as data is."""
    return info.created.kind != "op" and "." in (info.name or "")


def _numbered(calls: Mapping[int, Calls]) -> dict[int, Calls]:
    """Return the calls around each node, with numbers for the calls of a module that was called several times."""
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


def _numbered_as_made(timeline: Timeline, calls: Mapping[int, Calls]) -> dict[int, Calls]:
    """Return the calls around each node, with the numbers that the calls have where they were made.

    A graph may use results of an earlier iteration. If all calls of a module are of that iteration, they keep their
    numbers of there, although some of its calls are not in this graph.
    """
    numbered = _numbered(calls)
    made: dict[str, set[int]] = {}
    inner = {chain[-1].scope: (node, chain) for node, chain in numbered.items() if chain and chain[-1].of_module}
    homes = {scope: timeline.info(node).iteration for scope, (node, _) in inner.items()}
    for scope, (_, chain) in inner.items():
        for call in chain:
            made.setdefault(call.path, set()).add(homes[scope])
    here = timeline.info(max(calls)).iteration if calls else 0
    older = {path: min(indices) for path, indices in made.items() if len(indices) == 1 and here not in indices}
    if not older:
        return numbered
    known = {path: timeline.once(_calls_made, index) for path, index in older.items()}

    def as_made(call: ModuleCall) -> ModuleCall:
        return known.get(call.path, {}).get(call.scope, call)

    return {node: tuple(map(as_made, chain)) for node, chain in numbered.items()}


def _calls_made(timeline: Timeline, index: int) -> dict[int, ModuleCall]:
    """Return the calls of modules that made nodes in an iteration, with their numbers, by scope."""
    known: dict[int, Calls] = {}
    nodes = [node for node in timeline.nodes.of(timeline.iterations[index]) if timeline.info(node).iteration == index]
    infos = [info for info in map(timeline.info, nodes) if info.created.kind == "op" and not info.created.during[0]]
    calls = _numbered({info.node: calls_around(timeline, info.created.scope, known) for info in infos})
    return {call.scope: call for chain in calls.values() for call in chain}


def _steps(timeline: Timeline, infos: Sequence[NodeInfo]) -> dict[int, ModuleCall]:
    """Return the optimizer step of each node that a step made itself.

    A node that an older step made belongs to the step that uses it here.
    """
    steps: dict[int, int] = {}
    here: dict[int, int] = {}  # by the call stack that calls the step
    for info in reversed(infos):
        event = timeline.contexts.step_of(info)
        if event and info.iteration == infos[-1].iteration:
            steps[info.node] = here[info.created.stack] = event
        elif event:
            steps[info.node] = here.get(info.created.stack, event)
    return {node: ModuleCall(-2 * event - 1, OPTIMIZER, step_kind(timeline, event)) for node, event in steps.items()}


def _pass_call(pass_nr: int) -> ModuleCall | None:
    return ModuleCall(-2 * pass_nr, f"backward pass {pass_nr}", "") if pass_nr else None


def calls_around(timeline: Timeline, scope: int, known: dict[int, Calls]) -> Calls:
    """Return the chain of calls from the outermost to this scope."""
    inside: list[ModuleCall] = []
    inner = scope
    while inner not in known and (entered := timeline.contexts.call(inner)) is not None:
        inside.append(ModuleCall(inner, entered.name, entered.kind))
        inner = entered.parent
    outer = known.get(inner, ())
    for call in reversed(inside):
        outer = known[call.scope] = (*outer, call)
    return outer


NUMBERED = re.compile(r"(.+):(\d+)")
SOME = 6
"""The most names in an error message about a module that does not exist."""


def fitting_calls(graph: CallGraph, patterns: Sequence[str], *, matches_parent: bool = False) -> frozenset[int]:
    """Return the scopes of the calls that match one of the patterns.

    With `matches_parent`, ``block.*`` also matches ``block`` itself.
    """
    fitting = (
        call for call in calls_of(graph) if any(_fits(call, one, matches_parent=matches_parent) for one in patterns)
    )
    return frozenset(call.scope for call in fitting)


def named_calls(
    graph: CallGraph, patterns: Sequence[str], *, matches_parent: bool = False, also: Sequence[str] = ()
) -> frozenset[int]:
    """Return the scopes of the calls that match one of the patterns, ignoring case if none matches otherwise.

    A model is known by its class, and the variable often differs only in case: ``head = Head(8)``. Raises `GvizError`
    if there are patterns and no call matches. The hint lists the modules, and what is possible `also`.
    """
    scopes = fitting_calls(graph, patterns, matches_parent=matches_parent)
    if patterns and not scopes:
        scopes = _in_other_letters(graph, patterns, matches_parent=matches_parent)
    if patterns and not scopes:
        what = f"no module fits {shown(' '.join(patterns))}"
        raise GvizError(what, hint=_hint(graph, calls_of(graph), patterns, also), exit_code=2)
    return scopes


def _in_other_letters(graph: CallGraph, patterns: Sequence[str], *, matches_parent: bool) -> frozenset[int]:
    """Return the calls that match a pattern except for case, and print which modules are drawn."""
    small = [pattern.lower() for pattern in patterns]
    calls = [replace(call, path=call.path.lower(), kind=call.kind.lower()) for call in calls_of(graph)]
    scopes = frozenset(
        call.scope for call in calls if any(_fits(call, one, matches_parent=matches_parent) for one in small)
    )
    names = dict.fromkeys(call.path for call in calls_of(graph) if call.scope in scopes)
    if scopes:
        _note(f"gviz: note: no module is called {' '.join(patterns)}: {_some(names)} is drawn for it")
    return scopes


@cache
def _note(text: str) -> None:
    """Print a note once, even if a picture is made several times until it fits."""
    notice.show(text)


def _fits(call: ModuleCall, pattern: str, *, matches_parent: bool) -> bool:
    """Return whether a call's class or path matches a pattern. The part that all paths begin with may be missing.

    A pattern of wildcards alone says nothing about a class.
    """
    numbered = NUMBERED.fullmatch(pattern)
    name, nr = (numbered[1], int(numbered[2])) if numbered else (pattern, call.nr)
    names = [call.path, call.path.partition(".")[2], *([call.kind] if name.strip("*?.") else [])]
    names += [f"{path}." for path in names[:2] if matches_parent]
    return (nr == call.nr and any(matches(one, name) for one in names)) or pattern in names


def matches(name: str, pattern: str) -> bool:
    """Return whether a name matches a pattern, or is the same text: a name may contain ``[`` or ``*``.

    As in the paths of files, ``*`` stays within one part of a dotted name, and ``**`` crosses the dots: ``blocks.*``
    matches ``blocks.0``, and ``blocks.**`` also ``blocks.0.attn.proj``.
    """
    return name == pattern or _compiled(pattern).fullmatch(name) is not None


_TOKEN = re.compile(r"\*\*+|\*|\?|\[(!?)(\]?[^\]]*)\]|.", re.DOTALL)
_WILDCARDS = {"*": "[^.]*", "?": "[^.]"}


@lru_cache(256)
def _compiled(pattern: str) -> re.Pattern[str]:
    def translated(token: re.Match[str]) -> str:
        if token[2] is not None:
            inside = re.sub(r"([\\\[&~|^])", r"\\\1", token[2])
            return f"[{'^' * bool(token[1])}{inside}]"
        return ".*" if token[0].startswith("**") else _WILDCARDS.get(token[0], re.escape(token[0]))

    try:
        return re.compile(_TOKEN.sub(translated, pattern), re.DOTALL)
    except re.error:  # a range such as [z-a]
        return re.compile(re.escape(pattern))


def _hint(graph: CallGraph, every: Sequence[ModuleCall], patterns: Sequence[str], also: Sequence[str]) -> str:
    """Return how often a module was called if the pattern names a later call, or else the existing modules."""
    numbered = [match[1] for pattern in patterns if (match := NUMBERED.fullmatch(pattern))]
    often = next((call for name in numbered for call in every if _fits(call, name, matches_parent=False)), None)
    if often is not None:
        return f"{shown(often.path)} was called {often.of} time{'s' * (often.of != 1)}, counted from 1"
    known: Mapping[str, str | None] = {**modules(graph)}
    kinds, folds = dict.fromkeys(filter(None, known.values())), dict.fromkeys(also)
    lists: dict[str, Mapping[str, str | None]] = {"modules": known, "classes": kinds, "equal parts": folds}
    texts = [f"{what}: {_some(names)}" for what, names in lists.items() if names]
    return "; ".join(texts) or "nothing here was made in a module"


def _some(names: Mapping[str, str | None]) -> str:
    more = f" and {len(names) - SOME} more" if len(names) > SOME else ""
    return ", ".join(map(shown, list(names)[:SOME])) + more
