"""What the graph looked like at any moment of a log. It has no position of its own: that belongs to the viewer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from math import inf
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from gviz import events as e
from gviz.display import Played
from gviz.trace.codec import KIND_NUMBERS, subject
from gviz.trace.index.columns import Index, nodes_of_keys
from gviz.trace.index.kept import restored
from gviz.trace.index.node_state import NodeStates
from gviz.trace.index.references import References
from gviz.trace.log import Columns, Dropped, EventLog, expect
from gviz.trace.moment import Moment
from gviz.trace.roster import Roster
from gviz.trace.state import Iteration, NodeInfo
from gviz.trace.weakly import weakly
from gviz.values import Array, Value

_KEPT_ANSWERS = 1 << 15
_KEPT_MOMENTS = 64

A = TypeVar("A")


class Timeline(Roster, Played):
    """Answers about every moment ``0 <= n <= len`` of a log (0: before anything), by search; cheap in any order.

    The log may grow: `refresh` takes in what was added. An answer about the past never changes by that, except that a
    name may come later than its node, and that an optimizer makes its state before it is known that it steps.

    A long trace whose program was killed has no index in its file, and making one takes seconds. A viewer gives
    `seconds` to have the beginning at once, and calls `refresh` until `behind` is 0, as it does for a trace that grows.
    """

    def __init__(self, log: EventLog, *, seconds: float = inf) -> None:
        self._log = log
        kept = log.index()
        index = restored(kept) if kept is not None else None
        self._index = index if index is not None and index.count == len(log) else Index()
        self._events = References(log, self._index)
        self._states = NodeStates(log, self._index, self._events)
        self._answers: dict[tuple[Callable[..., object], int], Any] = {}
        self._moments = lru_cache(_KEPT_MOMENTS)(weakly(self._at))
        self._growing = False
        self._searched, self._first_bad = 0, 0
        if self._index.first_bad is not None:
            self._searched, self._first_bad = self._index.count, self._index.first_bad
        self.refresh(seconds)

    @property
    def behind(self) -> int:
        """How many events of the log are still to be taken in."""
        return len(self._log) - self._index.count

    @property
    def growing(self) -> bool:
        """Whether the program still runs: what its last statement makes is not named before it is over."""
        return self._growing

    @growing.setter
    def growing(self, growing: bool) -> None:
        self._growing = growing
        self._answers.clear()
        for name in ("_names", "open_from"):
            self.__dict__.pop(name, None)

    def refresh(self, seconds: float = inf) -> bool:
        """Take in what was added to the log, for about so long at most; whether there was anything."""
        before = self._index.count
        if self._log.refresh() == before:
            return False
        self._index.extend(self._log, until=monotonic() + seconds)
        self._states.grow()
        self._answers.clear()
        self._moments.cache_clear()
        for name in [name for name in self.__dict__ if isinstance(getattr(type(self), name, None), cached_property)]:
            del self.__dict__[name]
        return True

    @property
    def framework(self) -> str:
        """Whose operations were recorded: ``gviz.engine``, ``torch``."""
        return self._log.framework

    @cached_property
    def dropped(self) -> Dropped:
        """What was recorded before the first event and has been dropped, because only the last part was to be kept."""
        return self._log.dropped

    def event(self, n: int) -> e.Event:
        """Event number `n`, from 1."""
        return self._events.event(n)

    def columns(self, start: int, stop: int) -> Columns:
        """What the events ``start <= n < stop`` concern, as columns."""
        return self._log.columns(start, stop)

    def select(self, kinds: Collection[type[e.Event]], start: int = 1, stop: int = 0) -> Iterator[tuple[int, e.Event]]:
        """The events ``start <= n < stop`` (0: to the end) of these classes, in order; much cheaper than one by one.

        What they refer to is not checked: a node they speak of may not exist in a damaged trace.
        """
        stop = min(stop or len(self) + 1, len(self) + 1)
        return self._log.select(start, stop, frozenset(KIND_NUMBERS[kind] for kind in kinds))

    def freed(self, n: int) -> frozenset[int]:
        """The nodes that nothing referred to any more at moment `n`."""
        return frozenset(self._index.lists["freed"].keys_between(1, n + 1).tolist())

    def at(self, n: int) -> Moment:
        """The moment right after event `n`, ``0 <= n <= len``."""
        return self._moments(n)

    def _at(self, n: int) -> Moment:
        event = self.event(n) if n else None
        _, pass_nr, step, scope, _ = self._context_at(n)
        failure = self._index.lists["kind"].last(KIND_NUMBERS[e.Failed], n)
        return Moment(
            n=n,
            event=event,
            phase=self.phase_at(n),
            node=self._concerned(n, event),
            pass_nr=pass_nr,
            step=step,
            scope=self._scope_name(scope),
            failed=expect(self._events, failure, e.Failed) if failure else None,
            _running=self._running(n, pass_nr),
            _states=self._states,
        )

    def _concerned(self, n: int, event: e.Event | None) -> int:
        """The node of an event; of the end of a pass the one whose rule raised the error that ended it."""
        if isinstance(event, e.BackwardFinished):
            return self._context_at(n - 1)[2] if event.error else 0
        return subject(event)[0] if event is not None else 0

    def info(self, node: int) -> NodeInfo:
        """What never changes about a node; GvizError if the log does not know it."""
        return self.once(Timeline._info, node)

    def once(self, question: Callable[[Timeline, int], A], about: int) -> A:
        """The answer to a question about a node or an event, the same at any moment: worked out once for this log."""
        key = question, about
        if key not in self._answers:
            if len(self._answers) >= _KEPT_ANSWERS:
                self._answers.clear()
            self._answers[key] = question(self, about)
        answer: A = self._answers[key]
        return answer

    def held(self, node: int, output_nr: int, n: int) -> Value | None:
        """What an output's memory holds at moment `n`, None if it is not born; cheaper than its whole state."""
        born = self.born(node)
        return self._states.held(node, output_nr, born, n) if 0 < born <= n else None

    def _info(self, node: int) -> NodeInfo:
        created = self._created(node)
        born = self.born(node)
        return NodeInfo(
            node=node,
            born=born,
            created=created,
            op=self.op(created.op),
            name=self._names.of(node),
            frames=self.stack(created.stack),
            scope=self._scope_name(created.scope),
            iteration=self.iteration_at(born).index,
        )

    def events_of(self, node: int) -> Sequence[int]:
        """The events that concern a node, writes to the memory it lives in included."""
        return self.once(Timeline._events_of, node)

    def _events_of(self, node: int) -> Sequence[int]:
        own = self._index.lists["node"].of_key(node).tolist()
        born = self.born(node)
        outputs = expect(self._log, born, e.NodeCreated).outputs if born else ()
        written = self._index.lists["written"]
        writes = (written.between(storage, born, len(self) + 1) for storage in {out.storage for out in outputs} - {0})
        return sorted(set(own).union(*writes))

    def nodes_of(self, iteration: Iteration) -> tuple[int, ...]:
        """The nodes made in an iteration, and the older ones it uses or sends gradients to, in order of creation."""
        start, end = iteration.start, iteration.end
        edge_seqs, _, targets, _, _ = self._index.tables["edges"]
        low, high = edge_seqs.searchsorted((start, end + 1))
        lists = self._index.lists
        used = [lists[name].keys_between(start, end + 1) for name in ("created", "progress")]
        reached = nodes_of_keys(lists["arrived"].keys_between(start, end + 1))
        nodes = np.unique(np.concatenate((targets[low:high], reached, *used)))
        created = self._index.lists["created"].whole()
        rows = created.keys.searchsorted(nodes)
        known = rows < len(created.keys)
        nodes, rows = nodes[known], rows[known]
        births = created.seqs[created.starts[rows]]
        there = (created.keys[rows] == nodes) & (births <= end)
        return tuple(nodes[there][np.argsort(births[there], kind="stable")].tolist())

    def pass_start(self, pass_nr: int) -> int:
        """The event with which a backward pass began, 0 if the log does not say."""
        return self._index.lists["pass_started"].last(pass_nr, len(self))

    def array(self, value: Value) -> Array | None:
        """All elements of a value, or None if they were not stored."""
        return self._log.array(value)
