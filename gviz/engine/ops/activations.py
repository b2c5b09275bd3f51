"""Activations with a kink: relu and its relatives. Those made of other operations are in ``nn.functional``."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.examples import normal, spaced
from gviz.engine.ops.kernels import only, refuse_unless
from gviz.engine.ops.unary import on
from gviz.engine.surface import derive
from gviz.engine.tensor import Tensor
from gviz.values import Array

NEGATIVE_SLOPE = (
    "In-place {name} backward calculation is triggered with a negative slope which is not supported. This is caused by "
    "calling in-place forward function with a negative slope, please call out-of-place version instead"
)


def chosen(condition: Any, g: Any) -> Any:
    """`g` where `condition` holds, else zero; for use inside rules."""
    return where_op(condition, g, zeros(g, ()))


def _relu(self: Array) -> Any:
    if self.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    return np.maximum(self, np.zeros((), self.dtype))


def _cut(self: Array, at: Array) -> Any:
    below = at <= 0
    kept = self * ~below
    # What was infinite is nan now where it should be 0; to look for that is cheaper than to choose every element.
    clean = np.ravel(kept)
    return np.where(below, self.dtype.type(0), self) if np.isnan(np.dot(clean, clean)) else kept


cut: Op = Op(
    "threshold_backward(self, at)",
    grad_fn="ThresholdBackwardBackward0",
    formula="self, 0 where at <= 0",
    pointwise=True,
    forward=_cut,
    rules=(Rule("self", "g, 0 where at <= 0", lambda g, at: cut(g, at)),),
    public=False,
    examples=lambda: [Example((spaced(2, 3), spaced(2, 3)), {})],
)
relu: Op = Op(
    "relu(self)",
    grad_fn="ReluBackward0",
    formula="max(self, 0)",
    pointwise=True,
    forward=_relu,
    rules=(Rule("self", "g where result > 0, else 0", lambda g, result: cut(g, result)),),
    in_place=True,
    examples=on(spaced),
)
derive(relu)


def _through_written_leaky(g: Any, result: Any, negative_slope: float) -> Any:
    if negative_slope < 0:
        raise RuntimeError(
            NEGATIVE_SLOPE.format(name="leakyReLu") + ". File an issue at https://github.com/pytorch/pytorch if you do "
            "require supporting in-place leakRelu backward calculation with negative slope"
        )
    return where_op(result > 0, g, g * negative_slope)


def _leaky(self: Array, negative_slope: float) -> Any:
    return np.where(self > 0, self, self * negative_slope)


leaky_relu: Op = Op(
    "leaky_relu(self, *, negative_slope=0.01)",
    grad_fn="LeakyReluBackward0",
    formula="self, negative_slope * self below 0",
    pointwise=True,
    forward=only("f", "leaky_relu_cpu", _leaky),
    rules=(
        Rule(
            "self",
            "g, g * negative_slope below 0",
            lambda g, self, negative_slope: where_op(self > 0, g, g * negative_slope),
        ),
    ),
    public=False,
    torch="nn.functional.leaky_relu",
    examples=lambda: [Example((spaced(2, 3),), {"negative_slope": slope}) for slope in (0.01, 0.3)],
)
leaky_relu_written: Op = Op(
    "leaky_relu(self, *, negative_slope=0.01)",
    grad_fn="LeakyReluBackward1",
    formula=leaky_relu.formula,
    pointwise=True,
    forward=leaky_relu.forward,
    rules=(Rule("self", "g, g * negative_slope below 0", _through_written_leaky),),
    in_place=True,
    public=False,
    examples=leaky_relu.examples,
)


def _rrelu(self: Array, noise: Array, lower: float, upper: float, training: bool) -> Any:
    """`noise` holds the slope of each element; without training all have the mean one."""
    refuse_unless(self.dtype.kind == "f", "rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu", self)
    result = np.where(self > 0, self, self * (noise if training else (lower + upper) / 2))
    return result if training else np.asarray(result, order="C")


def _through_rrelu(g: Any, at: Any, noise: Any, lower: float, upper: float, training: bool) -> Any:
    if training:
        return g * noise  # where the input is positive, the noise is 1
    return where_op(at > 0, g, g * ((lower + upper) / 2))


RRELU_FORMULA = "self, below 0 times a slope between lower and upper"
rrelu: Op = Op(
    "rrelu(self, noise, *, lower, upper, training)",
    grad_fn="RreluWithNoiseBackward0",
    formula=RRELU_FORMULA,
    forward=_rrelu,
    rules=(
        Rule(
            "self",
            "g, g * slope below 0",
            lambda g, self, noise, lower, upper, training: _through_rrelu(g, self, noise, lower, upper, training),
        ),
    ),
    public=False,
    examples=lambda: [Example((spaced(2, 3), np.ones((2, 3))), {"lower": 0.1, "upper": 0.3, "training": False})],
)
rrelu_written: Op = Op(
    "rrelu(self, noise, *, lower, upper, training)",
    grad_fn="RreluWithNoiseBackward1",
    formula=RRELU_FORMULA,
    forward=_rrelu,
    rules=(
        Rule(
            "self",
            "g, g * slope below 0",
            lambda g, noise, result, lower, upper, training: _through_rrelu(g, result, noise, lower, upper, training),
        ),
    ),
    in_place=True,
    public=False,
    examples=rrelu.examples,
)


def _threshold(self: Array, threshold: float, value: float) -> Any:
    return np.where(self <= threshold, np.asarray(value, self.dtype), self)


def _threshold_op(grad_fn: str, torch: str) -> Op:
    return Op(
        "threshold(self, *, threshold, value)",
        grad_fn=grad_fn,
        formula="self where above threshold, else value",
        pointwise=True,
        forward=_threshold,
        rules=(
            Rule(
                "self",
                "g where self > threshold",
                lambda g, self, threshold: where_op(self <= threshold, zeros(g, ()), g),
            ),
        ),
        in_place=True,
        public=False,
        torch=torch,
        overlap="free",
        examples=lambda: [Example((spaced(2, 3),), {"threshold": 0.1, "value": 2.0})],
    )


threshold = _threshold_op("ThresholdBackward0", "nn.functional.threshold")
threshold_written = _threshold_op("ThresholdBackward1", "")


def hardtanh_bounds(input: Tensor, low: float, high: float) -> tuple[float, float]:
    """The bounds in the dtype of `input`. RuntimeError, in PyTorch's words, where it cannot have them."""
    kind = input._array.dtype
    if kind.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if kind.kind != "f":
        low, high = int(low), int(high)
        if kind.kind == "u" and low < 0:
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return low, high


