"""The state of the graph at any moment of a log. The current position belongs to the viewer, not to the timeline."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar, cast

from gviz import events as e
from gviz.rich_representation import Played
from gviz.source.call_stack import Frame
from gviz.system.cooperative_work import LongWork, WorkProgress
from gviz.trace.codec import KIND_NUMBERS, subject
from gviz.trace.error_index import ErrorIndex
from gviz.trace.event_contexts import Contexts
from gviz.trace.event_log import Columns, E, EventLog, MissingParts, birth, expect
from gviz.trace.graph_state import UNKNOWN_OP, Iteration, NodeInfo, NodeState, Phase, PhaseKind
from gviz.trace.index.node_state import NodeStates
from gviz.trace.index.reference_checks import References
from gviz.trace.index.search_index import Index, output_key, restored
from gviz.trace.iteration_and_phase_spans import Spans
from gviz.trace.node_table import Nodes
from gviz.trace.stack_tree import Stacks
from gviz.trace.weak_cache import weak_method
from gviz.trace.whole_iterations import RecordedIterations, with_recorded_numbers, with_run_numbers
from gviz.values.value import Array, Value

_KEPT_ANSWERS = 1 << 15
_KEPT_MOMENTS = 64

A = TypeVar("A")
B = TypeVar("B", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Moment:
    """The state right after event `n` (0: before all events).

    `node` is the node of the event (at the end of a failed pass, the node that failed). `pass_nr` is the running pass,
    `step` the node whose backward rule runs in it, and `scope` the path of the current module call; 0 and empty where
    there is none. They refer to the thread of the event, which is `thread`, 0 if there is only one. `failed` is the
    failure of the program if it has happened by then.
    """

    n: int
    event: e.Event | None
    phase: Phase | None
    node: int
    pass_nr: int
    step: int
    scope: str
    thread: int
    failed: e.Failed | None
    _running: tuple[int, ...] = field(repr=False)
    _states: NodeStates = field(repr=False, compare=False)
    _known: dict[int, NodeState | None] = field(repr=False, compare=False, default_factory=dict)

    @property
    def actor(self) -> int:
        """The acting node: the one that sends a gradient, otherwise the event's, otherwise the one whose rule runs."""
        if isinstance(self.event, e.GradFlowed):
            return self.event.source
        return self.node or self.step

    def state(self, node: int) -> NodeState | None:
        """Return the state of a node, or None if it is not created yet."""
        if node not in self._known:
            self.states([node])
        return self._known[node]

    def states(self, nodes: Sequence[int]) -> list[NodeState | None]:
        """Return the states of several nodes; much cheaper than one by one."""
        missing = [node for node in nodes if node not in self._known]
        if missing:
            self._known.update(zip(missing, self._states.many(missing, self.n, self._running), strict=True))
        return [self._known[node] for node in nodes]

    def follow(self, before: Moment, changed: Collection[int]) -> None:
        """Take over the known states of the previous moment, except of nodes that this event may have `changed`.

        Stepping from event to event then recomputes only the states that may have changed.
        """
        self._known.update(before._known)
        for node in changed:
            self._known.pop(node, None)


_READ_SECONDS = 0.25
"""The duration of a step of `read_timeline`."""

_OF_ALL = ("recorded_iterations", "_numbered", "_by_number", "dropped")
"""Cached facts about the whole recording, which can change without a new event."""


