"""Comparisons, and what kind of number something is. Their results are booleans, through which no gradient flows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.apply import apply, zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.kernels import check_broadcast
from gviz.engine.ops.unary import nothing
from gviz.engine.surface import Number, checked, derive, derive_all, front, number, operand, operator
from gviz.engine.tensor import Tensor, count_writes
from gviz.engine.views import apply_in_place
from gviz.values import Array


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
isreal: Op = Op("isreal(self)", grad_fn="", formula="is real", forward=lambda self: np.ones(self.shape, np.bool_))
isposinf: Op = Op("isposinf(self)", grad_fn="", formula="is inf", forward=lambda self: self == np.inf)
isneginf: Op = Op("isneginf(self)", grad_fn="", formula="is -inf", forward=lambda self: self == -np.inf)


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
    """The comparison as an op that writes its result over `self`, of which nothing is left to have a gradient."""
    return Op(
        op.signature,
        grad_fn=f"{op.name.title()}Backward{int(by_tensor)}",
        formula=op.formula,
        forward=op.forward,
        rules=[Rule(slot, "0", nothing) for slot in (op.slots if by_tensor else op.slots[:1])],
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
    """Where `input` and `other` are nearly equal."""
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
    """`input` where `condition` holds, else `other`, element by element; alone, the places where it holds."""
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
    """Both as tensors: of two numbers the kinder decides, a number beside a tensor takes its dtype."""
    if isinstance(input, Tensor):
        return input, operand(where_op, other, input, 3)
    if isinstance(other, Tensor):
        return operand(where_op, input, other, 2), other
    kind = dtypes.get_default_dtype().numpy if float in (type(input), type(other)) else np.dtype(np.int64)
    like = np.zeros((), np.bool_ if type(input) is type(other) is bool else kind)
    return number(input, like), number(other, like)