hardtanh: Op = Op(
    "hardtanh(self, *, min_val=-1.0, max_val=1.0)",
    grad_fn="HardtanhBackward0",
    formula="self, at least min_val, at most max_val",
    pointwise=True,
    forward=lambda self, min_val, max_val: np.clip(self, self.dtype.type(min_val), self.dtype.type(max_val)),
    rules=(
        Rule(
            "self",
            "g where min_val < self < max_val, else 0",
            lambda g, self, min_val, max_val: chosen((self > min_val) & (self < max_val), g),
        ),
    ),
    in_place=True,
    public=False,
    torch="nn.functional.hardtanh",
    examples=lambda: [Example((spaced(2, 3),), {"min_val": a, "max_val": b}) for a, b in ((-1.0, 1.0), (-0.3, 0.9))],
)
_SIXTH = float(np.float32(1) / np.float32(6))
"""1 / 6 in float32, as PyTorch's gradient of hardsigmoid has it for every dtype."""

hardsigmoid: Op = Op(
    "hardsigmoid(self)",
    grad_fn="HardsigmoidBackward0",
    formula="(self + 3) / 6, at least 0, at most 1",
    pointwise=True,
    forward=only("f", "hardsigmoid_cpu", lambda self: np.clip(self + 3, 0, 6) / 6),
    rules=(
        Rule("self", "g / 6 where -3 < self < 3, else 0", lambda g, self: chosen((self > -3) & (self < 3), g * _SIXTH)),
    ),
    in_place=True,
    public=False,
    torch="nn.functional.hardsigmoid",
    examples=on(lambda *shape: 3 * spaced(*shape)),
)


