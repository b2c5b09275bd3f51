"""Repeats: equal blocks in succession, and the iterations of a loop, which a picture draws as one box.

Two parts are equal if the same functions and modules were called in the same order, on equal shapes. Twelve equal
blocks become ``layers.0–11 ×12``, two hundred steps of a cell ``step ×200``. The search begins at the outermost calls
(`_Repeats.search`); `runs` finds the longest run of equal parts at each place. Data and weights that the parts use in
the same way go into the box, too. What a part computes from constants alone, such as the mask of an attention, may
differ: often only the first block makes it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gviz.explain.display_names import public_name
from gviz.render.boxes.folding import REPEATS, CallGraph, Calls, ModuleCall, Repeat, matches
from gviz.trace.graph_state import NodeInfo
from gviz.values.value_text import CUT

FEWEST = 3
"""The fewest equal parts that are drawn as one, unless they are modules of several calls: of these, two are enough."""
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
    graph: CallGraph,
    infos: Mapping[int, NodeInfo],
    opened: Collection[int] = (),
    *,
    sample: bool = False,
    unfolded: Sequence[str] = (),
) -> tuple[CallGraph, frozenset[int]]:
    """Return the graph with one more call around each run of equal parts, and the scopes of all expanded calls.

    The expanded calls are the `opened` calls and, for a `sample`, the first part of each run. Runs that match the
    `unfolded` patterns have no call.
    """
    known: dict[Hashable, int] = {}
    signatures = {node: known.setdefault(_signature(graph, infos[node]), len(known)) for node in graph.nodes}
    repeats = _Repeats(graph, infos, signatures, frozenset(opened), sample, unfolded)
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
        opened: frozenset[int], sample: bool, unfolded: Sequence[str],
    ) -> None:  # fmt: skip
        self.graph, self.infos, self.signatures = graph, infos, signatures
        self.requested, self.sample, self.unfolded = opened, sample, unfolded
        self.constant = _of_constants(graph, infos)
        self.opened: set[int] = {*opened}
        self.chains: dict[int, Calls] = dict(graph.calls)
        self.repeats: dict[int, Repeat] = {}

    def search(self, nodes: Sequence[int], depth: int) -> None:
        """Search among the calls of these nodes at a depth, then inside each call that is not part of a repeat."""
        items = self._items(nodes, depth)
        known: dict[Hashable, int] = {}
        kinds = [known.setdefault(self._kind(item), len(known)) for item in items]
        single: list[tuple[_Item, int]] = []
        pairs = {kind for kind, item in zip(kinds, items, strict=True) if self._opens([item])}
        for begin, period, count in runs(kinds, pairs):
            turns = [items[at : at + period] for at in range(begin, begin + period * count, period)]
            if count < 2 or not _is_worth(turns[0], count):
                single += [(item, depth) for turn in turns for item in turn]
                continue
            sampled = self.sample and self._opens(turns[0])
            shown = [(sampled and not at) or self._is_requested(turn, depth) for at, turn in enumerate(turns)]
            start = 0
            for at in range(count + 1):
                if at < count and not shown[at]:
                    continue
                if at - start > 1 and not self._is_unfolded(turns[start:at]):
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
            if len(by_part) < max(min(FEWEST, self.repeats[scope].count), self.repeats[scope].count - 1):
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
        if is_repeat_named(call, title, self.unfolded):
            return
        self.repeats[call.scope] = Repeat(title, len(leaves), tuple((leaf,) for leaf in leaves), (0, len(leaves)))
        for leaf in leaves:
            self.chains[leaf] = (call,)

    def _kind(self, item: _Item) -> Hashable:
        """Return a key that is equal for items that make the same calls.

        The nodes inside the calls may differ: the first of equal layers gets data that requires no gradient. A node
        that is made for a call, such as a mask, may be made only once, and so may all that is made of constants.
        """
        nodes = [node for node in item.nodes if self.infos[node].created.kind == "op" and not self.infos[node].op.more]
        computed = [node for node in nodes if node not in self.constant]
        return tuple(self.signatures[node] for node in computed or nodes)

    def _opens(self, turn: Sequence[_Item]) -> bool:
        """Return whether a part shows more when it is expanded: it is a module of several calls."""
        return any(
            item.call is not None and item.call.of_module and item.call.scope not in self.graph.units for item in turn
        )

    def _is_requested(self, turn: Sequence[_Item], depth: int) -> bool:
        """Return whether the user wants a call in this part to be expanded."""
        nodes = (node for item in turn for node in item.nodes)
        return any(call.scope in self.requested for node in nodes for call in self.graph.calls.get(node, ())[depth:])

    def _is_unfolded(self, turns: Sequence[Sequence[_Item]]) -> bool:
        """Return whether the user wants equal parts to be drawn apart.

        A picture that showed the first part by itself named the others.
        """
        return bool(self.unfolded) and any(
            is_repeat_named(_repeat_call(part), _title(part), self.unfolded) for part in (turns, turns[1:])
        )

    def _items(self, nodes: Sequence[int], depth: int) -> list[_Item]:
        items: dict[tuple[bool, int], _Item] = {}
        for node in nodes:
            chain = self.graph.calls.get(node, ())
            call = chain[depth] if len(chain) > depth else None
            key = (True, call.scope) if call is not None else (False, node)
            items.setdefault(key, _Item(call, [])).nodes.append(node)
        return [*items.values()]

    def _fold(self, turns: Sequence[Sequence[_Item]], depth: int, whole: int, begin: int) -> None:
        members = tuple(tuple(node for item in turn for node in item.nodes) for turn in turns)
        calls = [item.call for turn in turns for item in turn if item.call is not None and item.call.of_module]
        modules = dict.fromkeys(call.path for call in calls)
        title, call = _title(turns), _repeat_call(turns)
        of = calls[0].of if len(modules) == 1 else 1
        repeat = Repeat(title, len(turns), members, (begin, whole), tuple(modules), of)
        self.repeats[call.scope] = repeat
        for turn in members:
            for node in turn:
                chain = self.chains.get(node, ())
                self.chains[node] = (*chain[:depth], call, *chain[depth:])


def _of_constants(graph: CallGraph, infos: Mapping[int, NodeInfo]) -> set[int]:
    """Return the nodes that modules made without data and parameters: constants, buffers, and results of these.

    A constant that a module did not make itself is data, which is never among them. In a large graph, inputs that are
    left out are not tracked either.
    """
    found: set[int] = set()
    for node in graph.nodes:
        created = infos[node].created
        if created.kind == "op":
            is_constant = not created.requires_grad and all(
                source in found or source not in infos for source in graph.inputs.get(node, ())
            )
        else:
            is_constant = created.kind == "constant" and (created.scope > 0 or node in graph.owned)
        if is_constant:
            found.add(node)
    return found


def is_repeat_named(call: ModuleCall, title: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern matches equal parts: ``step``, ``step ×200``, or the title of their box.

    A title may be cut, ``step linear, t… ×200``, and typed with a hyphen, ``layers.0-11``.
    """
    count = call.path.rpartition("×")[2]
    signs = (f"×{count}", f"×{int(count):,}", f"x{count}")
    names = [title, *(f"{title}{kind} {sign}" for kind in ("", f" {call.kind}") for sign in signs)]
    names += [name.replace("–", "-") for name in names]
    return any(matches(name, pattern.strip().replace(CUT, "**")) for pattern in patterns for name in names)


