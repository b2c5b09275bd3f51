"""Limits on work and memory of one evaluation of an expression, charged before anything is computed.

A short expression can ask for gigabytes: ``any(len(b) > 1 for a in ['a' * 10**6] for b in [a + a + a])``. A timeout
notices that too late, and a limit on each result allows many results to add up. So each operation of
`gviz.query_syntax.expression_operations` declares an upper bound of its cost, from the sizes of its operands.
`Budget.spend` refuses the operation if the rest of the budget does not cover it.

The budget grows with the recorded tensors that the expression reads: a statistic of 100 million elements takes a second
and is allowed. Only amplification is refused: much work, or much memory, from little data.

* *Work* is counted in nominal nanoseconds, so that an expression costs the same on every machine.
* *Memory* is what is alive at once. An array counts until it is freed, so a long formula over a large tensor pays for
  its temporaries only. Texts and lists cannot be tracked in Python; they count until the evaluation ends.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from gviz.values.number_text import bytes_text

WORK = 4_000_000_000
"""Nanoseconds of work that every evaluation may spend: about 4 s."""

WORK_PER_ELEMENT = 300
"""Additional nanoseconds for each element of the recorded tensors it reads: enough to sort them."""

MEMORY = 64 << 20
"""Bytes that every evaluation may hold."""

_GREAT = 1 << 30
"""Bytes. The allowance is 16 times the recorded tensors, but at most this plus 3 times the recorded tensors."""

MOST_BITS = 4096
"""The most bits of an integer."""

LONGEST_RESULT = 1_000_000
"""The most items of a list, or characters of a text, that a whole expression may return, to be shown or compared."""

STEP = 1000
"""Nanoseconds of a Python step, whatever it does."""

_ITEM = 100
_ENTRY = 100
_POINTER = 8
_FRAME = 1000
"""Bytes of a loop that has not run yet."""


class TooMuch(Exception):
    """An operation that would take too much time or memory. `hint` is what to write instead."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


class Extent(NamedTuple):
    """How much a value holds, including nested lists: items (for texts, characters), and of which kinds.

    An item that occurs twice counts twice. `bulky` means that it includes a text, or an integer of more than 64 bits,
    which no array of numbers can hold.
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
    """What one evaluation has spent. `names` are the variables of its expression; arrays among them are recorded."""

    __slots__ = ("_names", "_owners", "live", "peak", "work")

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._owners: dict[int, ref[Any]] = {}
        self.work = 0
        self.live = 0
        self.peak = 0

    def spend(self, work: int, memory: int = 0) -> None:
        """Charge work, and bytes needed besides those that are held. Raises `TooMuch` beyond the budget."""
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
        """Return how many bytes may be alive at once."""
        recorded = self._recorded("nbytes")
        return MEMORY + min(16 * recorded, _GREAT + 3 * recorded)

    def hold(self, result: Any) -> Any:
        """Count the memory of an operation's result while it is alive, and return the result."""
        if isinstance(result, np.ndarray):
            if result.base is not None:
                self._hold_memory(_owner(result))
            elif result.nbytes:
                self._hold_memory(result)
        elif type(result) not in _PLAIN:
            self.live += sys.getsizeof(result)
        return result

    def extent(self, value: Any) -> Extent:
        """Return how much a value holds. Looking costs work too."""
        kind = type(value)
        if kind in _PLAIN:
            return _ONE
        return self._extent(value, {})

    def iterate(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the items of a loop; each iteration is charged."""
        for item in items:
            self.spend(2 * STEP)
            yield item

    def collect(self, one: Any) -> Any:
        """Charge the memory of one item that a loop produced, and return it."""
        own = 0 if isinstance(one, np.ndarray) else _FRAME if isinstance(one, Iterator) else sys.getsizeof(one)
        memory = _POINTER + own
        self.spend(STEP, memory)
        self.live += memory
        return one

    def finish(self, result: Any) -> Any:
        """Return the result of the whole expression. Raises `TooMuch` if it is too long to show or compare."""
        self._owners.clear()
        if type(result) not in _PLAIN and isinstance(result, str | bytes | list | tuple | set | dict):
            items = self.extent(result).items
            if items > LONGEST_RESULT:
                raise TooMuch(f"the result is too long: {items:,} items", "look at a part of it, or at its len()")
        return result

    def _recorded(self, what: str) -> int:
        return sum(getattr(value, what) for value in self._names.values() if isinstance(value, np.ndarray | np.generic))

    def _hold_memory(self, owner: Any) -> None:
        if owner is None or id(owner) in self._owners:
            return
        key, size = id(owner), owner.nbytes
        self.live += size

        def free(_: object) -> None:
            if self._owners.pop(key, None) is not None:
                self.live -= size

        self._owners[key] = ref(owner, free)

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
        extent = known.get(id(value))
        if extent is None:
            self.spend(_ITEM * len(value), 2 * _ENTRY * len(value))
            extent = known[id(value)] = self._sum(parts, len(value), known)
        return extent

    def _sum(self, parts: Collection[Any], count: int, known: dict[int, Extent]) -> Extent:
        if _PLAIN.issuperset(map(type, parts)):
            return Extent(count + 1)
        items, bulky, arrays = 1, False, False
        times = Counter(map(id, parts))  # a long list usually repeats the same objects
        for part in {id(part): part for part in parts}.values():
            one = self._extent(part, known)
            items += one.items * times[id(part)]
            bulky |= one.bulky
            arrays |= one.arrays
        return Extent(items, bulky, arrays)


def is_small(value: Any) -> bool:
    """Return whether a value is a number of at most 64 bits, or None."""
    kind = type(value)
    return kind in _PLAIN or (kind is int and -_WORD <= value < _WORD)


_WORD = 1 << 63


def _owner(array: Any) -> Any:
    """Return the array that owns the memory of a view; None if no array does, as for the bytes of a trace."""
    base = array.base
    while isinstance(base, np.ndarray):
        if base.base is None:
            return base
        base = base.base
    return None


Cost = Callable[[Budget, tuple[Any, ...], dict[str, Any]], None]
"""Charges a budget for an operation, given its positional and keyword arguments, before it runs."""