def _through_hardswish(g: Any, self: Any) -> Any:
    return where_op(self <= -3, zeros(g, ()), where_op(self < 3, g * (self / 3 + 0.5), g))


hardswish: Op = Op(
    "hardswish(self)",
    grad_fn="HardswishBackward0",
    formula="self * hardsigmoid(self)",
    pointwise=True,
    forward=only("f", "hardswish_cpu", lambda self: self * np.clip(self + 3, 0, 6) / 6),
    rules=(Rule("self", "g * (self / 3 + 1 / 2) where -3 < self < 3, g above, 0 below", _through_hardswish),),
    in_place=True,
    public=False,
    torch="nn.functional.hardswish",
    examples=on(lambda *shape: 3 * spaced(*shape)),
)


def _outside(g: Any, self: Any, lambd: float) -> Any:
    return chosen((self < -lambd) | (self > lambd), g)


hardshrink: Op = Op(
    "hardshrink(self, *, lambd=0.5)",
    grad_fn="HardshrinkBackward0",
    formula="self outside -lambd and lambd, else 0",
    pointwise=True,
    forward=only("f", "hardshrink_cpu", lambda self, lambd: np.where((self >= -lambd) & (self <= lambd), 0, self)),
    rules=(Rule("self", "g outside -lambd and lambd, else 0", _outside),),
    public=False,
    torch="nn.functional.hardshrink",
    examples=lambda: [Example((spaced(2, 3),), {"lambd": lambd}) for lambd in (0.5 + 0.1, 0.3)],
)


def _softshrink(self: Array, lambd: float) -> Any:
    shrunk = np.where(self > lambd, self - lambd, np.where(self < -lambd, self + lambd, np.zeros((), self.dtype)))
    return np.where(np.isnan(self), self, shrunk)


softshrink: Op = Op(
    "softshrink(self, *, lambd=0.5)",
    grad_fn="SoftshrinkBackward0",
    formula="self, nearer to 0 by lambd, 0 between -lambd and lambd",
    pointwise=True,
    forward=only("f", "softshrink_check", _softshrink),
    rules=(Rule("self", "g outside -lambd and lambd, else 0", _outside),),
    public=False,
    torch="nn.functional.softshrink",
    examples=lambda: [Example((spaced(2, 3),), {"lambd": lambd}) for lambd in (0.5 + 0.1, 0.3)],
)
prelu_slope: Op = Op(
    "prelu_kernel_backward(grad, self, weight)",
    grad_fn="PreluKernelBackwardBackward0",
    formula="grad, grad * weight below 0",
    forward=lambda grad, self, weight: np.where(self > 0, grad, grad * weight),
    rules=(
        Rule("grad", "g, g * weight below 0", lambda g, self, weight: where_op(self >= 0, g, g * weight)),
        Rule("weight", "g * grad below 0, summed", lambda g, grad, self: chosen(self < 0, g * grad)),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3), spaced(2, 3), spaced(1, 3)), {})],
)
"""The slope of prelu: at 0 it is that of the negative side, and the slope's own slope that of the positive one."""
prelu_kernel: Op = Op(
    "prelu(self, weight)",
    grad_fn="PreluKernelBackward0",
    formula="self, weight * self below 0",
    pointwise=True,
    forward=lambda self, weight: np.where(self > 0, self, weight * self),
    rules=(
        Rule("self", "g, g * weight below 0", lambda g, self, weight: prelu_slope(g, self, weight)),
        Rule("weight", "g * self below 0, summed", lambda g, self: chosen(self < 0, g * self)),
    ),
    public=False,
    examples=lambda: [Example((spaced(2, 3), spaced(1, 3)), {})],
)
