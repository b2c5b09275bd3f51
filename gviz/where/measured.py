"""Operations that are measured before they are computed: none makes anything out of all proportion to what it is given.

Numbers may grow to so many bits, texts and lists to so many items, and arrays to as many elements as went in, or as
`MOST_ITEMS` where that is more. What broadcasting would make counts, and what a list holds within its lists.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any

import numpy as np

MOST_BITS = 4096
MOST_ITEMS = 1_000_000
"""What one operation may make: bits of a whole number, items of a text, a list or an array; also passes of a loop."""

MOST_KEPT = 10 * MOST_ITEMS
"""Items that the loops of one evaluation may give in all, those within lists and arrays counted."""

LONGEST_LOOP = 5.0
"""Seconds that the loops of one evaluation may take: each pass may do what an operation may."""

MOST_PRODUCTS = 100 * MOST_ITEMS
"""Multiplications in a product of matrices."""


class TooMuch(Exception):
    """An operation that would take too long, or too much memory."""


class Loops:
    """Counts the passes of all loops of one evaluation, what they give, and their time."""

    __slots__ = ("_end", "_kept", "_left")

    def __init__(self) -> None:
        self._left = MOST_ITEMS
        self._kept = MOST_KEPT
        self._end = 0.0

    def passes(self, items: Iterable[Any]) -> Iterator[Any]:
        """The items, until there are too many or it has taken too long."""
        self._end = self._end or monotonic() + LONGEST_LOOP
        for item in items:
            self._left -= 1
            if self._left < 0:
                raise TooMuch(f"a loop of more than {MOST_ITEMS} passes takes too long")
            if monotonic() > self._end:
                raise TooMuch(f"a loop of more than {LONGEST_LOOP:g} seconds takes too long")
            yield item

    def given(self, one: Any) -> Any:
        """What a pass gives, which a list may keep."""
        self._kept -= one.size if isinstance(one, np.ndarray) else _length(one) or 1
        if self._kept < 0:
            raise TooMuch(f"a loop that gives more than {MOST_KEPT} items takes too much memory")
        return one


def called(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function, or a method, whose arguments may be broadcast against each other."""
    of = getattr(function, "__self__", None)
    given = [*([of] if isinstance(of, np.ndarray) else []), *arguments, *named.values()]
    if len(given) > 1 or not all(isinstance(one, np.ndarray | np.generic) for one in given):
        _measure_given(function, of, given)  # nothing comes of one tensor alone that is far more than that
    result = function(*arguments, **named)
    if isinstance(result, np.ndarray) and result.dtype.kind not in _NUMBERS:
        raise TooMuch(_NO_NUMBERS)
    return result


def _measure_given(function: Callable[..., Any], of: object, given: list[Any]) -> None:
    if _is_of_numpy(function, of):
        for one in given:
            _refuse_all_but_numbers(one, set())
    arrays = [one for one in given if isinstance(one, np.ndarray | list | tuple)]
    if arrays:
        _measure_call(getattr(function, "__name__", ""), arrays, given)


_NUMBERS = "biufc"
_NO_NUMBERS = "an array holds numbers here, of at most 64 bits"
_LONGEST_WORD = 20


def _is_of_numpy(function: Callable[..., Any], of: object) -> bool:
    home = getattr(function, "__module__", None) or ""
    return isinstance(function, np.ufunc) or isinstance(of, np.ndarray | np.generic) or home.startswith("numpy")


def _refuse_all_but_numbers(one: Any, seen: set[int]) -> None:
    """Raise `TooMuch` for what would make an array of texts, or of objects: its elements have no size."""
    if isinstance(one, list | tuple):
        if id(one) not in seen:
            seen.add(id(one))
            for part in one:
                if isinstance(part, str):
                    raise TooMuch(_NO_NUMBERS)
                _refuse_all_but_numbers(part, seen)
    elif isinstance(one, str | type | np.dtype):
        if (isinstance(one, str) and len(one) > _LONGEST_WORD) or _kind(one) not in _NUMBERS:
            raise TooMuch(_NO_NUMBERS)
    elif isinstance(one, int) and one.bit_length() > 64:
        raise TooMuch(_NO_NUMBERS)


def _kind(word: str | type | np.dtype[Any]) -> str:
    """The kind of a dtype; that of numbers for a word that names none, such as ``fro``."""
    try:
        return np.dtype(word).kind
    except TypeError:
        return _NUMBERS[0]


def _measure_call(name: str, arrays: list[Any], given: list[Any]) -> None:
    """Raise `TooMuch` if a function of this name makes, or computes, far more than it is given."""
    if name in ("dot", "matmul") and len(arrays) > 1:
        _measure_product(arrays[0], arrays[1], batched=name == "matmul")
        return
    _measure(arrays)
    sizes = [_items(one) for one in arrays]
    if name in ("percentile", "quantile") and math.prod(sizes) > MOST_PRODUCTS:
        raise TooMuch("so many quantiles of so many elements take too long")
    if name == "diff" and any(isinstance(one, int) and one > _MOST_DIFFERENCES for one in given):
        raise TooMuch(f"differences of differences, more than {_MOST_DIFFERENCES} times, take too long")
    takes_apart = name == "norm" and any(isinstance(one, int | str) and one in (2, -2, "nuc") for one in given)
    if takes_apart and np.ndim(arrays[0]) > 1 and sizes[0] * min(np.shape(arrays[0])) > MOST_PRODUCTS:
        raise TooMuch("the norm of so great a matrix may take too long: norm(x.ravel()) is that of its elements")


