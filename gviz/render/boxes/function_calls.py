"""Function calls such as ``cross_entropy``: the level between the program's modules and the nodes of autograd.

One call of PyTorch's public functions may make many nodes: ``cross_entropy`` makes a ``log_softmax`` and an
``nll_loss``, ``einsum`` makes a dozen views around one ``bmm``. `with_calls` puts a call around the nodes of each
function call, inside the module calls that a `CallGraph` already has. `fold` then makes one box of it. A module that
makes only one call, such as a `Linear`, shares one box with that call, which saves a frame.

Which nodes belong to one call:

* A recording of PyTorch has this information: every node of a call except the last has ``OpSeen.more``.
* The built-in engine and older recordings do not have it. There, nodes that were made in succession at one place of
  the program, in one module call, belong to one call. If they repeat, they belong to the calls of a loop:

      h = F.linear(h, w, b)     t addmm            one call
      for w in ws: h = h @ w.T  t mm  t mm  t mm   three calls

  A body that repeats within one call, such as an `LSTM` over five steps, has a module call of its own.

`with_repeats` finds repeats in the same way: twelve equal blocks, or two hundred steps of a cell.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gviz.events.operation_names import DOCUMENTED
from gviz.explain.display_names import is_mask, public_name
from gviz.render.boxes.data_preparation import with_data
from gviz.render.boxes.details import is_inside_call
from gviz.render.boxes.fold import CALLS, REPEATS, CallGraph, Calls, Filter, ModuleCall, Repeat, around
from gviz.source import syntax
from gviz.source.site import Frame, source_lines
from gviz.trace.graph_state import NodeInfo
from gviz.trace.sequence_period import smallest_period
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class SourceCall:
    """One call in the program: the function's public name, and its nodes in order of creation."""

    name: str
    nodes: tuple[int, ...]


def has_public_names(timeline: Timeline, infos: Iterable[NodeInfo]) -> bool:
    """Return whether each operation is a call of the program, with its name in PyTorch's documentation.

    A `t` or an `addmm` is no such call: they are parts of a ``linear``.
    """
    operations = {info.node: info for info in infos if info.created.kind == "op" and not info.created.during[0]}
    names = {node: info.op.name.lower() for node, info in operations.items()}
    if any(name in DOCUMENTED or (name.startswith("_") and not name.startswith("__")) for name in names.values()):
        return False
    calls = [*source_calls(timeline, operations.values())]
    if any(len(call.nodes) > 1 and operations[call.nodes[-1]].op.is_of_program for call in calls):
        return False
    return all(call.name.lower() == names[call.nodes[-1]] for call in calls)


def source_calls(timeline: Timeline, infos: Iterable[NodeInfo]) -> Iterator[SourceCall]:
    """Yield the calls that made some operations. The operations come in order of creation, and so do the calls.

    What a custom function (`torch.autograd.Function`) computes in its forward is part of its call.
    """
    operations = {info.node: info for info in infos if info.created.kind == "op"}
    calls: list[SourceCall] = []
    for call in _calls_at_places(timeline, [*operations.values()]):
        function, inner = operations[call.nodes[-1]], len(calls)
        if function.op.is_of_program:
            while inner and all(is_inside_call(operations[node], function) for node in calls[inner - 1].nodes):
                inner -= 1
        nodes = tuple(node for part in calls[inner:] for node in part.nodes)
        calls[inner:] = [replace(call, nodes=(*nodes, *call.nodes))]
    yield from calls


def _calls_at_places(timeline: Timeline, operations: Sequence[NodeInfo]) -> Iterator[SourceCall]:
    """Yield the calls that made some operations, as far as one place in the program makes a call."""
    is_recorded = any(info.op.more or info.op.call for info in operations)
    if len({_place(info) for info in operations}) == 1:  # no recorded stacks, or a program of one line
        is_recorded = True
    run: list[NodeInfo] = []
    for info in operations:
        if run and _place(info) != _place(run[-1]):
            yield from _calls_in(timeline, run, is_recorded=is_recorded)
            run = []
        run.append(info)
    yield from _calls_in(timeline, run, is_recorded=is_recorded)


def _place(info: NodeInfo) -> tuple[Hashable, ...]:
    created = info.created
    return (created.stack, created.scope, created.during) if created.stack else (info.node,)


