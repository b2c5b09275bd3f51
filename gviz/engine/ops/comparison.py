"""Comparisons, logic, bits, and limits: ``eq``, ``where``, ``logical_and``, ``maximum``, ``clamp``, ``isin``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.functions_and_methods import (
    Number,
    Runner,
    checked,
    derive,
    derive_all,
    front,
    in_place,
    number,
    operand,
    operator,
    reflected,
    signature,
)
from gviz.engine.op import Example, Op, Reading, Rule, apply, zero_gradient, zeros
from gviz.engine.ops._examples import normal, spaced
from gviz.engine.ops._kernels import Forward, at_least, at_most, check_broadcast, only, refuse_unless
from gviz.engine.ops.shape import run
from gviz.engine.tensor import Tensor, count_writes
from gviz.engine.views import apply_in_place, check_writable
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Comparisons, and tests of numbers. Their results are booleans, which have no gradient.


def _comparison(name: str, sign: str, forward: Callable[..., Any]) -> Op:
    return Op(f"{name}(self, other)", grad_fn="", formula=f"self {sign} other", forward=forward, promotes=True)


eq = _comparison("eq", "==", np.equal)
ne = _comparison("ne", "!=", np.not_equal)
lt = _comparison("lt", "<", np.less)
le = _comparison("le", "<=", np.less_equal)
gt = _comparison("gt", ">", np.greater)
ge = _comparison("ge", ">=", np.greater_equal)
ALIASES = {eq: [], ne: ["not_equal"], lt: ["less"], le: ["less_equal"], gt: ["greater"], ge: ["greater_equal"]}

isnan: Op = Op("isnan(self)", grad_fn="", formula="is nan", forward=np.isnan)
isinf: Op = Op("isinf(self)", grad_fn="", formula="is infinite", forward=np.isinf)
isfinite: Op = Op("isfinite(self)", grad_fn="", formula="is finite", forward=np.isfinite)
isreal: Op = Op(
    "isreal(self)", grad_fn="", formula="is real", forward=lambda self: np.ones(self.shape, np.bool_), pointwise=True
)
isposinf: Op = Op("isposinf(self)", grad_fn="", formula="is inf", forward=lambda self: self == np.inf, pointwise=True)
isneginf: Op = Op("isneginf(self)", grad_fn="", formula="is -inf", forward=lambda self: self == -np.inf, pointwise=True)


def _close(self: Array, other: Array, rtol: float, atol: float, equal_nan: bool) -> Any:
    if self.dtype != other.dtype:
        raise RuntimeError(f"{dtypes.of(self).tensor_type} did not match {dtypes.of(other).tensor_type}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance:g}")
    check_broadcast(self, other)
    return np.isclose(self, other, rtol, atol, equal_nan)


isclose: Op = Op(
    "isclose(self, other, *, rtol=1e-05, atol=1e-08, equal_nan=False)",
    grad_fn="",
    formula="|self - other| <= atol + rtol * |other|",
    forward=_close,
    pointwise=True,
)


def _written(op: Op, *, by_tensor: bool) -> Op:
    """Return the comparison as an op that writes its result to `self`, which then has no gradient."""
    return Op(
        op.signature,
        grad_fn=f"{op.name.title()}Backward{int(by_tensor)}",
        formula=op.formula,
        forward=op.forward,
        rules=[Rule(slot, "0", zero_gradient) for slot in (op.slots if by_tensor else op.slots[:1])],
        promotes=True,
        public=False,
        examples=lambda: [Example((normal(2, 3), normal(3)), {})],
    )


def _offer_in_place(op: Op, aliases: Sequence[str]) -> None:
    by_number, by_tensor = _written(op, by_tensor=False), _written(op, by_tensor=True)

    def method(self: Tensor, other: Tensor | Number) -> Tensor:
        written = by_tensor if isinstance(other, Tensor) else by_number
        return apply_in_place(written, (self, operand(op, other, self)), {})

    method.__name__ = method.__qualname__ = op.name + "_"
    front(*(name + "_" for name in (op.name, *aliases)), function=False)(method)


for op, aliases in ALIASES.items():
    derive(op, *aliases)
    front(f"__{op.name}__", function=False)(operator(op, takes_arrays=op is eq))  # as in PyTorch, the only one
    _offer_in_place(op, aliases)
derive_all(isnan, isinf, isfinite, isreal, isposinf, isneginf)


@front("isclose")
def isclose_front(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether `input` and `other` are nearly equal, element by element."""
    other = checked(isclose, other, 2)
    result: Tensor = apply(isclose, (input, other), {"rtol": rtol, "atol": atol, "equal_nan": equal_nan})
    return count_writes(result, 2 if equal_nan and input.dtype.is_floating_point else 1)


