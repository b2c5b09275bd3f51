"""The larger or smaller of two, element by element, and limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.apply import apply, zeros
from gviz.engine.op import Example, Op, Reading, Rule
from gviz.engine.ops.comparison import eq, ge, gt, isnan, le, lt, where_op
from gviz.engine.ops.examples import normal, spaced
from gviz.engine.ops.kernels import check_broadcast, refuse_unless
from gviz.engine.surface import Number, Runner, checked, derive_all, front
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array


def _pairs() -> list[Example]:
    return [Example((normal(2, 3), normal(3)), {}), Example((normal(), normal()), {})]


def _larger(name: str, forward: Callable[..., Any], loses: Op, sign: str) -> Op:
    """Where the two are equal, each gets half of the gradient."""

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
    """A number wins over nan; where the two are equal, `self` gets the gradient."""

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


maximum = _larger("maximum", np.maximum, lt, ">")
minimum = _larger("minimum", np.minimum, gt, "<")
fmax = _number_wins("fmax", np.fmax, ge, ">=")
fmin = _number_wins("fmin", np.fmin, le, "<=")
derive_all(maximum, minimum, fmax, fmin, numbers=False)


def _limited(self: Array, min: Any, max: Any) -> Array:
    """`self` between the limits, in the dtype of all of them. What is no number stays so."""
    limits = [m if m is None or isinstance(m, np.ndarray) else _of(m, self) for m in (min, max)]
    check_broadcast(self, *[m for m in limits if m is not None])
    common = dtypes.promote([self, *[m for m in limits if m is not None]])
    if common.kind == "b":
        _refuse_booleans(self, min, max)
    low, high = (None if m is None else m.astype(common) for m in limits)
    result = self.astype(common) if low is None else np.maximum(self.astype(common), low)
    limited: Array = result if high is None else np.minimum(result, high)
    return limited


def _refuse_booleans(self: Array, min: Any, max: Any) -> None:
    """PyTorch's kernels limit booleans only by one tensor."""
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
    """The gradient of what was limited: all of it on the border too."""
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
    """Limits by tensors, of which a node shows the one that is not there as None."""

    def shown(self) -> dict[str, property]:
        return super().shown() | dict.fromkeys(self.absent, property(lambda node: None))


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
    """`input`, at least `min` and at most `max`, of which one may be left out."""
    return _clamped(apply, input, min, max)


@front("clamp_", "clip_", function=False)
def clamp_in_place(self: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """Limit in place."""
    return _clamped(apply_in_place, self, min, max)


@front("clamp_min")
def clamp_min_front(input: Tensor, min: Tensor | Number) -> Tensor:
    """`input`, at least `min`."""
    return _one_limit(apply, input, "min", min)


@front("clamp_min_", function=False)
def clamp_min_in_place(self: Tensor, min: Tensor | Number) -> Tensor:
    """Limit from below in place."""
    return _one_limit(apply_in_place, self, "min", min)


@front("clamp_max")
def clamp_max_front(input: Tensor, max: Tensor | Number) -> Tensor:
    """`input`, at most `max`."""
    return _one_limit(apply, input, "max", max)


@front("clamp_max_", function=False)
def clamp_max_in_place(self: Tensor, max: Tensor | Number) -> Tensor:
    """Limit from above in place."""
    return _one_limit(apply_in_place, self, "max", max)


def _clamped(run: Runner, self: Tensor, min: Tensor | Number | None, max: Tensor | Number | None) -> Tensor:
    checked(clamp, self, 1)
    given = [m for m in (min, max) if m is not None]
    if not given:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if all(isinstance(m, Tensor) for m in given):
        op, tensors = clamp_tensors.present((self, min, max))
        by_tensors: Tensor = run(op, tensors, {})
        return by_tensors
    attrs = {"min": _number(min), "max": _number(max)}
    result: Tensor = run(clamp, (self,), attrs)
    return result


def _one_limit(run: Runner, self: Tensor, side: str, limit: Tensor | Number) -> Tensor:
    checked(clamp, self, 1)
    if isinstance(limit, Tensor):
        by_tensor: Tensor = run(clamp_min_tensor if side == "min" else clamp_max_tensor, (self, limit), {})
        return by_tensor
    if limit is None:
        raise TypeError(f"clamp_{side}() received an invalid combination of arguments - got (NoneType)")
    result: Tensor = run(clamp_min if side == "min" else clamp_max, (self,), {side: _number(limit)})
    return result


def _number(limit: Tensor | Number | None) -> Number | None:
    """A limit as a number, also one in a tensor without dimensions. TypeError for what is none."""
    if isinstance(limit, Tensor) and not limit.ndim and not limit.requires_grad:
        plain: Number = limit.item()
        return plain
    if limit is None or isinstance(limit, (bool, int, float)):
        return limit
    if isinstance(limit, np.number):
        return limit.item()
    raise TypeError(f"clamp() received an invalid combination of arguments - got {type(limit).__name__} as a limit")
