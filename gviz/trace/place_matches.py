"""Which nodes a place refers to: a name, a line of a file, a kind of operation, or a module.

A line may run many times and create several nodes each time: `LineRuns` finds the first node of each run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Literal, NamedTuple

from gviz.events import BackwardStarted, OptimizerStarted
from gviz.query_syntax.module_owner import is_of_module
from gviz.query_syntax.place import Place, Possible
from gviz.query_syntax.stop_condition import CALLED
from gviz.trace.graph_state import NodeInfo
from gviz.trace.node_table import LEAF
from gviz.trace.timeline import Timeline

_NEAR = 64
"""A search for one node checks this many nodes first, then twice as many, and so on."""
_BLOCK = 1024
"""Nodes are checked in blocks of this size when one of them is asked about."""


def mentions(timeline: Timeline, info: NodeInfo, word: str) -> bool:
    """Return whether a word occurs in the source files that created a node. True if the text of a file is unknown."""
    texts = [timeline.source(frame.path) for frame in info.frames]
    return None in texts or not texts or any(re.search(rf"\b{re.escape(word)}\b", text) for text in texts if text)


class PlaceMatcher:
    """Decides whether a place fits a node.

    Uses only the operation, call stack and module if they are sufficient, because many nodes share them.
    """

    def __init__(self, timeline: Timeline, place: Place) -> None:
        self._timeline = timeline
        self._place = place
        self._kinds: dict[tuple[int, int, str, int], Literal["yes", "maybe", "no"]] = {}
        self._modules: dict[int, str] = {}
        self._matches_by_module: dict[tuple[str, int], bool] = {}

    def __call__(self, node: int) -> bool:
        at = self._timeline.nodes.place_of(node)
        if at < 0 or self._place.kind == "node":
            return at >= 0 and node == self._place.number
        origins = self._timeline.nodes.origins
        return self.means_module(self._module(origins.scope.item(at)), origins.stack.item(at)) or self.names(node)

    def names(self, node: int) -> bool:
        """Return whether the place refers to the node itself, and not to a module that created it."""
        nodes, likely = self._timeline.nodes, "maybe"
        if node not in nodes.named and node not in nodes.parts:
            at, origins = nodes.place_of(node), nodes.origins
            module, owner = self._module(origins.scope.item(at)), origins.gradient_of.item(at)
            likely = self._match_by_origin(origins.op.item(at), origins.stack.item(at), module, owner)
        return likely == "yes" or (likely == "maybe" and self._names(self._timeline.info(node)))

    def means_module(self, path: str, stack: int) -> bool:
        """Return whether the place refers to the module with this path, or to a module around it.

        `stack` is the number of the call stack at which something in the module was created.
        """
        key = path, stack
        if key not in self._matches_by_module:
            frames, text_of = self._timeline.stack(stack), self._timeline.source
            self._matches_by_module[key] = is_of_module(self._place, path, frames, text_of)
        return self._matches_by_module[key]

    def candidates(self, start: int, stop: int) -> list[int]:
        """Return the nodes with these indices that may fit. Computing the actual name of each takes much longer."""
        nodes = self._timeline.nodes
        if self._place.kind == "node":
            return [self._place.number] if start <= nodes.place_of(self._place.number) < stop else []
        columns = (column[start:stop].tolist() for column in nodes.origins)
        named, parts, may_fit = nodes.named, nodes.parts, self._may_fit
        rows = zip(nodes[start:stop], *columns, strict=True)
        return [node for node, *origin in rows if may_fit(*origin) or node in named or node in parts]

    def nearest_candidates(self, place: int, *, backward: bool = False) -> Iterator[int]:
        """Yield the nodes that may fit from an index on, nearest first; with `backward`, those before it."""
        most, size = len(self._timeline.nodes), _NEAR
        while place > 0 if backward else place < most:
            end = max(place - size, 0) if backward else min(place + size, most)
            nodes = self.candidates(min(place, end), max(place, end))
            yield from reversed(nodes) if backward else nodes
            place, size = end, 2 * size

    def _may_fit(self, op: int, stack: int, scope: int, owner: int) -> bool:
        module = self._module(scope)
        return self.means_module(module, stack) or self._match_by_origin(op, stack, module, owner) != "no"

    def _names(self, info: NodeInfo) -> bool:
        return self._place.names(info) or self._is_parameter_of_variable(info)

    def _is_parameter_of_variable(self, info: NodeInfo) -> bool:
        """Return whether the place is a variable followed by the path of this parameter.

        Example: ``net.0.weight`` for the parameter ``0.weight``. False if any node has the full name.
        """
        variable = next((variable for variable, path in self._place.parameters if info.means(path)), "")
        if not variable or info.created.kind != "parameter":
            return False
        nodes = self._timeline.nodes
        whole = any(self._timeline.info(node).means(self._place.word) for node in nodes.named if node in nodes)
        return not whole and mentions(self._timeline, info, variable)

    def _match_by_origin(self, op: int, stack: int, module: str, owner: int) -> Literal["yes", "maybe", "no"]:
        """Return "yes" if the place fits a node with any name, "maybe" if the name decides, otherwise "no".

        It is not checked here whether the node is an intermediate step, and so which of its possible names it has.
        """
        kind = op, stack, module, owner
        if kind not in self._kinds:
            seen, frames = self._timeline.op(op), self._timeline.stack(stack)
            names = "", *self._timeline.nodes.possible_names(stack), *self._of_gradient(owner)
            nameless, *named = (self._place.names(Possible(0, (name,), seen, module, frames)) for name in names)
            is_certain = nameless and not self._place.depends_on_result(seen)
            self._kinds[kind] = "yes" if is_certain else "maybe" if nameless or any(named) else "no"
        return self._kinds[kind]

    def _of_gradient(self, owner: int) -> tuple[str, ...]:
        """Return the possible names of a node that is the gradient of another."""
        if owner not in self._timeline.nodes:
            return ()
        return f"#{owner}.grad", f"{self._timeline.info(owner).name}.grad"

    def _module(self, scope: int) -> str:
        if scope not in self._modules:
            self._modules[scope] = self._timeline.contexts.module(scope)
        return self._modules[scope]


class MatchingNodes:
    """The nodes that a place refers to. With `once_a_run`, only the first node of each run of a line.

    Results are cached until a node gets another name.
    """

    def __init__(self, timeline: Timeline, place: Place, *, once_a_run: bool = False) -> None:
        self._timeline = timeline
        self._place = place
        self._matcher = PlaceMatcher(timeline, place)
        self._fits: dict[int, bool] = {}
        self._runs = LineRuns(timeline, self._matcher) if once_a_run else None
        self._blocks: dict[int, frozenset[int]] = {}  # by block of nodes: those that may match
        self._memory: tuple[int, dict[int, int]] = 0, {}

    def __contains__(self, node: int) -> bool:
        """Return whether the place refers to this node."""
        fits = self._fits.get(node)
        if fits is None:
            fits = (self._timeline.growing or self._may_match(node)) and self._decide(node)
        return fits

    def is_started_at(self, event: BackwardStarted | OptimizerStarted) -> bool:
        """Return whether the place is a line in which this pass or optimizer step was started."""
        return self._place.calls(self._timeline.stack(event.stack))

    def any(self) -> bool:
        """Return whether there is any matching node, or a pass or optimizer step that was started there."""
        return self._any() if self._timeline.growing else self._is_any

    @cached_property
    def _is_any(self) -> bool:
        return self._any()

    def _any(self) -> bool:
        newest_first = self._matcher.nearest_candidates(len(self._timeline.nodes), backward=True)
        if any(node in self for node in newest_first):
            return True
        if not any(self._place.calls((frame,)) for frame in self._timeline.stacks.innermost()):
            return False
        return any(self.is_started_at(event) for _, event in self._timeline.select(CALLED))

    def births_by_storage(self) -> dict[int, int]:
        """Return the storages of the matching nodes, each with the event that created its first such node."""
        nodes = self._timeline.nodes
        if self._memory[0] != len(nodes):
            creations = nodes.all_created([node for node in self._matcher.candidates(0, len(nodes)) if node in self])
            births = [
                (output.storage, self._timeline.nodes.born(node)) for node, one in creations for output in one.outputs
            ]
            self._memory = len(nodes), dict(reversed(births))
        return self._memory[1]

    def _may_match(self, node: int) -> bool:
        """Return whether a node of a complete recording may match; checks its whole block."""
        part = self._timeline.nodes.place_of(node) // _BLOCK
        if part not in self._blocks:
            self._blocks[part] = frozenset(self._matcher.candidates(part * _BLOCK, (part + 1) * _BLOCK))
        return node in self._blocks[part]

    def _decide(self, node: int) -> bool:
        fits = self._matcher(node) and (self._runs is None or node in self._runs)
        if not self._timeline.growing or self._place.kind in ("node", "line", "op"):  # a name may not be known yet
            self._fits[node] = fits
        return fits


class _Run(NamedTuple):
    """One run of a line: the first node, how it was created, and the first operation.

    These two nodes are the same unless the operation's tensor inputs come first. 0 if not seen yet.
    """

    first: int
    op: int
    stack: int
    scope: int
    operation: int


class LineRuns:
    """The nodes with which each run of a line starts. `is_of_line` decides which nodes belong to the line."""

    def __init__(self, timeline: Timeline, is_of_line: Callable[[int], bool]) -> None:
        self._timeline = timeline
        self._is_of_line = is_of_line
        self._runs: dict[int, _Run] = {}

    def __contains__(self, node: int) -> bool:
        """Return whether this node of the line is the first node, or the first operation, of a run."""
        later, first = [], node
        while first not in self._runs and self._is_of_line(first - 1):
            later.append(first)
            first -= 1
        run = self._runs.setdefault(first, self._of(first))
        for each in reversed(later):
            run = self._runs[each] = self._with(run, each)
        return node in (run.first, run.operation)

    def _of(self, node: int) -> _Run:
        origins, at = self._timeline.nodes.origins, self._timeline.nodes.place_of(node)
        op = origins.op.item(at)
        first = 0 if origins.gradient_of.item(at) else node  # a line reads a ``.grad``, it does not create one
        operation = 0 if self._timeline.nodes.op_name(op) == LEAF else node
        return _Run(first, op, origins.stack.item(at), origins.scope.item(at), operation)

    def _with(self, run: _Run, node: int) -> _Run:
        """Return the run that the next node belongs to: `run` or a new one.

        In a loop, a new run starts at the operation with which the first run started. One call may create many nodes
        with the same stack. Each module call is a run of its own.
        """
        other = self._of(node)
        if other.stack != run.stack:
            return run
        if not other.operation:
            return run if run.operation or not self._may_be_created_here(other) else other
        if not run.operation:
            return other._replace(first=run.first or node)
        return other if other.scope != run.scope or other.op == run.op else run

    def _may_be_created_here(self, run: _Run) -> bool:
        return run.first > 0 and self._timeline.info(run.first).created.kind != "parameter"