def _calls_in(timeline: Timeline, run: Sequence[NodeInfo], *, is_recorded: bool) -> Iterator[SourceCall]:
    """Yield the calls that made a run of nodes at one place."""
    if is_recorded:
        begin = 0
        for end, info in enumerate(run, 1):
            if not info.op.more or end == len(run):
                yield SourceCall(public_name(info), tuple(one.node for one in run[begin:end]))
                begin = end
        return
    period = smallest_period([info.op.name for info in run])
    for begin in range(0, len(run), period or 1):
        part = run[begin : begin + period]
        yield SourceCall(_name(timeline, part), tuple(info.node for info in part))


def _name(timeline: Timeline, part: Sequence[NodeInfo]) -> str:
    """Return the name of a call that the recording does not name.

    It is the name of the only node, or else the function in the source, or else the name of the module.
    """
    if len(part) == 1:
        return public_name(part[0])
    if {info.op.base_name for info in part} == {"log_softmax", "nll_loss"}:
        return "cross_entropy"
    frame = part[0].frames[0] if part[0].frames else None
    written = _written(timeline, frame) if frame is not None else ""
    if written:
        return written
    call = timeline.contexts.call(part[0].created.scope)
    if call is not None:
        return _snake(call.kind)
    tracked = [info for info in part if info.created.requires_grad]
    return public_name((tracked or part)[-1])


