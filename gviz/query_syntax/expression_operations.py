"""Every operation of the expression language with its cost: the table used by `gviz.query_syntax.safe_expression`.

An entry is an `Operation`: a function, and a `Cost` that charges the budget before the function runs. The cost depends
only on the sizes of the operands. It is an upper bound of memory (results and temporaries) and an estimate of work, in
nanoseconds per element. Operations without an entry are not part of the language. Operators are found by their class in
Python's syntax tree, methods by name and receiver, functions by identity.

To add an operation, add a line to the table of its family; for a method, also its name to
`gviz.query_syntax.expression_names`. ``tests/query_syntax/test_hostile_expressions.py`` then checks that it takes no
more memory than its line allows.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gviz.query_syntax.expression_limits import LONGEST_RESULT, MOST_BITS, STEP, Budget, Cost, TooMuch
from gviz.query_syntax.statistics_proxy import StatisticsProxy


class Operation(NamedTuple):
    """A function and its cost."""

    run: Callable[..., Any]
    cost: Cost


class Numbers(np.ndarray[Any, Any]):
    """The elements of a tensor, with extra methods that PyTorch users expect."""

    def norm(self) -> float:
        """Return the L2 norm of all elements."""
        return float(np.linalg.norm(_widened(np.asarray(self))))

    def abs(self) -> Any:
        """Return the magnitude of each element."""
        return np.abs(self)


_WIDER = {"e": np.float64, "f": np.float64, "F": np.complex128}


def _widened(numbers: Any) -> Any:
    """Return the numbers in a wider dtype in which their squares do not overflow; unchanged if there is none."""
    wider = _WIDER.get(numbers.dtype.char) if isinstance(numbers, np.ndarray) else None
    return numbers if wider is None else numbers.astype(wider)


# The operands of a function: their arrays, and their size after broadcasting.

_NUMBERS = "biufc"
_NO_NUMBERS = "an array holds numbers here, of at most 64 bits"
_LONGEST_WORD = 20
_CONVERSION = 100
_WIDEST = 16


class _Sized(NamedTuple):
    shape: tuple[int, ...]
    size: int
    width: int
    kind: str


class _Operands(NamedTuple):
    """The operands of a numpy function: `total` elements after broadcasting, each of `width` bytes.

    `work` and `memory` are the cost of converting lists to arrays.
    """

    arrays: list[_Sized]
    total: int
    width: int
    work: int
    memory: int


def _measure(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Operands:
    """Measure arguments. Raises `TooMuch` for anything that would become an array of texts or objects."""
    if len(arguments) == 1 and not named and isinstance(arguments[0], np.ndarray):  # the usual case
        [one] = arguments
        kind, width = one.dtype.kind, one.dtype.itemsize
        if kind not in _NUMBERS:
            raise TooMuch(_NO_NUMBERS)
        array = _Sized(one.shape, one.size, width, kind)
        return _Operands([array], one.size, width if kind == "f" else max(width, 8) if kind != "c" else _WIDEST, 0, 0)
    arrays: list[_Sized] = []
    work = memory = 0
    for one in (*arguments, *named.values()) if named else arguments:
        if isinstance(one, np.ndarray):
            if one.dtype.kind not in _NUMBERS:
                raise TooMuch(_NO_NUMBERS)
            arrays.append(_Sized(one.shape, one.size, one.dtype.itemsize, one.dtype.kind))
        elif isinstance(one, list | tuple):
            extent = budget.extent(one)
            if extent.bulky:
                raise TooMuch(_NO_NUMBERS)
            work, memory = work + _CONVERSION * extent.items, memory + _WIDEST * extent.items
            arrays.append(_Sized(_shape(one), extent.items, _WIDEST, "f"))
        elif isinstance(one, np.generic):
            arrays.append(_Sized((), 1, one.dtype.itemsize, one.dtype.kind))
        elif isinstance(one, bool | int | float | complex):
            if isinstance(one, int) and one.bit_length() > 64:
                raise TooMuch(_NO_NUMBERS)
            arrays.append(_Sized((), 1, 0, "c" if isinstance(one, complex) else "f"))
        elif not _is_word(one):
            raise TooMuch(_NO_NUMBERS)
    return _Operands(arrays, _broadcast_size(arrays), _width(arrays), work, memory)


def _is_word(one: object) -> bool:
    """Return whether a value is not an array and does not become one: an option, an element type, a summary."""
    if isinstance(one, str | type | np.dtype):
        if isinstance(one, str) and len(one) > _LONGEST_WORD:
            return False
        try:
            return np.dtype(one).kind in _NUMBERS
        except TypeError:
            return True  # a word that is not an element type, such as ``fro``
    return one is None or isinstance(one, StatisticsProxy)


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape that numpy gives nested lists: that of the first item at each level."""
    shape: tuple[int, ...] = ()
    while isinstance(value, list | tuple):
        shape += (len(value),)
        if not value:
            return shape
        value = value[0]
    return shape + value.shape if isinstance(value, np.ndarray) else shape