def _where(condition: Array, self: Array, other: Array) -> Any:
    if condition.dtype.kind != "b" and condition.dtype != np.uint8:
        kind = dtypes.of(condition).tensor_type
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {kind}")
    chosen = np.where(condition, self, other)
    return chosen if self.dtype == other.dtype else chosen.astype(dtypes.promote((self, other)))


where_op: Op = Op(
    "where(condition, self, other)",
    grad_fn="WhereBackward0",
    formula="self where condition, else other",
    forward=_where,
    rules=(
        Rule("self", "g where condition, else 0", lambda g, condition: where_op(condition, g, zeros(g, ()))),
        Rule("other", "0 where condition, else g", lambda g, condition: where_op(condition, zeros(g, ()), g)),
    ),
    public=False,
    torch="where",
    pointwise=True,
    examples=lambda: [Example((normal(2, 3) > 0, normal(2, 3), normal(3)), {})],
)


@front("where", method=False)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` holds, else `other`; with `condition` only, the indices where it holds."""
    checked(where_op, condition, 1)
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    chosen, rejected = _choices(input, other)
    check_broadcast(condition._array, chosen._array, rejected._array)
    return apply(where_op, (condition, chosen, rejected))


@front("where", function=False)
def where_method(self: Tensor, condition: Tensor, other: Tensor | Number) -> Tensor:
    """This tensor where `condition` holds, else `other`."""
    result: Tensor = where(condition, self, other)
    return result


def _choices(input: Any, other: Any) -> tuple[Tensor, Tensor]:
    """Return both as tensors. Two numbers take the dtype of the wider kind; a number next to a tensor takes
    its dtype.
    """
    if isinstance(input, Tensor):
        return input, operand(where_op, other, input, 3)
    if isinstance(other, Tensor):
        return operand(where_op, input, other, 2), other
    kind = dtypes.get_default_dtype().numpy if float in (type(input), type(other)) else np.dtype(np.int64)
    like = np.zeros((), np.bool_ if type(input) is type(other) is bool else kind)
    return number(input, like), number(other, like)


# ----------------------------------------------------------------------------------------------------------------------
# Logic of truth values and bitwise operations on integers.


logical_not: Op = Op("logical_not(self)", grad_fn="", formula="not self", forward=np.logical_not, in_place=True)


def _logical(name: str, word: str, forward: Callable[..., Any]) -> Op:
    return Op(
        f"logical_{name}(self, other)",
        grad_fn="",
        formula=f"self {word} other",
        forward=forward,
        promotes=True,
        in_place=True,
    )


logical_and = _logical("and", "and", np.logical_and)
logical_or = _logical("or", "or", np.logical_or)
logical_xor = _logical("xor", "or else", np.logical_xor)

bitwise_not: Op = Op(
    "bitwise_not(self)",
    grad_fn="",
    formula="~self",
    forward=only("bui", "bitwise_not_cpu", np.invert),
    in_place=True,
    pointwise=True,
)


def _bitwise(name: str, sign: str, forward: Forward) -> Op:
    return Op(
        f"bitwise_{name}(self, other)",
        grad_fn="",
        formula=f"self {sign} other",
        forward=forward,
        promotes=True,
        in_place=True,
    )


def _shift(kernel: str, forward: Callable[[Array, Array, Array], Any]) -> Forward:
    def shifted(self: Array, other: Array) -> Any:
        refuse_unless(self.dtype.kind in "ui", kernel, self)
        beyond = np.less(other, 0) | np.greater_equal(other, self.dtype.itemsize * 8)
        return forward(self, np.where(beyond, np.zeros((), other.dtype), other), beyond)

    return shifted


def _right(self: Array, other: Array, beyond: Array) -> Any:
    return np.where(beyond, np.less(self, 0) * np.array(-1).astype(self.dtype), np.right_shift(self, other))


bitwise_and = _bitwise("and", "&", only("bui", "bitwise_and_cpu", np.bitwise_and))
bitwise_or = _bitwise("or", "|", only("bui", "bitwise_or_cpu", np.bitwise_or))
bitwise_xor = _bitwise("xor", "^", only("bui", "bitwise_xor_cpu", np.bitwise_xor))
bitwise_left_shift = _bitwise(
    "left_shift",
    "<<",
    _shift("lshift_cpu", lambda a, b, beyond: np.where(beyond, np.zeros((), a.dtype), np.left_shift(a, b))),
)
bitwise_right_shift = _bitwise("right_shift", ">>", _shift("rshift_cpu", _right))


def _refused_of_leaves(op: Op) -> Callable[..., Any]:
    """The method that writes in place. The op has no gradient, so autograd refuses tensors that require one."""
    write = in_place(op)

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        check_writable(self, *args, **kwargs)
        return write(self, *args, **kwargs)

    method.__name__, method.__signature__ = op.name + "_", signature(op)  # type: ignore[attr-defined]
    return method


derive_all(logical_not, bitwise_not)
derive_all(logical_and, logical_or, logical_xor, numbers=False)
OPERATORS = {
    "and": bitwise_and,
    "or": bitwise_or,
    "xor": bitwise_xor,
    "lshift": bitwise_left_shift,
    "rshift": bitwise_right_shift,
}
for name, op in OPERATORS.items():
    derive(op, number_first=True)
    front(f"__{name}__", function=False)(operator(op))
    front(f"__r{name}__", function=False)(reflected(op))
    front(f"__i{name}__", function=False)(_refused_of_leaves(op))
for op in (*OPERATORS.values(), bitwise_not):
    front(op.name + "_", function=False, checks=True)(_refused_of_leaves(op))


@front("__invert__", function=False)
def invert(self: Tensor) -> Tensor:
    """``~self``. Raises TypeError for floating numbers."""
    if self._array.dtype.kind == "f":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    result: Tensor = apply(bitwise_not, (self,))
    return result


# ----------------------------------------------------------------------------------------------------------------------
# The larger or smaller of two, element by element, and limits.


def _pairs() -> list[Example]:
    return [Example((normal(2, 3), normal(3)), {}), Example((normal(), normal()), {})]


def _larger(name: str, forward: Callable[..., Any], loses: Op, sign: str) -> Op:
    """If the two are equal, each gets half of the gradient."""

    def share(g: Any, mine: Any, its: Any) -> Any:
        return where_op(loses(mine, its), zeros(g, ()), where_op(eq(mine, its), g / 2, g))

    return Op(
        f"{name}(self, other)",
        grad_fn=f"{name.title()}Backward0",
        formula=f"{name} of self and other",
        forward=forward,
        rules=(
            Rule("self", f"g where self {sign} other, half where equal", lambda g, self, other: share(g, self, other)),
            Rule("other", f"g where other {sign} self, half where equal", lambda g, self, other: share(g, other, self)),
        ),
        promotes=True,
        examples=_pairs,
    )


def _number_wins(name: str, forward: Callable[..., Any], wins: Op, sign: str) -> Op:
    """Return what `self` gets of the gradient: numbers take precedence over nan, and `self` over an equal number."""

    def chosen(self: Any, other: Any) -> Any:
        return wins(self, other) | isnan(other)

    return Op(
        f"{name}(self, other)",
        grad_fn=f"{name.title()}Backward0",
        formula=f"{name} of self and other, nan only where both are",
        forward=forward,
        rules=(
            Rule(
                "self",
                f"g where self {sign} other, else 0",
                lambda g, self, other: where_op(chosen(self, other), g, zeros(g, ())),
            ),
            Rule(
                "other",
                f"0 where self {sign} other, else g",
                lambda g, self, other: where_op(chosen(self, other), zeros(g, ()), g),
            ),
        ),
        promotes=True,
        examples=_pairs,
    )


def _first_if(wins: Callable[[Array, Array], Any]) -> Callable[[Array, Array], Any]:
    """Choose the first of two equal numbers: NumPy's choice between 0 and -0 depends on their place in memory."""
    return lambda self, other: np.where(wins(self, other) | (other != other), self, other)


maximum = _larger("maximum", np.maximum, lt, ">")
minimum = _larger("minimum", np.minimum, gt, "<")
fmax = _number_wins("fmax", _first_if(np.greater_equal), ge, ">=")
fmin = _number_wins("fmin", _first_if(np.less_equal), le, "<=")
derive_all(maximum, minimum, fmax, fmin, numbers=False)


def _limited(self: Array, min: Any, max: Any) -> Array:
    """`self` limited to a range, in the common dtype. nan is kept."""
    limits = [m if m is None or isinstance(m, np.ndarray) else _of(m, self) for m in (min, max)]
    check_broadcast(self, *[m for m in limits if m is not None])
    common = dtypes.promote([self, *[m for m in limits if m is not None]])
    if common.kind == "b":
        _refuse_booleans(self, min, max)
    low, high = (None if m is None else m.astype(common) for m in limits)
    result = self.astype(common) if low is None else at_least(self.astype(common), low)
    return result if high is None else at_most(result, high)


def _refuse_booleans(self: Array, min: Any, max: Any) -> None:
    """Raise an error for booleans: PyTorch's kernels limit them only by one tensor."""
    by_tensors = isinstance(min, np.ndarray) or isinstance(max, np.ndarray)
    sides = [name for name, limit in (("min", min), ("max", max)) if limit is not None]
    names = ["clamp", *(sides if len(sides) == 1 else []), *([] if by_tensors else ["scalar"]), "cpu"]
    refuse_unless(by_tensors and len(sides) == 1, "_".join(names), self)


def _of(limit: Number, self: Array) -> Array:
    kind = dtypes.scalar_dtype(limit, self.dtype)
    if kind.kind in "iu" and not np.iinfo(kind).min <= limit <= np.iinfo(kind).max:
        raise RuntimeError(f"value cannot be converted to type {kind.name}_t without overflow")
    return np.array(limit, kind)


def _inside(g: Any, self: Any, min: Any, max: Any) -> Any:
    """Return the gradient of the limited tensor: passed on inside the range and on its border."""
    if min is not None:
        g = where_op(self >= min, g, zeros(g, ()))
    return g if max is None else where_op(self <= max, g, zeros(g, ()))


def _at_min(g: Any, self: Any, min: Any, max: Any) -> Any:
    below = self < min if max is None else (self < min) & (min < max)
    return where_op(below, g, zeros(g, ()))


def _at_max(g: Any, self: Any, min: Any, max: Any) -> Any:
    above = self > max if min is None else (self > max) | (max < min)
    return where_op(above, g, zeros(g, ()))


class Limits(Op):
    """Limits by tensors; a node shows the absent one as None."""

    def saved_properties(self) -> dict[str, property]:
        return super().saved_properties() | dict.fromkeys(self.absent, property(lambda node: None))


INSIDE = "g where min <= self <= max, else 0"
clamp: Op = Op(
    "clamp(self, *, min=None, max=None)",
    grad_fn="ClampBackward1",
    formula="self, at least min, at most max",
    readings=(
        Reading((("min", "None"),), "self, at most max"),
        Reading((("max", "None"),), "self, at least min"),
    ),
    pointwise=True,
    forward=_limited,
    rules=(Rule("self", INSIDE, _inside),),
    in_place=True,
    public=False,
    torch="clamp",
    examples=lambda: [
        Example((spaced(2, 3),), {"min": -0.6, "max": 0.6}),
        Example((spaced(4),), {"min": 0.1, "max": None}),
        Example((spaced(4),), {"min": None, "max": 0.1}),
    ],
)
clamp_tensors: Op = Limits(
    "clamp(self, min?, max?)",
    grad_fn="ClampBackward0",
    formula=clamp.formula,
    readings=(
        Reading((), clamp.formula, beside=("min", "max")),
        Reading((), "self, at least min", beside=("min",)),
        Reading((), "self, at most max", beside=("max",)),
    ),
    pointwise=True,
    forward=_limited,
    rules=(
        Rule("self", INSIDE, _inside),
        Rule("min", "g where self < min < max, else 0", _at_min),
        Rule("max", "g where self > max or max < min, else 0", _at_max),
    ),
    in_place=True,
    public=False,
    torch="clamp",
    examples=lambda: [
        Example((spaced(2, 3), spaced(3) - 1.1, spaced(3) + 1.1), {}),
        Example((spaced(2, 3), None, normal(3)), {}),
        Example((spaced(2, 3), normal(3), None), {}),
    ],
)


ABOVE = Rule("self", "g where self >= min, else 0", lambda g, self, min: _inside(g, self, min, None))
BELOW = Rule("self", "g where self <= max, else 0", lambda g, self, max: _inside(g, self, None, max))
LOW = Rule("min", "g where self < min, else 0", lambda g, self, min: _at_min(g, self, min, None))
HIGH = Rule("max", "g where self > max, else 0", lambda g, self, max: _at_max(g, self, None, max))


def _one_sided(signature: str, grad_fn: str, forward: Callable[..., Array], *rules: Rule) -> Op:
    limit = "min" if "min" in rules[0].text else "max"
    by_tensor = "*" not in signature
    return Op(
        signature,
        grad_fn=grad_fn,
        formula=f"self, limited by {limit}",
        pointwise=True,
        forward=forward,
        rules=rules,
        in_place=True,
        public=False,
        torch=f"clamp_{limit}",
        examples=lambda: [
            Example((spaced(2, 3), normal(3)), {}) if by_tensor else Example((spaced(2, 3),), {limit: 0.1})
        ],
    )


def _at_least(self: Array, min: Any) -> Array:
    return _limited(self, min, None)


def _at_most(self: Array, max: Any) -> Array:
    return _limited(self, None, max)


clamp_min = _one_sided("clamp_min(self, *, min)", "ClampMinBackward0", _at_least, ABOVE)
clamp_max = _one_sided("clamp_max(self, *, max)", "ClampMaxBackward0", _at_most, BELOW)
clamp_min_tensor = _one_sided("clamp_min(self, min)", "ClampMinBackward1", _at_least, ABOVE, LOW)
clamp_max_tensor = _one_sided("clamp_max(self, max)", "ClampMaxBackward1", _at_most, BELOW, HIGH)


@front("clamp", "clip")
def clamp_front(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """`input` limited to the range from `min` to `max`, one of which may be omitted."""
    return _clamped(apply, input, min, max)


@front("clamp_", "clip_", function=False)
def clamp_in_place(self: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """Limits in place."""
    return _clamped(apply_in_place, self, min, max)


@front("clamp_min")
def clamp_min_front(input: Tensor, min: Tensor | Number) -> Tensor:
    """`input`, at least `min`."""
    return _one_limit(apply, input, "min", min)


@front("clamp_min_", function=False)
def clamp_min_in_place(self: Tensor, min: Tensor | Number) -> Tensor:
    """Limits from below in place."""
    return _one_limit(apply_in_place, self, "min", min)


@front("clamp_max")
def clamp_max_front(input: Tensor, max: Tensor | Number) -> Tensor:
    """`input`, at most `max`."""
    return _one_limit(apply, input, "max", max)


@front("clamp_max_", function=False)
def clamp_max_in_place(self: Tensor, max: Tensor | Number) -> Tensor:
    """Limits from above in place."""
    return _one_limit(apply_in_place, self, "max", max)


def _clamped(run: Runner, self: Tensor, min: Tensor | Number | None, max: Tensor | Number | None) -> Tensor:
    checked(clamp, self, 1)
    limits = [m for m in (min, max) if m is not None]
    if not limits:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if all(isinstance(m, Tensor) for m in limits):
        op, tensors = clamp_tensors.present((self, min, max))
        by_tensors: Tensor = run(op, tensors, {})
        return by_tensors
    attrs = {"min": _number(min), "max": _number(max)}
    if run is apply_in_place:
        _check_kept(self, attrs.values())
    result: Tensor = run(clamp, (self,), attrs)
    return result


def _check_kept(self: Tensor, limits: Iterable[Number | None]) -> None:
    """Raises RuntimeError, in the words that PyTorch has only here, for limits that would change the dtype in place."""
    kinds = [dtypes.scalar_dtype(limit, self._array.dtype) for limit in limits if limit is not None]
    common = dtypes.promote([self._array, *[np.zeros((), kind) for kind in kinds]])
    if not dtypes.castable(common, self._array.dtype):
        source, target = dtypes.of_numpy(common).tensor_type, self.dtype.cpp_name
        check_writable(self)
        raise RuntimeError(f"result type {source} can't be cast to the desired output type {target}")


def _one_limit(run: Runner, self: Tensor, side: str, limit: Tensor | Number) -> Tensor:
    checked(clamp, self, 1)
    if isinstance(limit, Tensor):
        by_tensor: Tensor = run(clamp_min_tensor if side == "min" else clamp_max_tensor, (self, limit), {})
        return by_tensor
    if limit is None:
        raise TypeError(f"clamp_{side}() received an invalid combination of arguments - got (NoneType)")
    if run is apply_in_place:
        _check_kept(self, [_number(limit)])
    result: Tensor = run(clamp_min if side == "min" else clamp_max, (self,), {side: _number(limit)})
    return result


def _number(limit: Tensor | Number | None) -> Number | None:
    """Return a limit as a number; accepts a 0-dimensional tensor. Raises TypeError for anything else."""
    if isinstance(limit, Tensor) and not limit.ndim and not limit.requires_grad:
        plain: Number = limit.item()
        return plain
    if limit is None or isinstance(limit, (bool, int, float)):
        return limit
    if isinstance(limit, np.number):
        return limit.item()
    raise TypeError(f"clamp() received an invalid combination of arguments - got {type(limit).__name__} as a limit")


# ----------------------------------------------------------------------------------------------------------------------
# Membership of elements in others.


isin_op: Op = Op(
    "isin(elements, test_elements, *, invert=False)",
    grad_fn="",
    formula="whether each of elements is among test_elements",
    forward=lambda elements, test_elements, invert: np.isin(elements, test_elements, invert=invert),
    promotes=True,
    public=False,
)


@front("isin", method=False)
def isin(
    elements: Tensor | Number, test_elements: Tensor | Number, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each of `elements` is among `test_elements`."""
    for one in (elements, test_elements):
        if isinstance(one, Tensor) and one.dtype.name == "bool":
            raise RuntimeError("Unsupported input type encountered for isin(): Bool")
    if isinstance(elements, Tensor):
        tested = test_elements if isinstance(test_elements, Tensor) else number(test_elements, elements._array)
        return run(isin_op, elements, tested, invert=invert)
    if not isinstance(test_elements, Tensor):
        raise TypeError("isin(): one of elements and test_elements must be a Tensor")
    return run(isin_op, number(elements, test_elements._array), test_elements, invert=invert)