def _snake(kind: str) -> str:
    """Return ``batch_norm`` for ``BatchNorm2d``, ``cross_entropy`` for ``CrossEntropyLoss``, ``lstm`` for ``LSTM``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"(?<=[a-z])\d+d$", "", kind)).lower()
    return words if words in ("mse_loss", "nll_loss", "huber_loss") else words.removesuffix("_loss")


_OPERATORS = {
    ast.MatMult: "matmul", ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
    ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
}  # fmt: skip


def _written(timeline: Timeline, frame: Frame) -> str:
    """Return the function that the program calls at a place: ``gelu`` for ``F.gelu(x)``.

    The name is empty if the program calls an object, which is usually a module.
    """
    text = timeline.source(frame.path)
    if text is None or frame.column < 0 or not 0 < frame.line <= frame.end_line:
        return ""
    return _function_in(text, frame.line, frame.end_line, frame.column, frame.end_column)


@lru_cache(maxsize=4096)
def _function_in(text: str, line: int, end_line: int, column: int, end_column: int) -> str:
    lines = [part.encode() for part in source_lines(text)[line - 1 : end_line]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    try:
        tree = syntax.expression(b"\n".join(lines).decode("utf-8", "replace").strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if isinstance(tree, ast.BinOp):
        return _OPERATORS.get(type(tree.op), "")
    if isinstance(tree, ast.AugAssign):
        return _OPERATORS.get(type(tree.op), "")
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Attribute):
        return ""
    root: ast.expr = tree.func.value
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    return "" if isinstance(root, ast.Name) and root.id in ("self", "cls") else tree.func.attr


def with_calls(timeline: Timeline, graph: CallGraph, infos: Mapping[int, NodeInfo]) -> CallGraph:
    """Return the graph with the program's function calls around its nodes, as the innermost calls.

    Numbers and masks lie in the call that uses them.
    """
    chains = dict(graph.calls)
    ops = [infos[node] for node in graph.nodes if not (chains.get(node) and chains[node][0].scope < 0)]
    calls = [*source_calls(timeline, ops)]
    outer = {call.nodes[-1]: chains.get(call.nodes[-1], ()) for call in calls}
    own = Counter(chain[-1].scope for chain in outer.values() if chain)
    outer_scopes = {call.scope for chain in {*chains.values()} for call in chain[:-1]}
    units: dict[int, str] = {}
    ordinals: Counter[tuple[str, int, int]] = Counter()
    for call in calls:
        last = call.nodes[-1]
        chain = outer[last]
        if chain and chain[-1].scope not in outer_scopes and own[chain[-1].scope] == 1:
            units[chain[-1].scope] = call.name
            continue
        module, stack, scope = (
            (chain[-1].path, infos[last].created.stack, chain[-1].scope)
            if chain
            else ("", infos[last].created.stack, 0)
        )
        at = ordinals[module, stack, scope]
        ordinals[module, stack, scope] += 1
        path = f"{module}/{stack}/{at}" if chain else f"/{last}"
        source_call = ModuleCall(-CALLS - last, path, call.name)
        for node in call.nodes:
            chains[node] = (*chains.get(node, ()), source_call)
    distinct = {chains[node] for node in graph.nodes if chains.get(node)}
    inner_scopes: dict[int, set[int]] = {}
    for chain in distinct:
        for at, one in enumerate(chain):
            inner_scopes.setdefault(one.scope, set()).add(chain[at + 1].scope if at + 1 < len(chain) else 0)
    wrappers = {scope for scope, inner in inner_scopes.items() if len(inner) == 1 and inner != {0}}
    numbers = {
        info.node
        for info in infos.values()
        if info.created.kind == "constant" and (dict(info.created.attrs).get("number") is True or is_mask(info.created))
        if not any(call.is_data for call in chains.get(info.node, ()))
    }
    return replace(
        graph,
        calls=chains,
        buffers=frozenset(graph.buffers) | numbers,
        owned=frozenset(graph.owned) | numbers,
        units=units,
        wrappers=wrappers,
    )


def with_level(
    timeline: Timeline, graph: CallGraph, infos: Mapping[int, NodeInfo], graph_filter: Filter
) -> tuple[CallGraph, Filter]:
    """Return the graph with the data, function calls and repeats that a filter needs, and the filter for it.

    Then `fold` can make the boxes. Data preparation that contains the focus of the filter is expanded.
    """
    if graph_filter.data:
        graph = with_data(timeline, graph, infos, graph_filter.data)
        focused = {call.scope for call in around(graph, graph_filter.focus) if call.is_data}
        graph_filter = replace(graph_filter, opened=graph_filter.opened | focused)
    if graph_filter.calls:
        graph = with_calls(timeline, graph, infos)
    if graph_filter.repeats:
        graph, opened = with_repeats(graph, infos, graph_filter.opened, sample=graph_filter.sample)
        graph_filter = replace(graph_filter, opened=graph_filter.opened | opened)
    return graph, graph_filter


# ----------------------------------------------------------------------------------------------------------------------
# Repeats: equal blocks in succession, and the iterations of a loop.

FEWEST = 3
"""The fewest equal parts that are drawn as one."""
LONGEST_PERIOD = 48
"""The most calls in one iteration of a loop."""

Signature = int
"""A number that is equal for nodes with the same function, shapes, modules and call stack."""


@dataclass(slots=True)
class _Item:
    """One call at some depth, or one node that lies in no deeper call."""

    call: ModuleCall | None
    nodes: list[int]


def with_repeats(
    graph: CallGraph, infos: Mapping[int, NodeInfo], opened: Collection[int] = (), *, sample: bool = False
) -> tuple[CallGraph, frozenset[int]]:
    """Return the graph with one more call around each run of equal parts, and the scopes of all expanded calls.

    The expanded calls are the `opened` calls and, for a `sample`, the first part of each run.
    """
    known: dict[Hashable, int] = {}
    signatures = {node: known.setdefault(_signature(graph, infos[node]), len(known)) for node in graph.nodes}
    repeats = _Repeats(graph, infos, signatures, frozenset(opened), sample)
    nodes = [node for node in graph.nodes if _is_placed(graph, infos, node)]
    repeats.search(nodes, 0)
    weights = repeats.place_leaves()
    graph = replace(graph, loose={*graph.loose} | weights)
    return replace(graph, calls=repeats.chains, repeats=repeats.repeats), frozenset(repeats.opened)


def _is_placed(graph: CallGraph, infos: Mapping[int, NodeInfo], node: int) -> bool:
    """Return whether a node lies in calls of the program, or is an operation that the program called directly."""
    chain = graph.calls.get(node, ())
    return chain[0].of_program and not chain[0].is_data if chain else infos[node].created.kind == "op"


def _signature(graph: CallGraph, info: NodeInfo) -> Hashable:
    shapes = tuple(output.value.shape if output.value is not None else None for output in info.created.outputs)
    kinds = tuple((call.kind, _numberless(call)) for call in graph.calls.get(info.node, ()))
    return public_name(info), shapes, kinds, info.frames  # one place may have two stacks: Python rewrites instructions


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")


def _numberless(call: ModuleCall) -> str:
    """Return the path of a module without list indices; empty for a function call, which has only a name."""
    return _NUMBER.sub("#", call.path) if call.of_module else ""


class _Repeats:
    """The search for repeats, from the outermost calls inwards."""

    def __init__(
        self, graph: CallGraph, infos: Mapping[int, NodeInfo], signatures: Mapping[int, int],
        opened: frozenset[int], sample: bool,
    ) -> None:  # fmt: skip
        self.graph, self.infos, self.signatures = graph, infos, signatures
        self.requested, self.sample = opened, sample
        self.opened: set[int] = {*opened}
        self.chains: dict[int, Calls] = dict(graph.calls)
        self.repeats: dict[int, Repeat] = {}

    def search(self, nodes: Sequence[int], depth: int) -> None:
        """Search among the calls of these nodes at a depth, then inside each call that is not part of a repeat."""
        items = self._items(nodes, depth)
        known: dict[Hashable, int] = {}
        kinds = [known.setdefault(self._kind(item), len(known)) for item in items]
        single: list[tuple[_Item, int]] = []
        for begin, period, count in runs(kinds):
            turns = [items[at : at + period] for at in range(begin, begin + period * count, period)]
            if count < FEWEST or not _is_worth(turns[0], count):
                single += [(item, depth) for turn in turns for item in turn]
                continue
            sampled = self.sample and self._opens(turns[0])
            shown = [(sampled and not at) or self._is_requested(turn, depth) for at, turn in enumerate(turns)]
            start = 0
            for at in range(count + 1):
                if at < count and not shown[at]:
                    continue
                if at - start > 1:
                    self._fold(turns[start:at], depth, count, begin=start)
                else:
                    single += [(item, depth) for turn in turns[start:at] for item in turn]
                if at < count:
                    single += [(item, depth) for item in turns[at]]
                    self.opened |= {
                        item.call.scope
                        for item in turns[at]
                        if item.call is not None and item.call.of_module and item.call.scope not in self.graph.units
                    }
                start = at + 1
        for item, at_depth in single:
            if item.call is not None:
                self.search(item.nodes, at_depth + 1)

    def place_leaves(self) -> set[int]:
        """Return the weights that are alike, one for each part of a repeat: they lie in its box, as parameters do.

        A loop that makes two weights in each of 500 steps would otherwise have a thousand boxes above its own. Data
        that is alike becomes one box next to it: the input stays visible. The first part may lack one: of
        ``h @ w[i]`` for a list of weights, it may have data in its place.
        """
        part_of = {
            node: (scope, number)
            for scope, repeat in self.repeats.items()
            for number, part in enumerate(repeat.members)
            for node in part
        }
        users: dict[int, set[tuple[int, int] | None]] = {}
        for node in self.graph.nodes:
            if _is_placed(self.graph, self.infos, node):
                for source in self.graph.inputs.get(node, ()):
                    if source in self.signatures and self.infos[source].created.kind != "op":
                        users.setdefault(source, set()).add(part_of.get(node))
        alike: dict[tuple[int, Signature], dict[int, list[int]]] = {}
        for leaf, parts in users.items():
            part = next(iter(parts))
            is_free = leaf not in self.graph.owned and not self.graph.calls.get(leaf)  # no call has it already
            if len(parts) == 1 and part is not None and is_free:
                alike.setdefault((part[0], self.signatures[leaf]), {}).setdefault(part[1], []).append(leaf)
        weights: set[int] = set()
        for (scope, _), by_part in alike.items():
            if len(by_part) < max(FEWEST, self.repeats[scope].count - 1):
                continue
            leaves = [leaf for each in by_part.values() for leaf in each]
            if self.infos[leaves[0]].created.requires_grad:
                weights.update(leaves)
            else:
                self._fold_data(leaves)
        return weights

    def _fold_data(self, leaves: Sequence[int]) -> None:
        """Put equal data of the parts of a repeat into one box."""
        names = {self.infos[leaf].name for leaf in leaves}
        title = (names.pop() if len(names) == 1 else "") or "data"
        call = ModuleCall(-REPEATS - leaves[0], f"{title} ×{len(leaves)}", "")
        self.repeats[call.scope] = Repeat(title, len(leaves), tuple((leaf,) for leaf in leaves), (0, len(leaves)))
        for leaf in leaves:
            self.chains[leaf] = (call,)

    def _kind(self, item: _Item) -> Hashable:
        """Return a key that is equal for items that make the same calls.

        The nodes inside the calls may differ: the first of equal layers gets data that requires no gradient. A node
        that is made for a call, such as a mask, may be made only once.
        """
        nodes = (node for node in item.nodes if self.infos[node].created.kind == "op" and not self.infos[node].op.more)
        return tuple(self.signatures[node] for node in nodes)

    def _opens(self, turn: Sequence[_Item]) -> bool:
        """Return whether a part shows more when it is expanded: it is a module of several calls."""
        return any(
            item.call is not None and item.call.of_module and item.call.scope not in self.graph.units for item in turn
        )

    def _is_requested(self, turn: Sequence[_Item], depth: int) -> bool:
        """Return whether the user wants a call in this part to be expanded."""
        nodes = (node for item in turn for node in item.nodes)
        return any(call.scope in self.requested for node in nodes for call in self.graph.calls.get(node, ())[depth:])

    def _items(self, nodes: Sequence[int], depth: int) -> list[_Item]:
        items: dict[tuple[bool, int], _Item] = {}
        for node in nodes:
            chain = self.graph.calls.get(node, ())
            call = chain[depth] if len(chain) > depth else None
            key = (True, call.scope) if call is not None else (False, node)
            items.setdefault(key, _Item(call, [])).nodes.append(node)
        return [*items.values()]

    def _fold(self, turns: Sequence[Sequence[_Item]], depth: int, whole: int, begin: int) -> None:
        first, last = turns[0], turns[-1]
        members = tuple(tuple(node for item in turn for node in item.nodes) for turn in turns)
        calls = [item.call for turn in turns for item in turn if item.call is not None and item.call.of_module]
        modules = dict.fromkeys(call.path for call in calls)
        one, other = first[0].call, last[-1].call
        title = "step"
        if len(first) == 1 and one is not None and other is not None:
            title = _span(one, other) if one.of_module else one.kind
        of = calls[0].of if len(modules) == 1 else 1
        repeat = Repeat(title, len(turns), members, (begin, whole), tuple(modules), of)
        call = ModuleCall(-REPEATS - members[0][0], f"{title} ×{len(turns)}", _kinds(first))
        self.repeats[call.scope] = repeat
        for turn in members:
            for node in turn:
                chain = self.chains.get(node, ())
                self.chains[node] = (*chain[:depth], call, *chain[depth:])


def _kinds(turn: Sequence[_Item]) -> str:
    """Return the classes of the modules and the names of the functions in one part."""
    names = dict.fromkeys(item.call.kind for item in turn if item.call is not None)
    return ", ".join(names)


def _span(one: ModuleCall, other: ModuleCall) -> str:
    """Return ``layers.0–11`` for the first and the last of equal modules, ``cell:2–5`` for calls of one module."""
    first = one.path.partition(".")[2] or one.path
    if one.path == other.path:
        return f"{first}:{one.nr}–{other.nr}" if one.of > other.nr - one.nr + 1 else first
    last = other.path.partition(".")[2] or other.path
    same = first.split(".")
    for at, (here, there) in enumerate(zip(same, last.split("."), strict=False)):
        if here != there:
            return ".".join([*same[:at], f"{here}–{there}", *same[at + 1 :]])
    return first


def _is_worth(turn: Sequence[_Item], count: int) -> bool:
    """Return whether one box is clearer than its parts: the parts are modules, have several calls, or are many."""
    return any(item.call is not None and item.call.of_module for item in turn) or len(turn) > 1 or count > FEWEST


def runs(kinds: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the sequence as ``(begin, period, count)`` from the left.

    At each place the longest repeat is taken, or else a single element.
    """
    matches: list[list[int]] = [[]]
    for period in range(1, min(LONGEST_PERIOD, len(kinds) // FEWEST) + 1):
        lengths = [0] * (len(kinds) + 1)
        for at in range(len(kinds) - period - 1, -1, -1):
            lengths[at] = lengths[at + 1] + 1 if kinds[at] == kinds[at + period] else 0
        matches.append(lengths)
    at = 0
    while at < len(kinds):
        repeats = [(period, matches[period][at] // period + 1) for period in range(1, len(matches))]
        repeats = [(period, count) for period, count in repeats if count >= FEWEST]
        period, count = max(repeats, key=lambda one: (one[0] * one[1], -one[0]), default=(1, 1))
        yield at, period, count
        at += period * count