class Timeline(Played):
    """Answers questions about every moment ``0 <= n <= len`` of a log (0: before all events), cheap in any order.

    The log may grow: `refresh` adds the new events. Answers about the past do not change, with three exceptions:

    * a name can come later than its node
    * an iteration can turn out to start earlier (with its prepared data) or later (after validation)
    * iterations of a program that only evaluated disappear if it starts to train

    The file of a killed program has no index, and building one for a long trace takes seconds. A viewer passes
    `seconds` to get the beginning at once, then calls `refresh` until `unprocessed` is 0, as for a trace that grows.
    `read_timeline` does so.

    `error_index` finds the first nan or infinity, which may take long.
    """

    def __init__(self, log: EventLog, *, seconds: float = inf) -> None:
        self._log = log
        stored = log.index()
        index = restored(stored) if stored is not None else None
        self._index = index if index is not None and index.count == len(log) else Index(log.dropped.patterns)
        self._events = References(log, self._index)
        self._states = NodeStates(log, self._index, self._events)
        self.error_index = ErrorIndex(log, self._index, self._events)
        self._spans = Spans()
        self._answers: dict[tuple[Callable[..., object], Hashable], Any] = {}
        self._moments = lru_cache(_KEPT_MOMENTS)(weak_method(self._at))
        self._growing = False
        self._spans.grow(self._index, log.dropped)
        self.refresh(seconds)

    def __len__(self) -> int:
        return self._index.count

    @property
    def path(self) -> Path | None:
        """The file of the trace; None for a recording in memory."""
        return getattr(self._log, "path", None)

    @property
    def unprocessed(self) -> int:
        """The number of events of the log that are not included yet."""
        return len(self._log) - self._index.count

    @property
    def growing(self) -> bool:
        """Whether the program still runs; the nodes of its last statement get names when the statement has ended."""
        return self._growing

    @growing.setter
    def growing(self, growing: bool) -> None:
        self._growing = growing
        self._answers.clear()
        self.__dict__.pop("nodes", None)

    def refresh(self, seconds: float = inf) -> bool:
        """Include events added to the log, for up to about `seconds`. Returns whether there were any."""
        for name in _OF_ALL:
            self.__dict__.pop(name, None)
        before = self._index.count
        if self._log.refresh() == before:
            return False
        self._index.extend(self._log, until=monotonic() + seconds)
        self._states.grow()
        self._spans.grow(self._index, self._log.dropped)
        self._answers.clear()
        self._moments.cache_clear()
        for name in [name for name in self.__dict__ if isinstance(getattr(type(self), name, None), cached_property)]:
            del self.__dict__[name]
        return True

    @property
    def framework(self) -> str:
        """The framework of the recorded operations: ``gviz.engine`` or ``torch``."""
        return self._log.framework

    @cached_property
    def dropped(self) -> MissingParts:
        """What was recorded before the first event and dropped, because only the last part is kept."""
        return self._log.dropped

    @property
    def cut_off(self) -> bool:
        """Whether the recording ended before the program did, at the nan or infinity at which it was set to stop."""
        return self._log.cut_off

    @property
    def finished(self) -> bool:
        """Whether the recording was closed. If not, it is still running or its program was killed."""
        return self._log.finished

    @cached_property
    def nodes(self) -> Nodes:
        """All nodes, and what never changes about them."""
        return Nodes(self._log, self._index, self._events, self.contexts, growing=self._growing)

    @cached_property
    def contexts(self) -> Contexts:
        """The pass, backward rule and module call at every moment."""
        return Contexts(self._log, self._index)

    def event(self, n: int) -> e.Event:
        """Return event number `n`, counted from 1."""
        return self._events.event(n)

    def columns(self, start: int, stop: int) -> Columns:
        """Return the subjects of the events ``start <= n < stop``, as columns."""
        return self._log.columns(start, stop)

    def select(self, kinds: Collection[type[E]], start: int = 1, stop: int = 0) -> Iterator[tuple[int, E]]:
        """Yield the events ``start <= n < stop`` (0: to the end) of these classes, in order; cheaper than one
        by one.
        """
        stop = min(stop or len(self) + 1, len(self) + 1)
        selected = self._events.select(start, stop, frozenset(KIND_NUMBERS[kind] for kind in kinds))
        return cast("Iterator[tuple[int, E]]", selected)

    def op(self, number: int) -> e.OpSeen:
        """Return an operation by its number."""
        return self._log.ops.get(number, UNKNOWN_OP)

    @property
    def sources(self) -> Mapping[str, str | None]:
        """The text of each source file that created something, by path."""
        return self._log.sources

    def source(self, path: str) -> str | None:
        """Return the text of a source file as it was when the program ran, None if it was not kept."""
        return self._log.sources.get(path)

    @property
    def stacks(self) -> Stacks:
        """The call stacks of everything that was created or started, by number."""
        return self._log.stacks

    def stack(self, number: int) -> tuple[Frame, ...]:
        """Return a call stack of the program, innermost frame first."""
        return self._log.stacks.get(number, ())

    def at(self, n: int) -> Moment:
        """Return the moment right after event `n`, ``0 <= n <= len``."""
        return self._moments(n)

    def _at(self, n: int) -> Moment:
        event = self.event(n) if n else None
        pass_nr, step, scope = self.contexts.at(n)
        failure = self._index.lists["kind"].last(KIND_NUMBERS[e.Failed], n)
        return Moment(
            n=n,
            event=event,
            phase=self.phase_at(n),
            node=self._concerned(n, event),
            pass_nr=pass_nr,
            step=step,
            scope=self.contexts.module(scope),
            thread=self.contexts.thread_at(n) if len(self.contexts.threads) > 1 else 0,
            failed=expect(self._events, failure, e.Failed) if failure else None,
            _running=self.contexts.running(n),
            _states=self._states,
        )

    def _concerned(self, n: int, event: e.Event | None) -> int:
        """Return the node of an event; at the end of a failed pass, the node whose backward rule raised the error."""
        if isinstance(event, e.BackwardFinished):
            return self.contexts.before(n)[1] if event.error else 0
        return subject(event)[0] if event is not None else 0

    def info(self, node: int) -> NodeInfo:
        """Return what never changes about a node. Raises GvizError if the log does not have it."""
        return self.once(Timeline._info, node)

    def once(self, question: Callable[[Timeline, B], A], about: B) -> A:
        """Return the cached answer to a question about a node, an event, or a group of nodes, at no moment."""
        key = question, about
        if key not in self._answers:
            if len(self._answers) >= _KEPT_ANSWERS:
                self._answers.clear()
            self._answers[key] = question(self, about)
        answer: A = self._answers[key]
        return answer

    def memory_value(self, node: int, output_nr: int, n: int) -> Value | None:
        """Return what an output's memory holds at moment `n`, None if not created yet; cheaper than its whole state."""
        born = self.nodes.born(node)
        return self._states.memory_value(output_nr, born, n) if 0 < born <= n else None

    def assigned_data(self, node: int, output_nr: int, n: int) -> Value | None:
        """Return what last replaced an output's data (or its form) by moment `n`; None if nothing did."""
        seq = self._index.lists["data"].last(output_key(node, output_nr), n)
        return expect(self._events, seq, e.DataSet).value if seq else None

    def _info(self, node: int) -> NodeInfo:
        created = self.nodes.created(node)
        born = self.nodes.born(node)
        name, outputs, also = self.nodes.all_names(node)
        return NodeInfo(
            node=node,
            born=born,
            created=created,
            op=self.op(created.op),
            name=name,
            frames=self.stack(created.stack),
            scope=self.contexts.module(created.scope),
            iteration=self.iteration_at(born).index,
            variables=outputs,
            also=also,
        )

    def events_of(self, node: int) -> Sequence[int]:
        """Return the events of a node, including writes to its memory."""
        return self.once(Timeline._events_of, node)

    def _events_of(self, node: int) -> Sequence[int]:
        own = self._index.lists["node"].of_key(node).tolist()
        born = self.nodes.born(node)
        outputs = birth(self._log, born, node).outputs if born else ()
        written = self._index.lists["written"]
        writes = (written.between(storage, born, len(self) + 1) for storage in {out.storage for out in outputs} - {0})
        return sorted(set(own).union(*writes))

    def pass_start(self, pass_nr: int) -> int:
        """Return the event at which a backward pass started, 0 if the log does not have it."""
        return self._index.lists["pass_started"].last(pass_nr, len(self))

    def array(self, value: Value) -> Array | None:
        """Return all elements of a value, or None if they were not stored."""
        return self._log.array(value)

    @property
    def iterations(self) -> tuple[Iteration, ...]:
        """The iterations, in order; there is at least one.

        If only the last part of a run was kept, the replayed events before it belong to no iteration.
        """
        return self._numbered

    @cached_property
    def _numbered(self) -> tuple[Iteration, ...]:
        recorded = self._log.recorded_iterations
        iterations = self._spans.iterations
        return iterations if recorded is None else with_run_numbers(recorded, iterations, self.marks)

    @cached_property
    def recorded_iterations(self) -> RecordedIterations | None:
        """Which iterations of the run the recording has; None if it has all of them."""
        recorded = self._log.recorded_iterations
        return None if recorded is None else with_recorded_numbers(recorded, [one.number for one in self.iterations])

    @property
    def missing(self) -> str:
        """A description of what the recording does not have of the run; empty if nothing is missing."""
        recorded = self.recorded_iterations
        is_partial = recorded is not None and recorded.whole_ranges not in ((), ((1, recorded.iterations),))
        summary = f"{recorded.summary}; whole: {recorded.numbers}" if recorded is not None and is_partial else ""
        return "; ".join(filter(None, (summary, self.dropped.words)))

    @property
    def iteration_count(self) -> int:
        """The number of iterations of the run, as far as the recording knows."""
        return len(self.iterations) if self.recorded_iterations is None else self.recorded_iterations.iterations

    def iteration_of(self, node: int) -> Iteration:
        """Return the iteration that created a node."""
        return self.iterations[self.info(node).iteration]

    def iteration_numbered(self, number: int) -> Iteration | None:
        """Return the iteration with a number, from 1; None if the recording does not have it."""
        return self._by_number.get(number)

    @cached_property
    def _by_number(self) -> dict[int, Iteration]:
        return {one.number: one for one in reversed(self.iterations)}  # of several, the first

    def iteration_at(self, n: int) -> Iteration:
        """Return the iteration of moment `n` (the first one for moment 0)."""
        return self.iterations[self._spans.iteration_at(n).index]

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of all threads, sorted by start. A moment between two phases of its thread has none."""
        return self._spans.phases

    def phases_in(self, iteration: Iteration, *kinds: PhaseKind) -> list[Phase]:
        """Return the phases that begin in an iteration; of some kinds only, if any are given."""
        first = bisect_left(self.phases, iteration.start, key=lambda phase: phase.start)
        last = bisect_right(self.phases, iteration.end, key=lambda phase: phase.start)
        return [phase for phase in self.phases[first:last] if not kinds or phase.kind in kinds]

    def phase_at(self, n: int) -> Phase | None:
        """Return the phase at moment `n` in its thread, None if there is none."""
        return self._spans.phase_at(n, self.contexts.thread_at(n))

    @cached_property
    def marks(self) -> tuple[tuple[int, str], ...]:
        """The moments that the program has named, with their names."""
        return tuple((seq, event.name) for seq, event in self._all(e.Marked, len(self)))

    def pass_ends(self, iteration: Iteration) -> list[int]:
        """Return the moments of an iteration at which a backward pass ends, including nested passes."""
        finished = self._index.lists["kind"]
        return finished.between(KIND_NUMBERS[e.BackwardFinished], iteration.start, iteration.end + 1)

    @cached_property
    def failures(self) -> tuple[int, ...]:
        """The events that report a failure of the program."""
        return self.error_index.failures()

    @cached_property
    def errors(self) -> tuple[int, ...]:
        """The events that report an error: `failures`, and the ends of passes whose error the program caught."""
        return self.error_index.errors()

    def printed(self, n: int) -> list[tuple[int, e.Printed]]:
        """Return the output of the program up to moment `n`, with event numbers."""
        return self._all(e.Printed, n)

    def _all(self, kind: type[E], n: int) -> list[tuple[int, E]]:
        seqs = self._index.lists["kind"].between(KIND_NUMBERS[kind], 1, n + 1)
        self._log.prefetch(seqs)
        return [(seq, expect(self._events, seq, kind)) for seq in seqs]


def read_timeline(log: EventLog) -> LongWork[Timeline]:
    """Return the timeline of a log. Yields the progress if the log has no index, as after `kill -9`."""
    total = log.refresh()
    timeline = Timeline(log, seconds=_READ_SECONDS)
    while (count := len(timeline)) < total:
        yield WorkProgress("reading events:", count, total)
        timeline.refresh(_READ_SECONDS)
    return timeline
