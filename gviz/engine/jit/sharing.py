"""Memory that the results of a capture share, one after the other.

If the program holds a result, a view of it, or a graph that saved it, the result keeps its memory. Any other result is
needed only from the step that fills it to the last step that uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Protocol
from weakref import ref

import numpy as np

from gviz.engine.memory import address_of, owner_of
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

Kind = tuple[int, np.dtype[Any]]
"""The number of elements of a memory, and their dtype."""

_NOWHERE = np.empty(0)


class Step(Protocol):
    """A step that reads its operands and writes its outputs."""

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The tensors it reads."""

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors it writes."""


class ReleasedMemory:
    """The memory that steps fill, released by them until `settle` gives it back.

    In between their tensors have no memory, and memory without another reference is freed.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._memories = _filled(steps)
        for tensor in {id(t): t for step in steps for t in (*step.operands, *step.outputs)}.values():
            memory = self._memories.get(id(owner_of(tensor._array)))
            if memory is not None:
                memory.parts.append(_Part.of(tensor))
                tensor._array = _NOWHERE

    def settle(self) -> None:
        """Gives every tensor memory again: its own if that still exists, else memory that is free at that step."""
        pool = _Pool()
        for memory in self._memories.values():
            owner = memory.owner()
            if owner is None:
                owner = pool.lent(memory)
            for part in memory.parts:
                part.lay_in(owner)


class _Pool:
    """Arrays that are lent to one memory after the other, in the order in which these are filled."""

    def __init__(self) -> None:
        self._lent: list[tuple[int, int, Kind, Array]] = []  # the second number breaks ties
        self._idle: dict[Kind, list[Array]] = {}

    def lent(self, memory: _Memory) -> Array:
        """An array for a memory, not used by any other until it is free."""
        while self._lent and self._lent[0][0] <= memory.first:
            *_, kind, array = heappop(self._lent)
            self._idle.setdefault(kind, []).append(array)
        idle = self._idle.get(memory.kind)
        array = idle.pop() if idle else np.empty(*memory.kind)
        heappush(self._lent, (memory.until, id(array), memory.kind, array))
        return array


@dataclass(frozen=True, slots=True)
class _Part:
    """A tensor, and its position in its memory."""

    tensor: Tensor
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: Tensor) -> _Part:
        array = tensor._array
        offset = address_of(array) - address_of(owner_of(array))
        return cls(tensor, array.shape, array.dtype, offset, array.strides)

    def lay_in(self, owner: Array) -> None:
        self.tensor._array = np.ndarray(self.shape, self.dtype, _elements(owner), self.offset, self.strides)


@dataclass(slots=True)
class _Memory:
    """Memory that step `first` fills, and that is free again for step `until`."""

    owner: ref[Array]
    kind: Kind
    first: int
    until: int
    parts: list[_Part] = field(default_factory=list)


def _filled(steps: Sequence[Step]) -> dict[int, _Memory]:
    """Return the memory that steps fill before any uses it, by the id of its owner, in the order of those steps."""
    memories: dict[int, _Memory] = {}
    known: set[int] = set()
    for number, step in enumerate(steps):
        read, written = _owners(step.operands), _owners(step.outputs)
        known |= read
        for tensor in step.outputs:
            owner = owner_of(tensor._array)
            if id(owner) not in known and _fills(tensor._array, owner):
                memories[id(owner)] = _Memory(ref(owner), (owner.size, owner.dtype), number, number)
        known |= written
        for key in memories.keys() & (read | written):
            in_place = key not in written and _lies_alike(step, key)
            memories[key].until = number if in_place else number + 1
    return memories


def _owners(tensors: Sequence[Tensor]) -> set[int]:
    return {id(owner_of(tensor._array)) for tensor in tensors}


def _lies_alike(step: Step, memory: int) -> bool:
    """Return whether the operands of a step in a memory have the layout of its only result, which may then be stored
    there.
    """
    first, *others = [t._array for t in step.outputs]
    read = [t._array for t in step.operands if id(owner_of(t._array)) == memory]
    return not others and all((a.shape, a.strides, a.dtype) == (first.shape, first.strides, first.dtype) for a in read)


def _fills(array: Array, owner: Array) -> bool:
    return 0 < array.nbytes == owner.nbytes and np.shares_memory(_elements(owner), owner)


def _elements(owner: Array) -> Array:
    """Return the elements of a memory in memory order; a copy if it has gaps."""
    return owner.ravel("K")
