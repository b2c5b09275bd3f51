"""The moments at which a debugger stops: breakpoints, errors, the first nan. They are the same in both directions.

A stop at a module matches where a call of the module begins: in the program, and again in each backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

import numpy as np

from gviz import events as e
from gviz.events import Event
from gviz.query_syntax.place import Place
from gviz.query_syntax.stop_condition import CALLED, Stop
from gviz.system.cooperative_work import WorkProgress
from gviz.trace.codec import KIND_NUMBERS, values
from gviz.trace.condition_environment import Absent, ConditionEnvironment
from gviz.trace.event_log import Columns
from gviz.trace.node_table import LEAF
from gviz.trace.place_matches import MatchingNodes, PlaceMatcher
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, text_of
from gviz.values.value import Array

STRETCH = 4096
"""The number of events searched at once; the moments found in them are cached."""

DECIDED_BY_CONTENT = frozenset(("forward", "view", "nan", "inf"))
"""The ``on EVENT`` words for which the kind of an event is not sufficient."""

_WORTH_ALL = 0.1
"""Above this share of wanted events, reading a stretch in sequence is cheaper than picking single events."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A moment at which a stop matches. `note` is what was found, or why a condition could not be evaluated."""

    n: int
    note: str = ""


def stretches(timeline: Timeline, n: int, *, backward: bool = False) -> Iterator[range]:
    """Yield the moments of a timeline in stretches of `STRETCH`, from that of moment `n` to the end (or the start)."""
    here = n // STRETCH
    for at in range(here, -1, -1) if backward else range(here, len(timeline) // STRETCH + 1):
        yield range(at * STRETCH, min((at + 1) * STRETCH, len(timeline) + 1))


class Hits:
    """The moments at which one stop fits, searched stretch by stretch on demand."""

    def __init__(self, timeline: Timeline, stop: Stop) -> None:
        self._timeline = timeline
        self._stop = stop
        self._place, self._kinds, self._word = stop.at.place, stop.at.kinds, stop.event
        self._known: dict[int, tuple[int, list[Hit]]] = {}
        self._match_again()

    def _match_again(self) -> None:
        self._naming = self._timeline.nodes.last_naming
        once = self._stop.once_a_run
        self._matching = None if self._place is None else MatchingNodes(self._timeline, self._place, once_a_run=once)
        module = self._place if self._stop.once_a_call else None
        self._call_starts = None if module is None else CallStarts(self._timeline, module)

    def after(self, n: int) -> Iterator[Hit]:
        """Yield the hits after moment `n`, in order."""
        for stretch in stretches(self._timeline, n):
            yield from (hit for hit in self.in_stretch(stretch) if hit.n > n)

    def before(self, n: int) -> Iterator[Hit]:
        """Yield the hits before moment `n`, latest first."""
        for stretch in stretches(self._timeline, n, backward=True):
            yield from (hit for hit in reversed(self.in_stretch(stretch)) if hit.n < n)

    def undecided(self, n: float = inf) -> int:
        """Return the number of searched moments up to `n` at which missing data leaves the stop undecided."""
        return 0

    def missing(self) -> str:
        """Return what was not stored but is needed for the stop, in the words of `NotStored`; "" if nothing is missing.

        Decided at the first moment that could fit.
        """
        return ""

    def preparation(self) -> Iterator[WorkProgress]:
        """Yield the progress of a search that the stop needs before it can be evaluated. By default there is none."""
        return iter(())

    def unmatched_name(self) -> str:
        """Return the text of the stop's place if no node matches it; "" if one does or there is no place."""
        return "" if self._matching is None or self._place is None or self._matching.any() else self._place.text

    def can_hit(self) -> bool:
        """Return whether anything matches the stop's place. True if the stop has no place."""
        return not self.unmatched_name()

    def matches(self, node: int) -> bool:
        """Return whether the stop's place refers to this node, or to a module call that starts with it."""
        matches = self._matching is not None and node in self._matching
        return matches and (self._call_starts is None or self._call_starts.stops_at(node))

    def in_stretch(self, stretch: range) -> list[Hit]:
        """Return the hits in one of the `stretches`; cached."""
        if self._timeline.nodes.last_naming != self._naming:  # older nodes may have got their names
            self._forget_from(self._first_renamed())
            self._match_again()
        if not self._timeline.growing and not self.can_hit():
            return []
        searched, hits = self._known.get(stretch.start, (stretch.start, []))
        if searched < stretch.stop:
            hits = [*hits, *self._search(max(searched, 1), stretch.stop)]
            decided = min(stretch.stop, self._timeline.nodes.open_from or stretch.stop)
            self._known[stretch.start] = max(searched, decided), [hit for hit in hits if hit.n < decided]
        return hits

    def _first_renamed(self) -> int:
        """Return the event that created the oldest node with a name since the last search.

        Nothing before it has another name now. A program names the nodes of each iteration: without this, each search
        of a growing recording would begin at its start.
        """
        nodes = self._timeline.nodes
        events: Iterator[tuple[int, e.Named | e.Returned]] = self._timeline.select(
            (e.Named, e.Returned), self._naming + 1, nodes.last_naming + 1
        )
        return min((nodes.born(event.node) for _, event in events if event.node in nodes), default=0)

    def _forget_from(self, first: int) -> None:
        """Forget the hits from an event on."""
        self._known = {
            start: (min(searched, max(start, first)), [hit for hit in hits if hit.n < first])
            for start, (searched, hits) in self._known.items()
        }

    def _search(self, start: int, end: int) -> Iterator[Hit]:
        rows, nodes = self._candidates(start, end)
        if self._stop.condition is None and self._word not in DECIDED_BY_CONTENT:
            yield from (Hit(start + row) for row in rows)
            return
        for n, node, event in self._read(start, rows, nodes):
            if is_of(self._word, event) and (hit := self._tested(n, node, event)) is not None:
                yield hit

    def _candidates(self, start: int, end: int) -> tuple[list[int], list[int]]:
        """Return the rows of a stretch whose events may fit the stop, and their nodes, computed from columns only."""
        columns = self._timeline.columns(start, end)
        mask = np.isin(columns.kind, [KIND_NUMBERS[kind] for kind in self._kinds])
        if self._word == "error":  # a pass may end without an error, or with one that a later failure reports
            mask &= np.isin(np.arange(start, end), self._timeline.errors)
        if self._matching is not None:
            mask &= self._of_matching_nodes(self._matching, columns, mask, start)
        if self._call_starts is not None:
            mask = self._call_starts.rows(columns, mask, start)
        rows = np.flatnonzero(mask)
        return rows.tolist(), columns.node[rows].tolist()

    def _of_matching_nodes(self, matching: MatchingNodes, columns: Columns, mask: Array, start: int) -> Array:
        """Return which wanted events are of matching nodes, or write to the memory of one."""
        nodes = np.unique(columns.node[mask]).tolist()
        fitting = np.isin(columns.node, [node for node in nodes if node in matching])
        begun = np.isin(columns.kind, [KIND_NUMBERS[kind] for kind in CALLED])
        unknown = begun | (~fitting & (columns.kind == KIND_NUMBERS[e.StorageWritten]))
        for row in np.flatnonzero(mask & unknown).tolist():
            event = self._timeline.event(start + row)
            if isinstance(event, e.StorageWritten):
                fitting[row] = matching.births_by_storage().get(event.storage, inf) < start + row
            elif isinstance(event, CALLED):
                fitting[row] = matching.is_started_at(event)
        return fitting

    def _read(self, start: int, rows: list[int], nodes: list[int]) -> Iterator[tuple[int, int, Event]]:
        """Yield the events of some rows of a stretch. Reads all events of these kinds if most of them are wanted."""
        if not rows:
            return
        if len(rows) < (rows[-1] - rows[0]) * _WORTH_ALL:
            yield from (
                (start + row, node, self._timeline.event(start + row)) for row, node in zip(rows, nodes, strict=True)
            )
            return
        by_number = dict(zip(rows, nodes, strict=True))
        for n, event in self._timeline.select(self._kinds, start + rows[0], start + rows[-1] + 1):
            if n - start in by_number:
                yield n, by_number[n - start], event

    def _tested(self, n: int, node: int, event: Event) -> Hit | None:
        if self._stop.condition is None:
            return Hit(n)
        try:
            environment = ConditionEnvironment(self._timeline, n, node, event, self._output_nr(node))
            return Hit(n) if self._stop.condition.holds(environment) else None
        except Absent:
            return None
        except Exception as error:  # the user's expression may raise anything; the message is shown at the hit
            return Hit(n, f"{self._stop.condition.text}: {clipped(text_of(error), 120)}")

    def _output_nr(self, node: int) -> int:
        """Return which output of a matching node the stop's place refers to."""
        if self._place is None or node not in self._timeline.nodes.parts:
            return 0
        return self._timeline.info(node).output_called(self._place.word)


def is_of(word: str, event: Event) -> bool:
    """Return whether an event of one of the kinds `EVENTS[word]` matches the word. An empty word matches all."""
    match word:
        case "forward":
            return isinstance(event, e.NodeCreated) and event.kind == "op"
        case "view":
            return isinstance(event, e.NodeCreated) and any(output.view_of for output in event.outputs)
        case "nan" | "inf":
            return any(getattr(stats, word) for value in values(event) if (stats := value.statistics()) is not None)
        case "error":
            return not isinstance(event, e.BackwardFinished) or bool(event.error)
    return True


_NODE_CREATED, _STEP_STARTED = KIND_NUMBERS[e.NodeCreated], KIND_NUMBERS[e.StepStarted]
_CHUNK = 4096


@dataclass(slots=True)
class _ReachedCalls:
    """The calls that a pass has reached before the event `until`, and the steps at which it reached them."""

    until: int
    calls: set[int] = field(default_factory=set)
    steps: set[int] = field(default_factory=set)


class CallStarts:
    """The moments at which module calls that match a place begin. The recording may still grow.

    Only outermost calls count: a matching call inside another one belongs to it.
    """

    def __init__(self, timeline: Timeline, place: Place) -> None:
        self._timeline = timeline
        self._matcher = PlaceMatcher(timeline, place)
        self._calls: dict[tuple[int, int], int] = {}
        self._searched = 0  # the number of nodes checked
        self._scopes: set[int] = set()  # the scopes that created one of these nodes
        self._entered: set[int] = set()  # the outermost matching calls around these scopes
        self._first: set[int] = set()  # the first operation of each of these calls
        self._passes: dict[int, _ReachedCalls] = {}

    def stops_at(self, node: int) -> bool:
        """Return whether a stop at the place stops at this node: it matches itself, or a call begins with it."""
        return self._matcher(node) and (node in self._firsts() or self._matcher.names(node))

    def rows(self, columns: Columns, fitting: Array, start: int) -> Array:
        """Return which fitting events begin a call, or are of a node that the place refers to directly.

        `start` is the event of the first row.
        """
        firsts, stopping = self._firsts(), fitting.copy()
        for row in np.flatnonzero(fitting).tolist():
            node, kind = int(columns.node[row]), columns.kind[row]
            begins = kind == _NODE_CREATED and node in firsts
            if kind == _STEP_STARTED:
                begins = start + row in self._steps(int(columns.pass_nr[row]), start + len(columns.kind))
            stopping[row] = begins or self._matcher.names(node)
        return stopping

    def _firsts(self) -> set[int]:
        """Return the first operation of each matching call. It may be in another call inside that call."""
        nodes = self._timeline.nodes
        if self._searched == len(nodes):
            return self._first
        origins, start = nodes.origins, self._searched
        in_module_call = origins.scope[start:] > 0
        leaves = [number for number in np.unique(origins.op[start:]).tolist() if nodes.op_name(number) == LEAF]
        places = np.flatnonzero(in_module_call & ~np.isin(origins.op[start:], leaves)) + start
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
        """Return the outermost matching call around what was created at a stack; 0 if there is none."""
        if (scope, stack) not in self._calls:
            outermost, around = 0, scope
            while around and (call := self._timeline.contexts.call(around)) is not None:
                outermost = around if self._matcher.means_module(call.name, stack) else outermost
                around = call.parent
            self._calls[scope, stack] = outermost
        return self._calls[scope, stack]

    def _steps(self, pass_nr: int, until: int) -> set[int]:
        """Return the events before `until` at which a pass reaches the calls."""
        known = self._passes.setdefault(pass_nr, _ReachedCalls(self._timeline.pass_start(pass_nr)))
        while known.until < until:
            end = min(known.until + _CHUNK, until)
            columns = self._timeline.columns(known.until, end)
            rows = np.flatnonzero((columns.kind == _STEP_STARTED) & (columns.pass_nr == pass_nr))
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
