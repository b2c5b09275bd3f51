"""Who watches operations as they run: hooks of saved tensors, the recorder of a static graph.

Operations test `watchers` once; without any, that is the whole cost. Each thread has its own recorder.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Protocol, TypeAlias

from gviz.engine import modes
from gviz.engine.size import Size

Op: TypeAlias = Any
Tensor: TypeAlias = Any
"""An `op.Op` and a `tensor.Tensor`: both are built on this module, which hands them on and reads nothing of them."""

watchers = 0
"""How many there are, in all threads."""

_lock = Lock()


def add(number: int) -> None:
    """Add `number` to the count; it may be negative."""
    global watchers
    with _lock:
        watchers += number


def _unlock() -> None:
    """A forked child has only the thread that forked: the lock may have been held by another one."""
    global _lock
    _lock = Lock()


os.register_at_fork(after_in_child=_unlock)


class Recorder(Protocol):
    """A recorder of the operations of a thread, by which they can be run again."""

    def refs(self, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        """The tensors as inputs, asked for before an operation writes to any of them."""

    def ran(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], outputs: Sequence[Tensor]) -> None:
        """An operation made new tensors."""

    def wrote(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], target: Tensor) -> None:
        """An operation wrote its result into `target`, the first of its inputs."""

    def became(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], target: Tensor) -> None:
        """An operation made `target`, its input, another view of its memory."""

    def copied(self, tensor: Tensor, copy: Tensor) -> None:
        """What a tensor is before it is written was copied for its backward rule."""

    def born(self, tensor: Tensor) -> None:
        """A tensor was made, by whatever means."""

    def read(self, tensor: Tensor, how: str) -> None:
        """The program looks at a tensor's elements or at its shape: `how` is a key of the recorder's."""

    def shape(self, tensor: Tensor) -> Size:
        """The shape of a tensor, as the program gets it."""

    def switched(self, tensor: Tensor, how: str) -> None:
        """Something about a tensor was changed that is no operation."""

    def drew(self) -> None:
        """The program drew random numbers."""

    def accumulated(self) -> None:
        """A backward pass added to the ``.grad`` of leaves."""

    def called(self, function: str) -> None:
        """The program called a custom Function."""


class _Here(threading.local):
    recorder: Recorder | None = None


here = _Here()
_watch: Recorder | None = None
"""The recorder that sees every thread and makes no graph."""


def recorder() -> Recorder | None:
    """The recorder of what this thread does. Ask only if there are `watchers`."""
    own = here.recorder
    if _watch is None:
        return own
    return _watch if own is None else _Seen(own, _watch)


def graph_maker() -> Recorder | None:
    """The recorder of this thread itself, without the one that sees every thread."""
    return here.recorder


def is_recording() -> bool:
    """Whether the operations of this thread are being recorded: a backward pass must then consist of operations."""
    return bool(watchers) and here.recorder is not None


class _Seen:
    """A recorder whose operations and reads a watch sees first."""

    def __init__(self, recorder: Recorder, watch: Recorder) -> None:
        self._recorder, self._watch = recorder, watch
        self._operands: tuple[Tensor, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)

    def refs(self, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        self._operands = tuple(tensors)
        return self._recorder.refs(tensors)

    def ran(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], outputs: Sequence[Tensor]) -> None:
        self._watch.ran(op, self._operands, attrs, outputs)
        self._recorder.ran(op, refs, attrs, outputs)

    def read(self, tensor: Tensor, how: str) -> None:
        self._watch.read(tensor, how)
        self._recorder.read(tensor, how)


@contextmanager
def recording(by: Recorder) -> Iterator[None]:
    """Let `by` record what this thread does."""
    before, here.recorder = here.recorder, by
    add(1)
    modes.watch_new(by.born, 1)
    try:
        yield
    finally:
        here.recorder = before
        modes.watch_new(before.born if before is not None else None, -1)
        add(-1)


@contextmanager
def recording_every_thread(by: Recorder) -> Iterator[None]:
    """Show `by` what every thread does. It makes no graph and does not see new tensors."""
    global _watch
    before, _watch = _watch, by
    add(1)
    try:
        yield
    finally:
        _watch = before
        add(-1)
