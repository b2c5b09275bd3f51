"""The events with which calls of the modules that a place means begin: in the program, and in each backward pass."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gviz import events as e
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.log import Columns
from gviz.trace.meaning import Fitting
from gviz.trace.nodes import LEAF
from gviz.trace.timeline import Timeline
from gviz.values import Array
from gviz.where.place import Place

_MADE, _RUNS = KIND_NUMBERS[e.NodeCreated], KIND_NUMBERS[e.StepStarted]
_AT_ONCE = 4096


@dataclass(slots=True)
class _InPass:
    """The calls that a pass has come to before the event `until`, and the steps with which it did."""

    until: int
    calls: set[int] = field(default_factory=set)
    steps: set[int] = field(default_factory=set)


class Entering:
    """Where the outermost calls begin that a place means: what they call is a part of them. Grows with the timeline."""

    def __init__(self, timeline: Timeline, place: Place) -> None:
        self._timeline = timeline
        self._fitting = Fitting(timeline, place)
        self._calls: dict[tuple[int, int], int] = {}
        self._searched = 0  # so many nodes have been looked at
        self._scopes: set[int] = set()  # those that have made a node
        self._entered: set[int] = set()  # the outermost calls among them
        self._first: set[int] = set()  # the nodes with which these began
        self._passes: dict[int, _InPass] = {}

    def is_met_at(self, node: int) -> bool:
        """Whether a stop at the place is one at this node: it is meant itself, or a call begins with it."""
        return self._fitting(node) and (node in self._firsts() or self._fitting.names(node))

    def rows(self, columns: Columns, fitting: Array, start: int) -> Array:
        """Of the events from `start` on that are of fitting nodes: those of nodes meant themselves, and where calls
        begin."""
        firsts, kept = self._firsts(), fitting.copy()
        for row in np.flatnonzero(fitting).tolist():
            node, kind = int(columns.node[row]), columns.kind[row]
            begins = kind == _MADE and node in firsts
            if kind == _RUNS:
                begins = start + row in self._steps(int(columns.pass_nr[row]), start + len(columns.kind))
            kept[row] = begins or self._fitting.names(node)
        return kept

    def _firsts(self) -> set[int]:
        """The operations with which calls begin: a call makes the first of one of the calls within it, or its own."""
        nodes = self._timeline.nodes
        if self._searched == len(nodes):
            return self._first
        origins, start = nodes.origins, self._searched
        made_by_call = origins.scope[start:] > 0
        leaves = [number for number in np.unique(origins.op[start:]).tolist() if nodes.op_name(number) == LEAF]
        places = np.flatnonzero(made_by_call & ~np.isin(origins.op[start:], leaves)) + start
        scopes, at = np.unique(origins.scope[places], return_index=True)
        for place, scope in sorted(zip(places[at].tolist(), scopes.tolist(), strict=True)):
            call = 0 if scope in self._scopes else self._call(scope, origins.stack.item(place))
            if call and call not in self._entered:
                self._entered.add(call)
                self._first.add(nodes[place])
            self._scopes.add(scope)
        self._searched = len(nodes)
        return self._first

    def _call(self, scope: int, stack: int) -> int:
        """The outermost call that the place means around what was made at a stack; 0 if there is none."""
        if (scope, stack) not in self._calls:
            found, around = 0, scope
            while around and (call := self._timeline.contexts.call(around)) is not None:
                found = around if self._fitting.means_module(call.name, stack) else found
                around = call.parent
            self._calls[scope, stack] = found
        return self._calls[scope, stack]

    def _steps(self, pass_nr: int, until: int) -> set[int]:
        """The events before `until` with which a pass comes to the calls."""
        known = self._passes.setdefault(pass_nr, _InPass(self._timeline.pass_start(pass_nr)))
        while known.until < until:
            end = min(known.until + _AT_ONCE, until)
            columns = self._timeline.columns(known.until, end)
            rows = np.flatnonzero((columns.kind == _RUNS) & (columns.pass_nr == pass_nr))
            for row, node in zip(rows.tolist(), columns.node[rows].tolist(), strict=True):
                call = self._call_of(node)
                if call and call not in known.calls:
                    known.calls.add(call)
                    known.steps.add(known.until + row)
            known.until = end
        return known.steps

    def _call_of(self, node: int) -> int:
        nodes = self._timeline.nodes
        place = nodes.place_of(node)
        return self._call(nodes.origins.scope.item(place), nodes.origins.stack.item(place)) if place >= 0 else 0
