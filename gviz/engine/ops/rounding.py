"""To whole numbers, or what is left of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import spaced
from gviz.engine.ops.kernels import only
from gviz.engine.ops.unary import nothing, on, stepwise
from gviz.engine.surface import Runner, derive, derive_all, front
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place
from gviz.values import Array


def _of_floats(kernel: str, function: Callable[[Array], Any]) -> Callable[..., Any]:
    """`function` of floating numbers; integers are whole already."""
    return only("uif", kernel, lambda self: function(self) if self.dtype.kind == "f" else self.copy())


floor = stepwise("floor", "FloorBackward0", "self, rounded down", _of_floats("floor_vml_cpu", np.floor))
ceil = stepwise("ceil", "CeilBackward0", "self, rounded up", _of_floats("ceil_vml_cpu", np.ceil))
trunc = stepwise("trunc", "TruncBackward0", "self without its fraction", _of_floats("trunc_vml_cpu", np.trunc))
round_whole = stepwise(
    "round", "RoundBackward0", "self, rounded to a whole number, halves to even", _of_floats("round_vml_cpu", np.rint)
)


def _rounded(self: Array, decimals: int) -> Any:
    wide = self.astype(np.float32) if self.dtype == np.float16 else self
    scale = wide.dtype.type(10.0 ** abs(decimals))
    rounded = np.rint(wide * scale) / scale if decimals > 0 else np.rint(wide / scale) * scale
    return rounded.astype(self.dtype, copy=False)


round_decimals: Op = Op(
    "round(self, *, decimals)",
    grad_fn="RoundBackward1",
    formula="self, rounded to decimals",
    forward=only("f", "round_cpu", _rounded),
    rules=(Rule("self", "0", nothing),),
    in_place=True,
    public=False,
    examples=lambda: [Example((spaced(2, 3) * 1.01,), {"decimals": d}) for d in (1, -1)],
)
frac: Op = Op(
    "frac(self)",
    grad_fn="FracBackward0",
    formula="the fraction of self",
    forward=only("f", "frac_cpu", lambda self: self - np.trunc(self)),
    rules=(Rule("self", "g", lambda g: g),),
    in_place=True,
    examples=on(lambda *shape: spaced(*shape) * 1.01),
)

derive_all(floor, ceil, frac)
derive(trunc, "fix")


@front("round")
def round_front(input: Tensor, *, decimals: int = 0) -> Tensor:
    """`input` rounded to `decimals` digits after the point, halves to the even digit."""
    return _round(apply, input, decimals)


@front("round_", function=False)
def round_in_place(self: Tensor, *, decimals: int = 0) -> Tensor:
    """Round in place."""
    return _round(apply_in_place, self, decimals)


def _round(run: Runner, self: Tensor, decimals: int) -> Tensor:
    attrs = {"decimals": decimals} if decimals else {}
    result: Tensor = run(round_decimals if decimals else round_whole, (self,), attrs)
    return result