def _broadcast_size(arrays: list[_Sized]) -> int:
    """Return the number of elements after broadcasting; the sum of all if the arrays cannot be broadcast."""
    if len(arrays) == 1:
        return arrays[0].size
    largest = max((one.size for one in arrays), default=1)
    shapes = {one.shape for one in arrays if one.shape}
    if len(shapes) < 2:  # broadcast_shapes takes longer than most operations
        return largest
    try:
        return max(largest, math.prod(np.broadcast_shapes(*shapes)))
    except ValueError:  # they do not match: numpy raises an error or does not broadcast them
        return sum(one.size for one in arrays)


def _width(arrays: list[_Sized]) -> int:
    """Return the bytes per element of an arithmetic result. Integers may become float64; Python numbers widen
    nothing.
    """
    widest, floats = 0, True
    for one in arrays:
        widest = max(widest, _WIDEST if one.kind == "c" else one.width)
        floats = floats and one.kind == "f"
    return widest if widest and floats else max(widest, 8)


# The families of functions, by their cost.


def _elementwise(rate: int, width: int = 0, temporary: int = 0) -> Cost:
    """Return a new array of the broadcast size of the arguments, `width` bytes per element (0: as the arguments)."""

    def cost(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        operands = _measure(budget, arguments, named)
        each = (width or operands.width) + temporary
        budget.spend(STEP + operands.work + rate * operands.total, operands.memory + each * operands.total)

    return cost


def _reduction(rate: int, temporary: float = 0, *, sorts: bool = False) -> Cost:
    """Charge few numbers from many, with `temporary` copies of the argument."""

    def cost(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        operands = _measure(budget, arguments, named)
        depth = max(operands.total.bit_length(), 1) if sorts else 1
        result = _WIDEST * _result_size(operands, arguments, named)
        copies = int(temporary * operands.width * operands.total)
        budget.spend(STEP + operands.work + rate * depth * operands.total, operands.memory + copies + result)

    return cost


def _result_size(operands: _Operands, arguments: tuple[Any, ...], named: dict[str, Any]) -> int:
    """Return the number of elements in the result of a reduction along an axis."""
    axis = named.get("axis", arguments[1] if len(arguments) > 1 else None)
    if axis is None:
        return 1
    shape = operands.arrays[0].shape if operands.arrays else ()
    if isinstance(axis, int) and -len(shape) <= axis < len(shape):
        return operands.total // max(shape[axis], 1)
    return operands.total


def _cost_of_several(cost: Cost) -> Cost:
    """Return the cost of a function that also takes several numbers, as Python's own ``max`` does."""

    def several(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        cost(budget, ([*arguments],) if len(arguments) > 1 else arguments, named)

    return several


def _sorting(copies: int, index: int = 0) -> Cost:
    """Charge a sort: `copies` of all elements, plus `index` bytes per element."""

    def cost(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        operands = _measure(budget, arguments, named)
        each = copies * operands.width + index
        budget.spend(
            STEP + operands.work + 12 * operands.total.bit_length() * operands.total,
            operands.memory + each * operands.total,
        )

    return cost


def _quantiles(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    operands = _measure(budget, arguments, named)
    count = operands.arrays[1].size if len(operands.arrays) > 1 else 1
    size = operands.arrays[0].size if operands.arrays else 1
    left = _result_size(operands, (), named) if "axis" in named or len(arguments) > 2 else 1
    work = (12 * size.bit_length() + 3 * count) * size
    budget.spend(STEP + operands.work + work, operands.memory + 2 * operands.width * size + 3 * _WIDEST * count * left)


def _differences(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    times = named.get("n", arguments[1] if len(arguments) > 1 else 1)
    operands = _measure(budget, arguments, named)
    count = abs(int(times)) if isinstance(times, int | np.integer) else 1
    work = operands.work + (STEP + 5 * operands.total) * count
    budget.spend(STEP + work, operands.memory + 4 * operands.width * operands.total)


def _norm(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    operands = _measure(budget, arguments, named)
    first = operands.arrays[0] if operands.arrays else _Sized((), 1, 8, "f")
    work = 10 * operands.total
    if len(first.shape) > 1 and any(
        isinstance(one, int | str) and one in (2, -2, "nuc") for one in _words(arguments, named)
    ):
        work = 40 * first.size * max(min(first.shape), 1)  # it factorizes the matrix
    budget.spend(STEP + operands.work + work, operands.memory + 3 * max(operands.width, 8) * operands.total)


def _words(arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    return (*arguments[1:], *named.values())


def _indices(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Return the indices of the nonzero elements, one row each."""
    operands = _measure(budget, arguments, named)
    first = operands.arrays[0] if operands.arrays else _Sized((), 1, 8, "f")
    budget.spend(STEP + operands.work + 2 * first.size, operands.memory)
    there = arguments and isinstance(arguments[0], np.ndarray)
    count = int(np.count_nonzero(arguments[0])) if there else first.size
    budget.spend(20 * count, operands.memory + first.size + 16 * count * max(len(first.shape), 1))


def _where_cost(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    (_indices if len(arguments) == 1 else _elementwise(10))(budget, arguments, named)


_PRODUCT = {("f", 4): 1 / 32, ("f", 8): 1 / 16, ("c", 8): 1 / 8, ("c", 16): 1 / 4, ("f", 2): 16.0}
"""Nanoseconds per multiplication in a matrix product. BLAS handles float32, float64 and complex."""


def _matrix_product(*, batched: bool) -> Cost:
    def cost(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        operands = _measure(budget, arguments, named)
        work, memory = STEP + operands.work, operands.memory
        if len(operands.arrays) > 1:
            one, other = operands.arrays[:2]
            items, inner = _product_of(one.shape, other.shape, batched=batched)
            fast = one.kind == other.kind and one.width == other.width and (batched or len(other.shape) < 3)
            rate = _PRODUCT.get((one.kind, one.width), 4.0) if fast else 16.0 if 2 in (one.width, other.width) else 4.0
            work += int(rate * items * max(inner, 1)) + 2 * (one.size + other.size)
            memory += operands.width * (items + one.size + other.size)  # non-contiguous ones are copied
        budget.spend(work, memory)

    return cost


def _product_of(left: tuple[int, ...], right: tuple[int, ...], *, batched: bool) -> tuple[int, int]:
    """Return the number of elements of a product, and how many products each of them sums."""
    if not left or not right:
        return math.prod(left) * math.prod(right), 1
    rows, columns = left[:-1], right[:-2] + right[-1:] if len(right) > 1 else ()
    if batched:
        outer = (*left[-2:-1], *columns[-1:])
        try:
            rows, columns = np.broadcast_shapes(left[:-2], right[:-2]), outer
        except ValueError:  # numpy raises an error about the mismatch
            return 0, 0
    return math.prod(rows) * math.prod(columns), left[-1]


_VIEW = _elementwise(1)

_OF_NUMPY: tuple[tuple[str, Cost], ...] = (
    ("abs absolute around ceil clip fabs floor fmax fmin maximum minimum round sign sqrt square trunc deg2rad",
     _elementwise(5)),
    ("arccos arcsin arctan arctan2 cos cosh exp exp2 expm1 hypot log log10 log1p log2 logaddexp sin sinh tan tanh",
     _elementwise(50)),
    ("isfinite isinf isnan logical_and logical_not logical_or logical_xor", _elementwise(5, width=1)),
    ("isclose allclose", _elementwise(40, width=1, temporary=3 * _WIDEST + 8)),
    ("array_equal", _elementwise(10, width=1, temporary=_WIDEST + 4)),
    ("cumprod cumsum", _elementwise(15)),
    ("float16 float32 float64 int32 int64", _elementwise(5)),
    ("array asarray ravel real squeeze transpose diagonal", _VIEW),
    ("all any argmax argmin count_nonzero max min ptp", _reduction(2, 1)),
    ("mean prod sum trace nanmax nanmin", _reduction(4, 1)),
    ("average nanmean nansum std var", _reduction(20, 3)),
    ("median", _reduction(5, 2, sorts=True)),
    ("percentile quantile", _quantiles),
    ("sort", _sorting(2)),
    ("argsort", _sorting(2, index=8)),
    ("unique", _sorting(4, index=8)),
    ("argwhere nonzero", _indices),
    ("where", _where_cost),
    ("diff", _differences),
    ("dot vdot", _matrix_product(batched=False)),
    ("matmul", _matrix_product(batched=True)),
)  # fmt: skip
"""The numpy functions, by their cost."""

_CONSTANTS = ("e", "inf", "nan", "pi")

OF_NUMPY = frozenset((*_CONSTANTS, "linalg", "norm", *(name for names, _ in _OF_NUMPY for name in names.split())))
"""The names that may follow ``np.``."""

_COST_BY_NAME = {name: cost for names, cost in _OF_NUMPY for name in names.split()} | {"norm": _norm}


# Functions called by their bare name, instead of Python's builtins.


def _of_several(
    function: Callable[..., Any], prepared: Callable[[Any], Any] = lambda argument: argument
) -> Callable[..., Any]:
    """Return a numpy function that also accepts several numbers, as Python's own does.

    A number after a tensor is the dimension, as in PyTorch; for a norm it is the order.
    """

    def reduced(first: Any, *others: Any, **named: Any) -> Any:
        if len(others) == 1 and isinstance(first, np.ndarray) and first.ndim and isinstance(others[0], int | tuple):
            whole = prepared(first)
            return function(whole.ravel() if function is np.linalg.norm else whole, *others, **named)
        return function(prepared([first, *others] if others else first), **named)

    return reduced


def _rounded(number: Any, digits: int = 0) -> Any:
    if not -MOST_BITS < digits < MOST_BITS:
        raise TooMuch("the number has too many digits")
    if isinstance(number, np.ndarray | np.generic):
        return np.round(number, digits)
    return round(number, digits) if digits else round(number)


def _where(condition: Any, *branches: Any) -> Any:
    """Return the indices at which a condition is true, one row each; with two branches, the same as numpy."""
    return np.where(condition, *branches) if branches else np.argwhere(condition)


def _zeros(numbers: Any) -> float:
    """Return the share of elements that are zero."""
    size = np.size(numbers)
    return 1 - np.count_nonzero(numbers) / size if size else 0.0


def _small(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Charge a look at a value."""
    budget.spend(STEP)


def _number(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Charge a number from a text, or from one element."""
    length = max((len(one) for one in arguments if isinstance(one, str)), default=0)
    if length > MOST_BITS:
        raise TooMuch("so long a text is too great a number")
    budget.spend(STEP + length * length)


def _text(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Charge a value as text; numpy writes only the ends of each dimension of a large array."""
    characters = 0
    for one in arguments:
        extent = budget.extent(one)
        if extent.arrays and not isinstance(one, np.ndarray):
            raise TooMuch("arrays within lists make too long a text")
        size = extent.items
        if isinstance(one, np.ndarray) and size > 1000:
            size = math.prod(min(length, 7) for length in one.shape)
        characters += size * (_LONGEST_NUMBER if not isinstance(one, str) else 10)
    if characters > 40 * LONGEST_RESULT:
        raise TooMuch("it makes too long a text")
    budget.spend(STEP + 50 * characters, 4 * characters)


_LONGEST_NUMBER = 40

FUNCTIONS: dict[str, Any] = {
    "np": np, "isnan": np.isnan, "isinf": np.isinf, "norm": _of_several(np.linalg.norm, _widened),
    "any": _of_several(np.any), "all": _of_several(np.all), "min": _of_several(np.min), "max": _of_several(np.max),
    "mean": _of_several(np.mean), "sum": _of_several(np.sum), "argmin": np.argmin, "argmax": np.argmax,
    "where": _where, "abs": np.abs, "len": len, "zeros": _zeros, "round": _rounded,
    "float": float, "int": int, "bool": bool, "str": str,
}  # fmt: skip
"""What an expression can use besides tensors, instead of Python's builtins."""

TYPES = frozenset(("float", "int", "bool", "str"))
"""Those that can also be an argument: ``x.astype(int)``."""

for _name, _function in FUNCTIONS.items():
    if getattr(_function, "__module__", "") == __name__:
        _function.__qualname__ = _name  # the name in Python's errors about its arguments


_FUNCTION_COSTS: dict[Any, Cost] = {
    **{getattr(np, name): cost for name, cost in _COST_BY_NAME.items() if name != "norm"},
    np.linalg.norm: _norm,
    **{
        FUNCTIONS[name]: _cost_of_several(_COST_BY_NAME[name])
        for name in ("any", "all", "min", "max", "mean", "sum", "norm")
    },
    FUNCTIONS["zeros"]: _COST_BY_NAME["count_nonzero"],
    FUNCTIONS["where"]: _where_cost,
    FUNCTIONS["round"]: _COST_BY_NAME["round"],
    len: _small, bool: _small, float: _number, int: _number, str: _text,
}  # fmt: skip


def function(called: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Operation:
    """Return the entry of a function. Raises TypeError if it is not one of them."""
    try:
        cost = _FUNCTION_COSTS.get(called)
    except TypeError:  # an array is not hashable
        cost = None
    if cost is None:
        name = type(called).__name__
        raise TypeError(f"'{name}' object is not callable" if not callable(called) else "it is no function here")
    if "out" in named or (isinstance(called, np.ufunc) and len(arguments) > called.nin):
        raise TypeError("expressions write nothing: remove the argument out")
    return Operation(called, cost)


# Methods.

_LIKE_FUNCTIONS = """
all any argmax argmin argsort clip cumprod cumsum diagonal dot max mean min nonzero norm prod ptp ravel round sort
squeeze std sum trace transpose var abs
"""


def _astype(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    _elementwise(5, width=_WIDEST)(budget, arguments, named)


def _method_named(name: str) -> Callable[..., Any]:
    """Return a function that calls the method with this name."""

    def run(of: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(of, name)(*arguments, **named)

    return run


def _magnitudes(of: Any) -> Any:
    return np.abs(of)


def _norm_of(of: Any) -> Any:
    return of.norm() if isinstance(of, StatisticsProxy) else np.asarray(of).view(Numbers).norm()


def _sorted(of: Any, axis: int = -1) -> Any:
    """Return a sorted copy; recorded values are never changed."""
    return np.sort(of, axis)


OF_ARRAYS: dict[str, Operation] = {
    **{name: Operation(_method_named(name), _COST_BY_NAME[name]) for name in _LIKE_FUNCTIONS.split()},
    "copy": Operation(_method_named("copy"), _VIEW),
    "flatten": Operation(_method_named("flatten"), _VIEW),
    "astype": Operation(_method_named("astype"), _astype),
    "item": Operation(_method_named("item"), _small),
    "abs": Operation(_magnitudes, _COST_BY_NAME["abs"]),
    "norm": Operation(_norm_of, _norm),
    "sort": Operation(_sorted, _sorting(2)),
    "ptp": Operation(np.ptp, _COST_BY_NAME["ptp"]),
}
"""The methods of arrays and of numpy numbers."""


def _copying_text(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Return a text at most three times as long as another: ``upper`` can turn one letter into three."""
    size = sum(sys.getsizeof(one) for one in arguments if isinstance(one, str | bytes))
    budget.spend(STEP + 3 * size, 12 * size)


def _splitting(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    length = len(arguments[0])
    budget.spend(STEP + 30 * length, 4 * sys.getsizeof(arguments[0]) + 40 * length)


def _searching(budget: Budget, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Return a search for a part of a text, or an item of a list."""
    of, *sought = arguments
    part = max((budget.extent(one).items for one in sought), default=1)
    budget.spend(STEP + 2 * budget.extent(of).items * min(part, 128))


OF_TEXTS: dict[str, Operation] = {
    **{
        name: Operation(_method_named(name), _searching)
        for name in ("count", "endswith", "find", "index", "startswith")
    },
    **{
        name: Operation(_method_named(name), _copying_text)
        for name in ("lower", "upper", "lstrip", "rstrip", "strip", "isdigit")
    },
    "split": Operation(_method_named("split"), _splitting),
}
"""The methods of texts."""

OF_LISTS: dict[str, Operation] = {
    "count": Operation(_method_named("count"), lambda budget, arguments, named: _equality(budget, *arguments[:2])),
    "index": Operation(_method_named("index"), lambda budget, arguments, named: _equality(budget, *arguments[:2])),
    "copy": Operation(list, lambda budget, arguments, named: budget.spend(STEP, 8 * len(arguments[0]))),
}
"""The methods of lists and tuples."""


def method(of: Any, name: str) -> Operation | None:
    """Return the entry of a method, None if its receiver has none with this name."""
    if isinstance(of, np.ndarray | np.generic):
        return OF_ARRAYS.get(name)
    if isinstance(of, StatisticsProxy):
        return Operation(_method_named(name), _small)
    if isinstance(of, str):
        return OF_TEXTS.get(name)
    return OF_LISTS.get(name) if isinstance(of, list | tuple) else None


# Operators.


def _check_bits(bits: int) -> None:
    if bits > MOST_BITS:
        raise TooMuch("it makes too great a number")


def _equality(budget: Budget, one: Any, other: Any) -> None:
    """Return a comparison of two values, including all nested items; arrays in lists are compared as a whole."""
    left, right = budget.extent(one), budget.extent(other)
    pairs = left.items * right.items if left.arrays or right.arrays else left.items + right.items
    budget.spend(STEP + 5 * pairs, pairs if left.arrays or right.arrays else 0)


def _comparison(budget: Budget, operands: tuple[Any, ...], named: dict[str, Any]) -> None:
    one, other = operands
    if isinstance(one, np.ndarray | np.generic) or isinstance(other, np.ndarray | np.generic):
        if isinstance(one, str) or isinstance(other, str):  # they are never equal, but numpy makes an array of the text
            size = sum(8 * len(each) if isinstance(each, str) else each.size for each in operands)
            budget.spend(STEP + size, size)
            return
        _elementwise(5, width=1)(budget, operands, named)
    else:
        _equality(budget, one, other)


def _membership(budget: Budget, operands: tuple[Any, ...], named: dict[str, Any]) -> None:
    one, other = operands
    if isinstance(other, np.ndarray):
        _elementwise(5, width=1)(budget, operands, named)
    elif isinstance(other, str):
        _searching(budget, (other, one), {})
    else:
        _equality(budget, one, other)


def _arithmetic(rate: int, *, grows: Callable[[int, int], int] | None = None) -> Cost:
    """Return an operation of two numbers or arrays. `grows` bounds the bits of the result of two integers."""
    cost = _elementwise(rate)

    def paid(budget: Budget, operands: tuple[Any, ...], named: dict[str, Any]) -> None:
        one, other = operands
        if isinstance(one, int) and isinstance(other, int):
            if grows is not None:
                _check_bits(grows(one, other))
            budget.spend(STEP)
        elif isinstance(one, np.ndarray | np.generic) or isinstance(other, np.ndarray | np.generic):
            cost(budget, operands, named)
        else:
            _joining(budget, operands)

    return paid


def _joining(budget: Budget, operands: tuple[Any, ...]) -> None:
    """Charge a concatenation, union or intersection of texts, lists and sets."""
    size = sum(sys.getsizeof(one) for one in operands if isinstance(one, str | list | tuple | set | dict))
    budget.spend(STEP + 2 * size, 4 * size)  # one wide letter makes the whole text wide


def _copies(budget: Budget, operands: tuple[Any, ...], named: dict[str, Any]) -> None:
    one, other = operands
    for many, times in ((one, other), (other, one)):
        if isinstance(many, str | list | tuple) and isinstance(times, int | np.integer | np.bool_):
            size = _bytes_of_items(many) * max(int(times), 0)
            budget.spend(STEP + size, size)
            return
    _TIMES(budget, operands, named)


def _bytes_of_items(many: str | list[Any] | tuple[Any, ...]) -> int:
    """Return the bytes of a list's items, or an upper bound for a text's characters."""
    return len(many) * ((1 if many.isascii() else 4) if isinstance(many, str) else 8)


def _formatting(budget: Budget, operands: tuple[Any, ...], named: dict[str, Any]) -> None:
    if isinstance(operands[0], str):
        raise TooMuch("% formats no text here")
    _arithmetic(50)(budget, operands, named)


_TIMES = _arithmetic(5, grows=lambda one, other: one.bit_length() + other.bit_length())
_FEW = _arithmetic(5)
_DIVISION = _arithmetic(50)
_POWER = _arithmetic(80, grows=lambda base, exponent: base.bit_length() * abs(exponent))
_SHIFT = _arithmetic(5, grows=lambda number, by: number.bit_length() + max(by, 0))

OPERATORS: dict[str, Operation] = {
    "Add": Operation(operator.add, _FEW), "Sub": Operation(operator.sub, _FEW),
    "Mult": Operation(operator.mul, _copies),
    "Div": Operation(operator.truediv, _FEW), "FloorDiv": Operation(operator.floordiv, _DIVISION),
    "Mod": Operation(operator.mod, _formatting), "Pow": Operation(operator.pow, _POWER),
    "LShift": Operation(operator.lshift, _SHIFT), "RShift": Operation(operator.rshift, _FEW),
    "BitOr": Operation(operator.or_, _FEW), "BitXor": Operation(operator.xor, _FEW),
    "BitAnd": Operation(operator.and_, _FEW), "MatMult": Operation(operator.matmul, _matrix_product(batched=True)),
    "Lt": Operation(operator.lt, _comparison), "LtE": Operation(operator.le, _comparison),
    "Gt": Operation(operator.gt, _comparison), "GtE": Operation(operator.ge, _comparison),
    "Eq": Operation(operator.eq, _comparison), "NotEq": Operation(operator.ne, _comparison),
    "In": Operation(lambda one, other: one in other, _membership),
    "NotIn": Operation(lambda one, other: one not in other, _membership),
    "Is": Operation(operator.is_, _small), "IsNot": Operation(operator.is_not, _small),
    "USub": Operation(operator.neg, _elementwise(5)), "UAdd": Operation(operator.pos, _elementwise(5)),
    "Invert": Operation(operator.invert, _elementwise(5)), "Not": Operation(operator.not_, _small),
}  # fmt: skip
"""The operators, by the names of their classes in Python's syntax tree."""

GROWING = frozenset(("Mult", "Pow", "LShift"))
"""The operators whose integer result can be far greater than both operands."""


# Indices.


def charge_index(budget: Budget, of: Any, index: Any) -> None:
    """Charge ``of[index]``."""
    if isinstance(of, np.ndarray):
        budget.spend(STEP)
        items, memory = _picked(budget, of, index)
        budget.spend(5 * items, memory + of.dtype.itemsize * items)
    elif isinstance(of, str | list | tuple):
        budget.spend(STEP + len(of), sys.getsizeof(of) if isinstance(index, slice) else 0)
    else:
        budget.spend(STEP + 5 * budget.extent(index).items)


def _picked(budget: Budget, of: Any, index: Any) -> tuple[int, int]:
    """Return how many elements an index copies from an array (a view: 0), and the bytes of the index itself."""
    parts = index if isinstance(index, tuple) else (index,)
    if all(part is None or part is Ellipsis or type(part) in (int, slice) for part in parts):
        return 0, 0
    shapes: list[tuple[int, ...]] = []
    used, memory = 0, 0
    for part in parts:
        if isinstance(part, str):
            raise TypeError("a tensor has no part of this name")
        if isinstance(part, list | tuple | np.ndarray | np.generic | bool):
            shape, taken, bytes_ = _choice(budget, part)
            shapes.append(shape)
            used, memory = used + taken, memory + bytes_
    plain = [part for part in parts if isinstance(part, int | slice) and not isinstance(part, bool)]
    in_order = used == len(shapes) and not any(part is Ellipsis for part in parts)
    rest = _lengths(of.shape, parts) if in_order else None
    if rest is None:  # a part's position does not give its dimension: assume that the largest dimensions remain
        dimensions = max(len(of.shape) - used - sum(isinstance(part, int) for part in plain), 0)
        rest = sorted(of.shape)[len(of.shape) - dimensions :]
    try:
        return math.prod(np.broadcast_shapes(*shapes)) * math.prod(rest), memory
    except ValueError:  # numpy raises an error about the mismatch
        return 0, memory


def _choice(budget: Budget, part: Any) -> tuple[tuple[int, ...], int, int]:
    """Return the shape of one part of an index, the number of dimensions it indexes, and the bytes it needs."""
    if isinstance(part, bool | np.bool_):
        return (1,), 0, 0
    if isinstance(part, np.ndarray) and part.dtype.kind == "b":
        budget.spend(2 * part.size)
        count = int(np.count_nonzero(part))
        return (count,), part.ndim, 8 * count * max(part.ndim, 1)
    if isinstance(part, np.ndarray | np.generic):
        return part.shape, 1, 8 * part.size
    extent = budget.extent(part)
    if extent.bulky:
        raise TooMuch(_NO_NUMBERS)
    budget.spend(_CONVERSION * extent.items)
    return _shape(part), 1, _WIDEST * extent.items


def _lengths(shape: tuple[int, ...], parts: tuple[Any, ...]) -> list[int]:
    """Return the lengths of sliced dimensions after slicing, and of the dimensions without an index."""
    dimensions, left = iter(shape), []
    for part in parts:
        if part is None or isinstance(part, bool | np.bool_):
            continue
        length = next(dimensions, 1)
        if isinstance(part, slice):
            try:
                left.append(len(range(*part.indices(length))))
            except (TypeError, ValueError):  # numpy raises the error
                left.append(length)
    return [*left, *dimensions]


# Facts.


def fact(budget: Budget, of: Any, name: str) -> Any:
    """Charge an attribute, ``x.shape``. ``imag`` of real numbers is a new array of zeros; the others cost nothing."""
    copies = name == "imag" and isinstance(of, np.ndarray)
    budget.spend(STEP + (of.size if copies else 0), of.nbytes if copies else 0)
    return getattr(of, name)


def charge_keys(budget: Budget, keys: Any) -> Any:
    """Charge the keys of a set or a dictionary: hashing a tuple visits all its items."""
    for key in keys:
        budget.spend(STEP + 5 * budget.extent(key).items)
    return keys


def materialize(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments of a call, with each generator replaced by a list, since its size must be known."""
    return tuple([list(one) if isinstance(one, Iterator) else one for one in arguments])
