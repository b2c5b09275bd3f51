"""Signs and sizes of numbers, and what is no number."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import isfinite, where_op
from gviz.engine.ops.examples import positive, spaced
from gviz.engine.ops.kernels import check_broadcast, only
from gviz.engine.ops.overloads import Overloads
from gviz.engine.ops.unary import nothing, on, stepwise
from gviz.engine.surface import derive, derive_all, front
from gviz.engine.tensor import Tensor
from gviz.values import Array


def _sign(self: Array) -> Any:
    """-1, 0 or 1, and 0 for what is no number."""
    if self.dtype.kind == "b":
        return self.copy()
    return np.greater(self, 0).astype(self.dtype) - np.less(self, 0).astype(self.dtype)


sign = stepwise("sign", "SignBackward0", "sign of self", _sign)
sgn: Op = Op(
    "sgn(self)",
    grad_fn="SgnBackward0",
    formula="sign of self",
    pointwise=True,
    forward=_sign,
    rules=(Rule("self", "0", lambda g, self, result: nothing(g)),),  # they serve complex numbers only
    in_place=True,
    public=False,
    examples=on(spaced),
)
absolute: Op = Op(
    "abs(self)",
    grad_fn="AbsBackward0",
    formula="|self|",
    pointwise=True,
    forward=only("uif", "abs_cpu", np.abs),
    rules=(Rule("self", "g * sign(self)", lambda g, self: g * sign(self)),),
    in_place=True,
    examples=on(spaced),
)


def _as_signed(g: Any, self: Any, result: Any) -> Any:
    return g * where_op(self == 0, zeros(g, ()), result / self)


def _copysign(grad_fn: str, *rules: Rule) -> Op:
    return Op(
        "copysign(self, other)",
        grad_fn=grad_fn,
        formula="|self| with the sign of other",
        forward=np.copysign,
        rules=(Rule("self", "g with the sign it gave self, 0 where self is 0", _as_signed), *rules),
        promotes="float",
        public=False,
        examples=lambda: [Example((spaced(2, 3), spaced(3)), {})],
    )


copysign = _copysign("CopysignBackward0", Rule("other", "0", nothing))
copysign_number = _copysign("CopysignBackward1")


def _nan_to_num(self: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    if self.dtype.kind != "f":
        return self.copy()
    return np.nan_to_num(self, nan=nan or 0.0, posinf=posinf, neginf=neginf)


nan_to_num: Op = Op(
    "nan_to_num(self, *, nan=None, posinf=None, neginf=None)",
    grad_fn="NanToNumBackward0",
    formula="self, with nan and infinities replaced",
    pointwise=True,
    forward=_nan_to_num,
    rules=(Rule("self", "g where self is finite, else 0", lambda g, self: where_op(isfinite(self), g, zeros(g, ()))),),
    in_place=True,
    examples=lambda: [Example((spaced(2, 3),), {"nan": 1.5, "posinf": None, "neginf": None})],
)
signbit: Op = Op(
    "signbit(self)",
    grad_fn="",
    formula="self has a minus",
    pointwise=True,
    forward=lambda self: np.signbit(self) if self.dtype.kind == "f" else np.less(self, 0),
)


def _unknown(g: Any) -> Any:
    raise RuntimeError("derivative for aten::heaviside is not implemented")


def _heaviside(self: Array, values: Array) -> Any:
    if self.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    check_broadcast(self, values)
    return np.where(self == 0, values, (self > 0).astype(self.dtype))


heaviside: Op = Op(
    "heaviside(self, values)",
    grad_fn="NotImplemented",
    formula="0 below 0, values at 0, 1 above",
    pointwise=True,
    forward=_heaviside,
    rules=(Rule("self", "none", _unknown), Rule("values", "none", _unknown)),
    in_place=True,
    examples=lambda: [Example((spaced(2, 3), positive(3)), {})],
)

derive_all(sign, sgn, nan_to_num, signbit)
derive(absolute, "absolute")
derive(heaviside, numbers=False)
Overloads(copysign, copysign_number).offer()
front("__abs__", function=False)(Tensor.abs)
