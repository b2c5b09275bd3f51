"""The rectified linear unit."""

from __future__ import annotations

import numpy as np

from gviz.engine.op import Op, Rule
from gviz.engine.ops.examples import spaced
from gviz.engine.ops.unary import on
from gviz.engine.surface import derive

step: Op = Op(
    "heaviside(self)",
    grad_fn="HeavisideBackward0",
    formula="1 where self > 0, else 0",
    forward=lambda self: (self > 0).astype(self.dtype),
    untracked="dtype",
    public=False,
)
relu: Op = Op(
    "relu(self)",
    grad_fn="ReluBackward0",
    formula="max(self, 0)",
    forward=lambda self: np.maximum(self, np.zeros((), self.dtype)),
    rules=(Rule("self", "g where result > 0, else 0", lambda g, result: g * step(result)),),
    in_place=True,
    examples=on(spaced),
)

derive(relu)
