"""Which nodes a line of the program begins to run with: it may make many in one run, and run again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gviz.trace.nodes import LEAF
from gviz.trace.timeline import Timeline


class _Run(NamedTuple):
    """A run of a line: the node it began with, how that was made, and its first operation: they are one, or tensors are
    told of before that it takes. 0 where neither has come."""

    first: int
    op: int
    stack: int
    scope: int
    operation: int


class LineRuns:
    """The nodes that a line begins to run with; those of the line are what `is_of_line` says, one after another."""

    def __init__(self, timeline: Timeline, is_of_line: Callable[[int], bool]) -> None:
        self._timeline = timeline
        self._is_of_line = is_of_line
        self._runs: dict[int, _Run] = {}

    def __contains__(self, node: int) -> bool:
        """Whether a run begins with this node of the line, or its operations do."""
        later, first = [], node
        while first not in self._runs and self._is_of_line(first - 1):
            later.append(first)
            first -= 1
        run = self._runs.setdefault(first, self._of(first))
        for each in reversed(later):
            run = self._runs[each] = self._with(run, each)
        return node in (run.first, run.operation)

    def _of(self, node: int) -> _Run:
        made, at = self._timeline.nodes.origins, self._timeline.nodes.place_of(node)
        op = made.op.item(at)
        first = 0 if made.gradient_of.item(at) else node  # a line takes a ``.grad``, and makes none
        operation = 0 if self._timeline.nodes.op_name(op) == LEAF else node
        return _Run(first, op, made.stack.item(at), made.scope.item(at), operation)

    def _with(self, run: _Run, node: int) -> _Run:
        """The run that the next node is of: in a loop the line begins anew with the operation it began with.

        One call may make many nodes, all at its stack; of a module each call is one.
        """
        other = self._of(node)
        if other.stack != run.stack:
            return run
        if not other.operation:
            return run if run.operation or not self._may_be_made_here(other) else other
        if not run.operation:
            return other._replace(first=run.first or node)
        return other if other.scope != run.scope or other.op == run.op else run

    def _may_be_made_here(self, run: _Run) -> bool:
        return run.first > 0 and self._timeline.info(run.first).created.kind != "parameter"
