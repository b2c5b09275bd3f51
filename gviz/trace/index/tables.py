"""The tables of an index: whole numbers in named columns, a place in them an entry, in order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from operator import is_
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from gviz.values.value import Array

T = TypeVar("T", bound=NamedTuple)


class ContextTable(NamedTuple):
    """In what a thread is from event `seq` on: pass, node whose rule runs, module call, rules within one another.

    `innermost` is the pass begun last of all, in any thread.
    """

    seq: Array
    pass_nr: Array
    step: Array
    scope: Array
    depth: Array
    thread: Array
    innermost: Array


class EdgeTable(NamedTuple):
    """The inputs of nodes: node `source`, made by event `seq`, uses an output of `target`; a gradient may go back."""

    seq: Array
    source: Array
    target: Array
    output_nr: Array
    carries: Array


class PhaseTable(NamedTuple):
    """The phases of all threads; `kind` counts in `PHASE_KINDS`."""

    kind: Array
    start: Array
    end: Array
    pass_nr: Array
    thread: Array


class IterationTable(NamedTuple):
    """The events with which iterations begin."""

    start: Array


class StepTable(NamedTuple):
    """The steps of optimizers, as `trace.optimizer_steps` tells them."""

    said: Array
    start: Array
    end: Array
    stack: Array


class OriginTable(NamedTuple):
    """How the node was made that event `seq` made."""

    seq: Array
    op: Array
    stack: Array
    scope: Array
    gradient_of: Array


class SeveralTable(NamedTuple):
    """How many outputs the node has that event `seq` made, where it has more than one."""

    seq: Array
    outputs: Array


class ThreadTable(NamedTuple):
    """The thread whose the events are from event `seq` on."""

    seq: Array
    thread: Array


class SeqTable(NamedTuple):
    """Events alone."""

    seq: Array


def empty(kind: type[T]) -> T:
    """A table without entries."""
    return kind._make(np.empty(0, np.int64) for _ in kind._fields)


def table_of(kind: type[T], entries: Iterable[tuple[int, ...]]) -> T:
    """A table of these entries."""
    columns = np.array(list(entries), np.int64).reshape(-1, len(kind._fields)).T
    return kind._make(np.ascontiguousarray(columns))


def joined(table: T, more: T) -> T:
    """A table, and the entries of another behind it."""
    if not len(more[0]):
        return table  # as it mostly is where a program goes on event by event
    return table._make(np.concatenate(pair) for pair in zip(table, more, strict=True))


def picked(table: T, which: Array) -> T:
    """Some entries of a table, by a mask or their places."""
    return table._make(column[which] for column in table)


def entries(table: NamedTuple) -> Iterator[tuple[int, ...]]:
    """The entries of a table, one after the other."""
    return zip(*(column.tolist() for column in table), strict=True)


class Growing(Generic[T]):
    """A table of entries of which only few are others each time that it is asked for."""

    def __init__(self, kind: type[T]) -> None:
        self._table = empty(kind)
        self._entries: list[tuple[int, ...]] = []

    def of(self, entries: Sequence[tuple[int, ...]]) -> T:
        """The table of these entries."""
        same = list(map(is_, self._entries, entries))
        known = same.index(False) if False in same else len(same)
        self._entries[known:] = new = entries[known:]
        kept = self._table._make(column[:known] for column in self._table)
        self._table = joined(kept, table_of(type(self._table), new))
        return self._table


@dataclass(slots=True)
class Tables:
    """All tables of an index, under the names that they have in a file.

    A stray is a contribution of another pass than the innermost (several threads go back at once), a failed pass the
    end of one that an error ended.
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
        """Every table with its name."""
        return ((one.name, getattr(self, one.name)) for one in fields(self))
