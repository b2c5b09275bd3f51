"""What watches operations as they run: hooks of saved tensors, the recorder of a static graph.

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
"""An `op.Op` and a `tensor.Tensor`: both are built on this module, which only passes them on."""

watchers = 0
"""The number of watchers in all threads."""

_lock = Lock()


def add(number: int) -> None:
    """Adds `number`, which may be negative, to the count."""
    global watchers
    with _lock:
        watchers += number


def _unlock() -> None:
    """Replace the lock in a forked child: another thread, which the child lacks, may have held it."""
    global _lock
    _lock = Lock()


os.register_at_fork(after_in_child=_unlock)


class Recorder(Protocol):
    """Records the operations of a thread so that they can be run again."""

    def refs(self, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        """The tensors as inputs, requested before an operation writes to any of them."""

    def ran(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], outputs: Sequence[Tensor]) -> None:
        """Records an operation that made new tensors."""

    def wrote(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], target: Tensor) -> None:
        """Records an operation that wrote its result into `target`, the first of its inputs."""

    def became(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], target: Tensor) -> None:
        """Records an operation that turned `target`, its input, into another view of its memory."""

    def copied(self, tensor: Tensor, copy: Tensor) -> None:
        """Records the copy of a tensor that a backward rule needs, made before the tensor is written."""

    def born(self, tensor: Tensor) -> None:
        """Records a new tensor, however it was made."""

    def read(self, tensor: Tensor, how: str) -> None:
        """Notes that the program reads a tensor's elements or shape; `how` is one of the recorder's keys."""

    def shape(self, tensor: Tensor) -> Size:
        """The shape of a tensor, as the program sees it."""

    def switched(self, tensor: Tensor, how: str) -> None:
        """Notes a change of a tensor that is not an operation."""

    def drew(self) -> None:
        """Notes that the program drew random numbers."""

    def accumulated(self) -> None:
        """Notes that a backward pass added to the ``.grad`` of leaves."""

    def called(self, function: str) -> None:
        """Notes a call of a custom Function."""


class _Here(threading.local):
    recorder: Recorder | None = None


here = _Here()
_watch: Recorder | None = None
"""The recorder that observes every thread and makes no graph."""


def recorder() -> Recorder | None:
    """The recorder for this thread's operations. Call it only if there are `watchers`."""
    own = here.recorder
    if _watch is None:
        return own
    return _watch if own is None else _Seen(own, _watch)


def graph_maker() -> Recorder | None:
    """The recorder of this thread itself, without the one that observes every thread."""
    return here.recorder


def is_recording() -> bool:
    """Whether the operations of this thread are being recorded: a backward pass must then consist of operations."""
    return bool(watchers) and here.recorder is not None


class _Seen:
    """Passes operations and reads to a watch first, and then to a recorder."""

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
    """Makes `by` record the operations of this thread within the block."""
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
    """Makes `by` observe the operations of every thread. It makes no graph and does not see new tensors."""
    global _watch
    before, _watch = _watch, by
    add(1)
    try:
        yield
    finally:
        _watch = before
        add(-1)
