"""Losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import apply
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.tensor import Tensor


def _difference(g: Any, self: Any, target: Any, reduction: str) -> Any:
    scale = 2.0 / max(int(np.prod(self.shape)), 1) if reduction == "mean" else 2.0
    return g * ((self - target) * scale)


def _mse(self: Any, target: Any, reduction: str) -> Any:
    squares = np.square(self - target)
    return squares if reduction == "none" else np.mean(squares) if reduction == "mean" else np.sum(squares)


mse: Op = Op(
    "mse_loss(self, target, *, reduction='mean')",
    grad_fn="MseLossBackward0",
    formula="mean of (self - target)**2",
    forward=_mse,
    rules=(
        Rule("self", "g * 2 * (self - target) / number of elements", _difference),
        Rule(
            "target",
            "-g * 2 * (self - target) / number of elements",
            lambda g, self, target, reduction: -_difference(g, self, target, reduction),
        ),
    ),
    promotes=True,
    public=False,
    examples=lambda: [Example((normal(3), normal(3)), {"reduction": r}) for r in ("mean", "sum", "none")],
)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean (or ``sum``, or ``none``) of the squared differences."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    shape = np.broadcast_shapes(tuple(input.shape), tuple(target.shape))
    wide = [t if tuple(t.shape) == shape else t.expand(*shape) for t in (input, target)]
    result: Tensor = apply(mse, wide, {"reduction": reduction})
    return result
