"""Which nodes one call of the program created. A library call may create many, and call back into the program.

The tree of all call stacks (`gviz.trace.stack_tree`) has the outermost frames at its root. A call is a subtree of it,
and its nodes are those with stacks in the subtree. A call that constructs an object of an imported class
(`constructions`) names no value.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gviz.events import ScopeEntered
from gviz.source import parsing
from gviz.trace.graph_state import Origins
from gviz.trace.naming.bindings import LARGEST_SOURCE, Range, is_of_class, where_stands
from gviz.trace.sequence_period import smallest_period
from gviz.trace.stack_tree import Stacks
from gviz.values.value import Array

_LONGEST_PERIOD = 1000
_DEEPEST = 100
"""Nested module calls are distinguished up to this depth."""


@dataclass(frozen=True, slots=True)
class Call:
    """The places, in thread order, of the nodes that one call created.

    `is_last`: they are the last of all. `is_open`: the call may create more.
    """

    places: range
    is_last: bool
    is_open: bool


@dataclass(frozen=True, slots=True)
class _Below:
    """Where the runs of nodes below a caller start and end, and where calls begin in each run."""

    starts: list[int]
    ends: list[int]
    parted: dict[tuple[int, bool], list[int]]


class Calls:
    """The calls of a trace's program, by the calling frames.

    Nodes created one after another below the same frames belong to one call or to several turns of a loop. The scopes
    of module calls distinguish these; without scopes, a repeating pattern counts as a loop. `threads` has the thread
    that created each node, and `module_call` returns the call of a scope.
    """

    def __init__(
        self,
        origins: Origins,
        tree: Stacks,
        threads: Array,
        *,
        leaf: Callable[[int], bool],
        module_call: Callable[[int], ScopeEntered | None],
        goes_on: bool,
    ) -> None:
        order = threads.argsort(kind="stable")
        self._threads = threads[order]
        self.stacks = origins.stack[order]
        self._ops, self._scopes = origins.op[order], origins.scope[order]
        self._place_of = np.empty(len(order), np.int64)
        self._place_of[order] = np.arange(len(order))
        self._by_stack = self.stacks.argsort(kind="stable")
        self._sorted = self.stacks[self._by_stack]
        self._tree = tree
        self._leaf, self._module_call, self._goes_on = leaf, module_call, goes_on
        self._runs: dict[int, _Below] = {}
        self._last_modules: dict[tuple[int, int], tuple[int, int, int]] = {}
        self._enclosing_by_scope: dict[int, tuple[int, ...]] = {0: ()}

    def place(self, node_place: int) -> int:
        """Return the index of a node in thread order (thread by thread)."""
        return self._place_of.item(node_place)

    def op(self, place: int) -> int:
        """Return the number of the operation that created the node at a place."""
        return int(self._ops[place])

    def of(self, place: int, depth: int, *, folds: bool) -> Call:
        """Return the call, `depth` frames up a node's stack, that created it; a call that `folds` calls many others."""
        stack = self.stacks.item(place)
        caller = self._tree.place(stack, depth)
        below = self._runs_below(caller)
        row = bisect_right(below.starts, place) - 1
        start, end = below.starts[row], below.ends[row]
        parted = below.parted.get((row, folds))
        if parted is None:
            alone = folds or end == start + 1
            parted = below.parted[row, folds] = [start] if alone else self._parted(range(start, end), caller)
        part = bisect_right(parted, place) - 1
        ends_run = part == len(parted) - 1
        is_last = ends_run and self._is_at_the_end(end)
        return Call(range(parted[part], end if ends_run else parted[part + 1]), is_last, is_last and self._goes_on)

    def around(self, place: int, fits: Callable[[int], bool]) -> Call:
        """Return the run of neighbors of a place, in its thread, whose stacks all satisfy `fits`."""
        known: dict[int, bool] = {}

        def is_sibling(at: int) -> bool:
            stack = self.stacks.item(at)
            if stack not in known:
                known[stack] = fits(stack)
            return known[stack] and self._threads.item(at) == self._threads.item(place)

        start, end = place, place + 1
        while start and is_sibling(start - 1):
            start -= 1
        while end < len(self.stacks) and is_sibling(end):
            end += 1
        is_last = self._is_at_the_end(end)
        return Call(range(start, end), is_last, is_last and self._goes_on)

    def continues_elsewhere(self, place: int, call: Call) -> bool:
        """Return whether a call, after it created this node, continues in another of the modules it calls."""
        if place == call.places[-1]:
            return False
        key = call.places.start, call.places.stop
        if key not in self._last_modules:
            operations = [at for at in call.places if not self._is_leaf(at)]
            enclosing = {at: self._enclosing_calls(self._scopes.item(at)) for at in operations}
            depth = len(_common([*enclosing.values()]))
            last = next((at for at in reversed(operations) if len(enclosing[at]) > depth), -1)
            self._last_modules[key] = last, depth, enclosing[last][depth] if last >= 0 else 0
        last, depth, module = self._last_modules[key]
        return last > place and module not in self._enclosing_calls(self._scopes.item(place))[depth : depth + 1]

    def _is_leaf(self, place: int) -> bool:
        """Return whether the node is not the result of an operation."""
        return self._leaf(self._ops.item(place))

    def _is_at_the_end(self, end: int) -> bool:
        """Return whether nothing follows this place in its thread."""
        return end == len(self.stacks) or self._threads.item(end) != self._threads.item(end - 1)

    def _runs_below(self, caller: int) -> _Below:
        if caller not in self._runs:
            below = self._tree.below(caller)
            bounds = zip(self._sorted.searchsorted(below), self._sorted.searchsorted(below, "right"), strict=True)
            parts = [self._by_stack[low:high] for low, high in bounds]
            places = np.sort(np.concatenate(parts), kind="stable")  # fast where each part is sorted
            cuts = np.flatnonzero((np.diff(places) != 1) | (np.diff(self._threads[places]) != 0))
            starts, ends = places[[0, *(cuts + 1)]], places[[*cuts, -1]] + 1
            self._runs[caller] = _Below(starts.tolist(), ends.tolist(), {})
        return self._runs[caller]

    def _parted(self, run: range, caller: int) -> list[int]:
        """Return where the calls in a run begin."""
        operations = [place for place in run if not self._is_leaf(place)]
        chains = [self._enclosing_calls(self._scopes.item(place)) for place in operations]
        around = _common(chains)
        if around and not self._encloses(around, run, caller):
            return [run.start]
        depth = len(around)
        called = [chain[depth] if len(chain) > depth else 0 for chain in chains]
        if called and all(called):
            changes = [
                place + 1 for place, one, other in zip(operations, called, called[1:], strict=False) if one != other
            ]
            return [run.start, *changes]
        return self._repeated(run, depth)

    def _encloses(self, around: Sequence[int], run: range, caller: int) -> bool:
        """Return whether the innermost module call around a run also contains the caller, instead of being called by
        it.
        """
        scope = around[-1]
        call = self._module_call(scope)
        name = f"{call.kind}.forward" if call is not None else ""
        neighbours = [place for place in (run.start - 1, run.stop) if 0 <= place < len(self._scopes)]
        frames = map(self._tree.frame, self._tree.outward(caller))
        return any(frame.function.endswith(name) for frame in frames) or any(
            scope in self._enclosing_calls(self._scopes.item(place)) for place in neighbours
        )

    def _repeated(self, run: range, depth: int) -> list[int]:
        sight = run[:_LONGEST_PERIOD]
        kinds = [
            (self._ops.item(place), self.stacks.item(place), self._module(self._scopes.item(place), depth))
            for place in sight
        ]
        period = smallest_period(kinds, cut=True)
        if self._goes_on and self._is_at_the_end(run.stop):
            whole = len(run) % period == 0
            return [*run[::period], *[run.stop] * whole] if len(run) >= 2 * period else [run.start]
        is_loop = len(run) > _LONGEST_PERIOD or len(run) % period == 0  # otherwise it only looked like a loop
        return [*run[::period]] if is_loop else [run.start]

    def _module(self, scope: int, depth: int) -> str:
        """Return the module that was called at this depth on the path to a scope."""
        chain = self._enclosing_calls(scope)
        call = self._module_call(chain[depth]) if len(chain) > depth else None
        return call.name if call is not None else ""

    def _enclosing_calls(self, scope: int) -> tuple[int, ...]:
        """Return the module calls around a scope, outermost first, including itself."""
        unknown = []
        while scope not in self._enclosing_by_scope:
            unknown.append(scope)
            call = self._module_call(scope)
            scope = call.parent if call is not None else 0
        chain = self._enclosing_by_scope[scope]
        for inner in reversed(unknown):
            chain = self._enclosing_by_scope[inner] = (*chain, inner)[:_DEEPEST]
        return chain


def _common(chains: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common prefix."""
    low, high = min(chains, default=()), max(chains, default=())
    same = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), None)
    return low[: min(len(low), len(high)) if same is None else same]


@lru_cache(maxsize=64)
def constructions(text: str) -> frozenset[Range]:
    """Return the ranges of calls like ``Categorical(logits=x)`` or ``distributions.Normal(0, s)`` of imported classes.

    Empty if the text is too large or not valid Python.
    """
    if len(text) > LARGEST_SOURCE:
        return frozenset()
    try:
        nodes = list(ast.walk(parsing.program(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    imported = frozenset(name for node in nodes for name in _imported(node))
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return frozenset(where_stands(call) for call in calls if _is_class(call.func, imported))


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (name.asname or name.name.partition(".")[0] for name in node.names)


def _is_class(function: ast.expr, imported: frozenset[str]) -> bool:
    """Return whether a name is written like a class, ``OneHotCategorical``, and comes from an import."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return is_of_class(name) and _root(function) in imported
    return False


def _root(value: ast.expr) -> str:
    """Return the variable that ``a.b.c`` starts with."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""