_MOST_DIFFERENCES = 10


def compared(left: Any, *rest: Any) -> Any:
    """``a < b < c`` as ``compared(a, "Lt", lambda: b, "Lt", lambda: c)``: each is read only if it is come to."""
    result: Any = True
    for name, later in zip(rest[::2], rest[1::2], strict=True):
        if not result:
            return result
        right = later()
        result, left = OPERATIONS[name](left, right), right
    return result


def _measure(arrays: list[Any]) -> None:
    """Raise `TooMuch` if arrays broadcast against each other are far more than they are alone."""
    given = sum(map(_items, arrays))
    if given > MOST_ITEMS and not all(isinstance(one, np.ndarray) for one in arrays):
        raise TooMuch(f"a list of more than {MOST_ITEMS} items is too long")
    try:
        together = np.broadcast_shapes(*map(np.shape, arrays))
    except ValueError:  # they do not go together, or not as one array: then numpy says so, or does not broadcast them
        return
    _limit(math.prod(together), given)


def _measure_product(one: Any, other: Any, *, batched: bool) -> None:
    _measure([one])
    _measure([other])
    left, right = np.shape(one), np.shape(other)
    rows, columns = left[:-1], right[:-2] + right[-1:] if len(right) > 1 else ()
    if batched:
        outer = (*left[-2:-1], *columns[-1:])
        try:
            rows, columns = np.broadcast_shapes(left[:-2], right[:-2]), outer
        except ValueError:  # numpy says what does not fit
            return
    items = math.prod(rows) * math.prod(columns)
    _limit(items, math.prod(left) + math.prod(right))
    if items * math.prod(left[-1:]) > MOST_PRODUCTS:
        raise TooMuch("so great a product of matrices takes too long")


def _limit(made: int, given: int) -> None:
    if made > max(MOST_ITEMS, given):
        raise TooMuch(f"broadcast, that is {made} elements: too many")


def _items(value: Any) -> int:
    """Elements of an array, or of a list with all that its lists hold, as if none of them were the same."""
    if isinstance(value, np.ndarray):
        return value.size
    known: dict[int, int] = {}

    def held(one: Any) -> int:
        if not isinstance(one, list | tuple):
            return one.size if isinstance(one, np.ndarray) else 1
        if id(one) not in known:
            known[id(one)] = sum(map(held, one))
        return known[id(one)]

    return held(value)


def _elementwise(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def measured(one: Any, other: Any) -> Any:
        for each in (one, other):
            if isinstance(each, np.ndarray) and each.dtype.kind not in _NUMBERS:
                raise TooMuch(_NO_NUMBERS)
        if isinstance(one, np.ndarray | list | tuple) and isinstance(other, np.ndarray | list | tuple):
            if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
                _measure([one, other])
            elif len(one) + len(other) > MOST_ITEMS:
                raise TooMuch(f"a list of more than {MOST_ITEMS} items is too long")
        return operation(one, other)

    return measured


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MOST_BITS:
        raise TooMuch("so great a power is too great a number")
    return base**exponent


def _shifted(number: Any, by: Any) -> Any:
    if isinstance(number, int) and isinstance(by, int) and number.bit_length() + by > MOST_BITS:
        raise TooMuch("so far a shift is too great a number")
    return number << by


def _product(one: Any, other: Any) -> Any:
    if type(one) is float or type(other) is float:
        return one * other
    if isinstance(one, int) and isinstance(other, int):
        if one.bit_length() + other.bit_length() > MOST_BITS:
            raise TooMuch("the product is too great a number")
    elif isinstance(one, str | list | tuple) or isinstance(other, str | list | tuple):
        times = other if isinstance(other, int) else one if isinstance(one, int) else 1
        if max(_length(one), _length(other)) * times > MOST_ITEMS:
            raise TooMuch("so many copies are too many")
    return one * other


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str) else _items(value) if isinstance(value, list | tuple) else 0


def _remainder(one: Any, other: Any) -> Any:
    if isinstance(one, str):
        raise TooMuch("% formats no text here")
    return one % other


def _matrix_product(one: Any, other: Any) -> Any:
    _measure_product(one, other, batched=True)
    return one @ other


def _contained(one: Any, other: Any) -> bool:
    return one in other


def _missing(one: Any, other: Any) -> bool:
    return one not in other


_OPERATIONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: _product, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: _remainder, ast.Pow: _power, ast.LShift: _shifted,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.BitAnd: operator.and_,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.In: _contained, ast.NotIn: _missing,
    ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
OPERATIONS = {kind.__name__: _elementwise(operation) for kind, operation in _OPERATIONS.items()} | {
    "MatMult": _matrix_product
}
"""What each operator does, by the name of its kind in Python's syntax."""
