"""What one evaluation of an expression may spend: work and memory, counted before anything is computed.

Who types ``any(len(b) > 1 for a in ['a' * 10**6] for b in [a + a + a])`` wants no answer in a minute and no gigabytes.
A clock finds that out too late, and a limit on the size of single results lets many of them add up. So each operation
of `gviz.where.operations` states an upper bound of what it will take, by the sizes of its operands, and `Budget.spend`
refuses it where the evaluation cannot afford it any more.

The budget grows with the recorded tensors that the expression reads. A statistic of a tensor with 100 million elements
takes a second, and has to. Refused is amplification: much work, or much memory, out of little data.

* *Work* is counted in nanoseconds of an ordinary machine. They are nominal: an expression costs the same anywhere.
* *Memory* is what is alive at once. An array is counted until it is freed, so that long formulas over a large tensor
  need no more than their temporaries. Texts and lists cannot be watched; they count until the evaluation ends.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from gviz.numbers import bytes_text

WORK = 4_000_000_000
"""Nanoseconds of work that every evaluation may spend: about 4 s."""

WORK_PER_ELEMENT = 300
"""Nanoseconds more for each element of the recorded tensors it reads: enough to sort them."""

MEMORY = 64 << 20
"""Bytes that every evaluation may hold."""

_GREAT = 1 << 30
"""Bytes: where 16 times the recorded tensors are more than this, only their threefold is added to it."""

MOST_BITS = 4096
"""Bits of a whole number."""

LONGEST_RESULT = 1_000_000
"""Items of a result that is no array, and characters of a text: it is shown, or compared."""

STEP = 1000
"""Nanoseconds of a step of Python, whatever it does."""

_ITEM = 100
_ENTRY = 100
_POINTER = 8
_FRAME = 1000
"""Bytes of a loop that has not run yet."""


class TooMuch(Exception):
    """An operation that would take too long, or too much memory. `hint` says what to write instead."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


class Extent(NamedTuple):
    """What a value holds within all its lists, as often as it is there: items (characters of texts), and which kinds.

    `bulky` is whether a text or a whole number of more than 64 bits is among them, which no array of numbers holds.
    """

    items: int
    bulky: bool = False
    arrays: bool = False


_ONE = Extent(1)
_PLAIN = frozenset((bool, float, complex, type(None), np.bool_, *np.sctypeDict.values())) - {
    np.str_, np.bytes_, np.void, np.object_,
}  # fmt: skip
"""Types whose values are small, and stay small whatever is computed with them."""


class Budget:
    """What one evaluation has spent. `names` are what its expression reads: the arrays among them are recorded."""

    __slots__ = ("_held", "_names", "live", "peak", "work")

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._held: dict[int, ref[Any]] = {}
        self.work = 0
        self.live = 0
        self.peak = 0

    def spend(self, work: int, memory: int = 0) -> None:
        """Count work, and bytes that are needed on top of those that are held; raises `TooMuch` for too much."""
        self.work += work
        if self.work > WORK and self.work > WORK + WORK_PER_ELEMENT * self._recorded("size"):
            raise TooMuch(
                f"it would take about {self.work / 1e9:.3g} seconds",
                "functions of whole tensors are faster than loops, and a part is faster than all: x[:100]",
            )
        needed = self.live + memory
        if needed > self.peak:
            self.peak = needed
        if needed > MEMORY and needed > self.allowed_memory():
            raise TooMuch(
                f"it would take {bytes_text(needed)} of memory, and the tensors it reads are "
                f"{bytes_text(self._recorded('nbytes'))}",
                "reduce or index the tensors first: x.max(), x[:100]",
            )

    def allowed_memory(self) -> int:
        """How many bytes may be alive at once."""
        recorded = self._recorded("nbytes")
        return MEMORY + min(16 * recorded, _GREAT + 3 * recorded)

    def hold(self, result: Any) -> Any:
        """Count a result that an operation gave for as long as it is alive."""
        if isinstance(result, np.ndarray):
            if result.base is not None:
                self._hold_memory(_owner(result))
            elif result.nbytes:
                self._hold_memory(result)
        elif type(result) not in _PLAIN:
            self.live += sys.getsizeof(result)
        return result

    def extent(self, value: Any) -> Extent:
        """How much a value holds; the look at it is paid for."""
        kind = type(value)
        if kind in _PLAIN:
            return _ONE
        return self._extent(value, {})

    def passes(self, items: Iterable[Any]) -> Iterator[Any]:
        """The items of a loop, each of whose passes is paid for."""
        for item in items:
            self.spend(2 * STEP)
            yield item

    def given(self, one: Any) -> Any:
        """What a pass of a loop gives, which a list keeps."""
        own = 0 if isinstance(one, np.ndarray) else _FRAME if isinstance(one, Iterator) else sys.getsizeof(one)
        memory = _POINTER + own
        self.spend(STEP, memory)
        self.live += memory
        return one

    def finish(self, result: Any) -> Any:
        """The result of the whole expression, which somebody will show or compare; nothing is counted any more."""
        self._held.clear()
        if type(result) not in _PLAIN and isinstance(result, str | bytes | list | tuple | set | dict):
            items = self.extent(result).items
            if items > LONGEST_RESULT:
                raise TooMuch(f"the result is too long: {items:,} items", "look at a part of it, or at its len()")
        return result

    def _recorded(self, what: str) -> int:
        return sum(getattr(value, what) for value in self._names.values() if isinstance(value, np.ndarray | np.generic))

    def _hold_memory(self, owner: Any) -> None:
        if owner is None or id(owner) in self._held:
            return
        key, size = id(owner), owner.nbytes
        self.live += size

        def free(_: object) -> None:
            if self._held.pop(key, None) is not None:
                self.live -= size

        self._held[key] = ref(owner, free)

    def _extent(self, value: Any, known: dict[int, Extent]) -> Extent:
        match value:
            case str() | bytes():
                return Extent(len(value) + 1, bulky=True)
            case np.ndarray():
                return Extent(value.size, arrays=True)
            case int():
                return _ONE if value.bit_length() <= 64 else Extent(1, bulky=True)
            case dict():
                parts: Collection[Any] = [*value.keys(), *value.values()]
            case list() | tuple() | set():
                parts = value
            case _:
                return _ONE
        found = known.get(id(value))
        if found is None:
            self.spend(_ITEM * len(value), 2 * _ENTRY * len(value))
            found = known[id(value)] = self._sum(parts, len(value), known)
        return found

    def _sum(self, parts: Collection[Any], count: int, known: dict[int, Extent]) -> Extent:
        if _PLAIN.issuperset(map(type, parts)):
            return Extent(count + 1)
        items, bulky, arrays = 1, False, False
        times = Counter(map(id, parts))  # a long list mostly holds the same again and again
        for part in {id(part): part for part in parts}.values():
            one = self._extent(part, known)
            items += one.items * times[id(part)]
            bulky |= one.bulky
            arrays |= one.arrays
        return Extent(items, bulky, arrays)


def is_small(value: Any) -> bool:
    """Whether a value is a number of at most 64 bits, or None."""
    kind = type(value)
    return kind in _PLAIN or (kind is int and -_WORD <= value < _WORD)


_WORD = 1 << 63


def _owner(array: Any) -> Any:
    """The array that owns the memory of a view; None where it is no array's, as of what a trace holds."""
    base = array.base
    while isinstance(base, np.ndarray):
        if base.base is None:
            return base
        base = base.base
    return None


Cost = Callable[[Budget, tuple[Any, ...], dict[str, Any]], None]
"""Pays, from the arguments of an operation and those given by name, for all that it will do."""
