"""The tables of an index: named columns of integers, sorted by time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from operator import is_
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from gviz.values.value import Array

T = TypeVar("T", bound=NamedTuple)


class ContextTable(NamedTuple):
    """The context of a thread from event `seq` on: pass, node of the running backward rule, module call, rule depth.

    `innermost` is the latest pass that began in any thread.
    """

    seq: Array
    pass_nr: Array
    step: Array
    scope: Array
    depth: Array
    thread: Array
    innermost: Array


class EdgeTable(NamedTuple):
    """The inputs of nodes: node `source`, created by event `seq`, uses an output of `target`.

    `carries` is 1 if a gradient can flow back over the edge.
    """

    seq: Array
    source: Array
    target: Array
    output_nr: Array
    carries: Array


class PhaseTable(NamedTuple):
    """The phases of all threads. `kind` is an index into `PHASE_KINDS`."""

    kind: Array
    start: Array
    end: Array
    pass_nr: Array
    thread: Array


class IterationTable(NamedTuple):
    """The events at which iterations start."""

    start: Array


class StepTable(NamedTuple):
    """The optimizer steps, see `trace.optimizer_steps`."""

    said: Array
    start: Array
    end: Array
    stack: Array


class OriginTable(NamedTuple):
    """How event `seq` created its node."""

    seq: Array
    op: Array
    stack: Array
    scope: Array
    gradient_of: Array


class SeveralTable(NamedTuple):
    """The number of outputs of the node that event `seq` created, if there is more than one."""

    seq: Array
    outputs: Array


class ThreadTable(NamedTuple):
    """The thread of the events from event `seq` on."""

    seq: Array
    thread: Array


class SeqTable(NamedTuple):
    """A list of events."""

    seq: Array


def empty(kind: type[T]) -> T:
    """Return a table without entries."""
    return kind._make(np.empty(0, np.int64) for _ in kind._fields)


def table_of(kind: type[T], entries: Iterable[tuple[int, ...]]) -> T:
    """Return a table of these entries."""
    columns = np.array(list(entries), np.int64).reshape(-1, len(kind._fields)).T
    return kind._make(np.ascontiguousarray(columns))


def joined(table: T, more: T) -> T:
    """Return a table with the entries of another appended."""
    if not len(more[0]):
        return table  # the usual case when a program runs event by event
    return table._make(np.concatenate(pair) for pair in zip(table, more, strict=True))


def distinct(numbers: Array) -> Array:
    """Return the different numbers in a column, sorted.

    `np.unique` does the same, but imports `numpy.ma`: that took 9 of the 12 ms in which a new process opened a trace.
    """
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), bool)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def picked(table: T, which: Array) -> T:
    """Return some entries of a table, selected by a mask or by indices."""
    return table._make(column[which] for column in table)


def entries(table: NamedTuple) -> Iterator[tuple[int, ...]]:
    """Yield the entries of a table."""
    return zip(*(column.tolist() for column in table), strict=True)


class GrowingList(Generic[T]):
    """A table whose list of entries is rebuilt on every request but changes only near its end."""

    def __init__(self, kind: type[T]) -> None:
        self._table = empty(kind)
        self._entries: list[tuple[int, ...]] = []

    def of(self, entries: Sequence[tuple[int, ...]]) -> T:
        """Return the table of these entries."""
        same = list(map(is_, self._entries, entries))
        known = same.index(False) if False in same else len(same)
        self._entries[known:] = new = entries[known:]
        old = self._table._make(column[:known] for column in self._table)
        self._table = joined(old, table_of(type(self._table), new))
        return self._table


@dataclass(slots=True)
class Tables:
    """All tables of an index, with the same names as in a file.

    A stray is a contribution of a pass that is not the innermost (several threads run backward at once). A failed pass
    is the end event of a pass that failed.
    """

    context: ContextTable = field(default_factory=lambda: empty(ContextTable))
    edges: EdgeTable = field(default_factory=lambda: empty(EdgeTable))
    phases: PhaseTable = field(default_factory=lambda: empty(PhaseTable))
    iterations: IterationTable = field(default_factory=lambda: empty(IterationTable))
    steps: StepTable = field(default_factory=lambda: empty(StepTable))
    origins: OriginTable = field(default_factory=lambda: empty(OriginTable))
    several: SeveralTable = field(default_factory=lambda: empty(SeveralTable))
    threads: ThreadTable = field(default_factory=lambda: empty(ThreadTable))
    strays: SeqTable = field(default_factory=lambda: empty(SeqTable))
    failed_passes: SeqTable = field(default_factory=lambda: empty(SeqTable))

    def named(self) -> Iterator[tuple[str, NamedTuple]]:
        """Yield every table with its name."""
        return ((one.name, getattr(self, one.name)) for one in fields(self))