def _repeat_call(turns: Sequence[Sequence[_Item]]) -> ModuleCall:
    """Return the call around equal parts."""
    first = turns[0][0].nodes[0]
    return ModuleCall(-REPEATS - first, f"{_title(turns)} ×{len(turns)}", _kinds(turns[0]))


def _title(turns: Sequence[Sequence[_Item]]) -> str:
    """Return the name of equal parts: ``layers.0–11`` for modules, ``tanh`` for calls of a function, or ``step``.

    Parts of several modules have the name of all their modules if these are the consecutive ones of a list, each called
    once, as in a ``Sequential`` of layers and activations. Otherwise they are steps of a loop in the program.
    """
    one, other = turns[0][0].call, turns[-1][-1].call
    if one is None or other is None or (len(turns[0]) > 1 and not _is_list(turns)):
        return "step"
    return _span(one, other) if one.of_module else one.kind


def _is_list(turns: Sequence[Sequence[_Item]]) -> bool:
    """Return whether all items are the modules of one list, in its order: ``0``, ``1``, ``2``."""
    calls = [item.call for turn in turns for item in turn]
    places = [call.path.rpartition(".") for call in calls if call is not None and call.of_module]
    if len(places) < len(calls) or len({parent for parent, _, _ in places}) > 1:
        return False
    return all(last.isdecimal() for _, _, last in places) and all(
        int(last) == int(before) + 1 for (_, _, before), (_, _, last) in pairwise(places)
    )


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


def runs(kinds: Sequence[int], pairs: Collection[int] = ()) -> Iterator[tuple[int, int, int]]:
    """Yield the sequence as ``(begin, period, count)`` from the left.

    At each place the longest repeat is taken, or else a single element. Two equal elements among `pairs` are a repeat,
    unless a longer one begins at the second.
    """
    matches: list[list[int]] = [[]]
    for period in range(1, min(LONGEST_PERIOD, max(len(kinds) // FEWEST, 1)) + 1):
        lengths = [0] * (len(kinds) + 1)
        for at in range(len(kinds) - period - 1, -1, -1):
            lengths[at] = lengths[at + 1] + 1 if kinds[at] == kinds[at + period] else 0
        matches.append(lengths)

    def longest(at: int) -> tuple[int, int]:
        repeats = [(period, matches[period][at] // period + 1) for period in range(1, len(matches))]
        repeats = [(period, count) for period, count in repeats if count >= FEWEST]
        return max(repeats, key=lambda one: (one[0] * one[1], -one[0]), default=(1, 1))

    at = 0
    while at < len(kinds):
        period, count = longest(at)
        is_pair = count == 1 and kinds[at] in pairs and kinds[at : at + 1] == kinds[at + 1 : at + 2]
        if is_pair and longest(at + 1)[1] == 1:
            count = 2
        yield at, period, count
        at += period * count
