"""Whether anybody wants to see what operations do as they run: hooks of saved tensors, a recorder of a static graph.

Operations test `watchers` once; with nobody there that is all it costs. Which recorder there is, each thread knows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from gviz.engine import modes

if TYPE_CHECKING:
    from gviz.engine.op import Op
    from gviz.engine.size import Size
    from gviz.engine.tensor import Tensor

watchers = 0
"""How many there are, in all threads."""

_lock = Lock()


def add(number: int) -> None:
    """Count so many watchers more, or fewer."""
    global watchers
    with _lock:
        watchers += number


class Recorder(Protocol):
    """Who records the operations of a thread, so that they can be run again."""

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
    watch: Recorder | None = None  # who sees every thread, and makes no graph


here = _Here()


def recorder() -> Recorder | None:
    """The recorder of this thread. Worth asking only if there are `watchers`."""
    return here.recorder


def is_recording() -> bool:
    """Whether the operations of this thread are being recorded: a backward pass must then consist of operations."""
    return bool(watchers) and here.recorder is not here.watch


class _Seen:
    """A recorder whose operations and reads a watch sees first."""

    def __init__(self, recorder: Recorder, watch: Recorder) -> None:
        self.recorder, self._watch = recorder, watch
        self._operands: tuple[Tensor, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.recorder, name)

    def refs(self, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        self._operands = tuple(tensors)
        return self.recorder.refs(tensors)

    def ran(self, op: Op, refs: tuple[Any, ...], attrs: dict[str, Any], outputs: Sequence[Tensor]) -> None:
        self._watch.ran(op, self._operands, attrs, outputs)
        self.recorder.ran(op, refs, attrs, outputs)

    def read(self, tensor: Tensor, how: str) -> None:
        self._watch.read(tensor, how)
        self.recorder.read(tensor, how)


def graph_maker() -> Recorder | None:
    """The recorder of this thread itself, whoever sees what it records."""
    return here.recorder.recorder if isinstance(here.recorder, _Seen) else here.recorder


@contextmanager
def recording(by: Recorder | None) -> Iterator[None]:
    """Let `by` record what this thread does; None: nobody, for a moment."""
    seen = by if by is None or here.watch is None else _Seen(by, here.watch)
    before, here.recorder = here.recorder, seen
    add(1)
    modes.watch_new(by.born if by is not None else None, 1)
    try:
        yield
    finally:
        here.recorder = before
        modes.watch_new(before.born if before is not None else None, -1)
        add(-1)


@contextmanager
def recording_every_thread(by: Recorder) -> Iterator[None]:
    """Let `by` see what every thread does; it makes no graph, and is not told of new tensors."""
    before = _Here.watch
    _Here.recorder = _Here.watch = by
    add(1)
    try:
        yield
    finally:
        _Here.recorder = _Here.watch = before
        add(-1)
