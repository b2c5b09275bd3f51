"""Activations: piecewise (``relu``), exponential (``elu``), smooth (``gelu``), and the softmax family.

Those composed of other operations are in ``gviz/engine/nn/activation.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from math import pi, sqrt
from typing import Any

import numpy as np

from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import checked, derive, front
from gviz.engine.op import Example, Op, Rule, zero_gradient, zeros
from gviz.engine.ops._declaration import on
from gviz.engine.ops._examples import normal, spaced
from gviz.engine.ops._kernels import at_least, at_most, in_rows, only, refuse_unless
from gviz.engine.ops.comparison import where_op
from gviz.engine.ops.elementary_functions import erf, exp, sigmoid, tanh
from gviz.engine.ops.indexing import narrow
from gviz.engine.ops.joining import cat_op
from gviz.engine.ops.reductions import sum_dim
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.tensor import Tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Activations with a kink: relu and similar ones. Those composed of other operations are in ``nn.functional``.


NEGATIVE_SLOPE = (
    "In-place {name} backward calculation is triggered with a negative slope which is not supported. This is caused by "
    "calling in-place forward function with a negative slope, please call out-of-place version instead"
)


def chosen(condition: Any, g: Any) -> Any:
    """`g` where `condition` holds, else zero; for use in rules."""
    return where_op(condition, g, zeros(g, ()))


def _relu(self: Array) -> Any:
    if self.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    return at_least(self, np.zeros((), self.dtype))


def _above(self: Array, at: Array, threshold: float) -> Any:
    below = at <= threshold
    remaining = self * ~below
    # Infinite elements are nan now where they should be 0; checking for that is cheaper than a selection by element.
    clean = np.ravel(remaining)
    return np.where(below, self.dtype.type(0), self) if np.isnan(np.dot(clean, clean)) else remaining


def _gradient_op(name: str, grad_fn: str, text: str, forward: Callable[..., Any], *attrs: dict[str, Any]) -> Op:
    """Return the gradient of an activation with a kink, as an operation on the incoming gradient and the point `at`.

    `text` is its formula, with ``self`` for the incoming gradient; `attrs` are examples of its attributes. As in
    PyTorch, its own gradient at the point is zeros, because slopes are constant between kinks. So the result requires
    grad wherever its point does.
    """
    names = tuple(attrs[0]) if attrs else ()

    def towards_self(g: Any, at: Any, *values: Any) -> Any:
        return op(g, at, **dict(zip(names, values, strict=True)))

    towards_self.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(parameter, Parameter.POSITIONAL_OR_KEYWORD) for parameter in ("g", "at", *names)]
    )
    op: Op = Op(
        f"{name}_backward(self, at{', *, ' * bool(names)}{', '.join(names)})",
        grad_fn=grad_fn,
        formula=text,
        pointwise=True,
        forward=forward,
        rules=(Rule("self", text.replace("self", "g"), towards_self), Rule("at", "0", zero_gradient)),
        public=False,
        examples=lambda: [Example((normal(2, 3), spaced(2, 3)), options) for options in attrs or ({},)],
    )
    return op


threshold_gradient = _gradient_op(
    "threshold",
    "ThresholdBackwardBackward0",
    "self, 0 where at <= threshold",
    _above,
    {"threshold": 0},
    {"threshold": 0.1},
)
relu: Op = Op(
    "relu(self)",
    grad_fn="ReluBackward0",
    formula="max(self, 0)",
    pointwise=True,
    forward=_relu,
    rules=(Rule("self", "g where result > 0, else 0", lambda g, result: threshold_gradient(g, result, threshold=0)),),
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
    return leaky_gradient(g, result, negative_slope=negative_slope)


leaky_gradient = _gradient_op(
    "leaky_relu",
    "LeakyReluBackwardBackward0",
    "self, self * negative_slope where at <= 0",
    lambda self, at, negative_slope: np.where(at > 0, self, self * negative_slope),
    {"negative_slope": 0.3},
)


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
            lambda g, self, negative_slope: leaky_gradient(g, self, negative_slope=negative_slope),
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
    """`noise` has the slope of each element; without training all have the mean slope."""
    refuse_unless(self.dtype.kind == "f", "rrelu_with_noise_out_cpu" if training else "leaky_relu_cpu", self)
    result = np.where(self > 0, self, self * (noise if training else (lower + upper) / 2))
    return result if training else np.asarray(result, order="C")


def _times_slope(self: Array, at: Array, noise: Array, lower: float, upper: float, training: bool) -> Any:
    if training:
        return self * noise  # where the input is positive, the noise is 1
    return np.where(at > 0, self, self * ((lower + upper) / 2))


rrelu_gradient: Op = Op(
    "rrelu_with_noise_backward(self, at, noise, *, lower, upper, training)",
    grad_fn="RreluWithNoiseBackwardBackward0",
    formula="self, self * slope where at <= 0",
    pointwise=True,
    forward=_times_slope,
    rules=(
        Rule(
            "self",
            "g, g * slope where at <= 0",
            lambda g, at, noise, lower, upper, training: rrelu_gradient(
                g, at, noise, lower=lower, upper=upper, training=training
            ),
        ),
        Rule("at", "0", zero_gradient),
    ),
    public=False,
    examples=lambda: [
        Example((normal(2, 3), spaced(2, 3), np.ones((2, 3))), {"lower": 0.1, "upper": 0.3, "training": training})
        for training in (False, True)
    ],
)
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
            lambda g, self, noise, lower, upper, training: rrelu_gradient(
                g, self, noise, lower=lower, upper=upper, training=training
            ),
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
            lambda g, noise, result, lower, upper, training: rrelu_gradient(
                g, result, noise, lower=lower, upper=upper, training=training
            ),
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
        forward=only("fiu", "threshold_cpu", _threshold),
        rules=(
            Rule(
                "self",
                "g where self > threshold",
                lambda g, self, threshold: threshold_gradient(g, self, threshold=threshold),
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
    """The bounds in the dtype of `input`. Raises RuntimeError, with PyTorch's text, if they do not fit it."""
    kind = input._array.dtype
    if kind.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if kind.kind != "f":
        low, high = int(low), int(high)
        if kind.kind == "u" and low < 0:
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return low, high


hardtanh_gradient = _gradient_op(
    "hardtanh",
    "HardtanhBackwardBackward0",
    "self where min_val < at < max_val, else 0",
    lambda self, at, min_val, max_val: np.where((at > min_val) & (at < max_val), self, np.zeros((), self.dtype)),
    {"min_val": -0.3, "max_val": 0.9},
)
hardtanh: Op = Op(
    "hardtanh(self, *, min_val=-1.0, max_val=1.0)",
    grad_fn="HardtanhBackward0",
    formula="self, at least min_val, at most max_val",
    pointwise=True,
    forward=lambda self, min_val, max_val: at_most(at_least(self, self.dtype.type(min_val)), self.dtype.type(max_val)),
    rules=(
        Rule(
            "self",
            "g where min_val < self < max_val, else 0",
            lambda g, self, min_val, max_val: hardtanh_gradient(g, self, min_val=min_val, max_val=max_val),
        ),
    ),
    in_place=True,
    public=False,
    torch="nn.functional.hardtanh",
    examples=lambda: [Example((spaced(2, 3),), {"min_val": a, "max_val": b}) for a, b in ((-1.0, 1.0), (-0.3, 0.9))],
)
_SIXTH = float(np.float32(1) / np.float32(6))
"""1 / 6 in float32, which PyTorch's gradient of hardsigmoid uses for every dtype."""

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


def _outside(self: Array, at: Array, lambd: float) -> Any:
    return np.where((at < -lambd) | (at > lambd), self, np.zeros((), self.dtype))


_OUTSIDE = "self where at is outside -lambd and lambd, else 0"
hardshrink_gradient = _gradient_op("hardshrink", "HardshrinkBackwardBackward0", _OUTSIDE, _outside, {"lambd": 0.3})
softshrink_gradient = _gradient_op("softshrink", "SoftshrinkBackwardBackward0", _OUTSIDE, _outside, {"lambd": 0.3})
hardshrink: Op = Op(
    "hardshrink(self, *, lambd=0.5)",
    grad_fn="HardshrinkBackward0",
    formula="self outside -lambd and lambd, else 0",
    pointwise=True,
    forward=only("f", "hardshrink_cpu", lambda self, lambd: np.where((self >= -lambd) & (self <= lambd), 0, self)),
    rules=(
        Rule(
            "self",
            "g outside -lambd and lambd, else 0",
            lambda g, self, lambd: hardshrink_gradient(g, self, lambd=lambd),
        ),
    ),
    public=False,
    torch="nn.functional.hardshrink",
    examples=lambda: [Example((spaced(2, 3),), {"lambd": lambd}) for lambd in (0.5 + 0.1, 0.3)],
)


def _softshrink(self: Array, lambd: float) -> Any:
    return np.where(self > lambd, self - lambd, np.where(self < -lambd, self + lambd, self * 0))


softshrink: Op = Op(
    "softshrink(self, *, lambd=0.5)",
    grad_fn="SoftshrinkBackward0",
    formula="self, nearer to 0 by lambd, 0 between -lambd and lambd",
    pointwise=True,
    forward=only("f", "softshrink_check", _softshrink),
    rules=(
        Rule(
            "self",
            "g outside -lambd and lambd, else 0",
            lambda g, self, lambd: softshrink_gradient(g, self, lambd=lambd),
        ),
    ),
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
        Rule("self", "0", zero_gradient),
        Rule("weight", "g * grad below 0, summed", lambda g, grad, self: chosen(self < 0, g * grad)),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 3), spaced(2, 3), spaced(1, 3)), {})],
)
"""The slope of prelu. At 0 it is that of the negative side; its own derivative is that of the positive side."""
prelu_kernel: Op = Op(
    "prelu(self, weight)",
    grad_fn="PreluKernelBackward0",
    formula="self, weight * self below 0",
    pointwise=True,
    forward=only("f", "prelu_cpu", lambda self, weight: np.where(self > 0, self, weight * self)),
    rules=(
        Rule("self", "g, g * weight below 0", lambda g, self, weight: prelu_slope(g, self, weight)),
        # It also names `weight`, which PyTorch saves for both.
        Rule("weight", "g * self below 0, summed", lambda g, self, weight: chosen(self < 0, g * self)),
    ),
    public=False,
    examples=lambda: [Example((spaced(2, 3), spaced(1, 3)), {})],
)


# ----------------------------------------------------------------------------------------------------------------------
# Exponential linear units, out of place and in place.


def _negative(self: Any) -> Any:
    """`self` where it is negative, else zero.

    So its exponential is finite, and at 0 the gradient is 0, as in PyTorch."""
    return where_op(self < 0, self, zeros(self, ()))


def _elu(self: Array, alpha: float, scale: float, input_scale: float) -> Any:
    below = np.expm1(at_most(self, np.zeros((), self.dtype)) * input_scale) * (alpha * scale)
    return np.where(self <= 0, below, self * scale)


def _through_elu(g: Any, self: Any, alpha: float, scale: float, input_scale: float) -> Any:
    slope = exp(_negative(self) * input_scale) * (input_scale * alpha * scale)
    return where_op(self <= 0, g * slope, g * scale)


def _through_written_elu(g: Any, result: Any, alpha: float, scale: float, input_scale: float) -> Any:
    if alpha < 0:
        raise RuntimeError(NEGATIVE_SLOPE.format(name="elu") + ".")
    return where_op(result <= 0, g * ((_negative(result) + alpha * scale) * input_scale), g * scale)


def _rounded_inverse(alpha: float) -> float:
    """1 / `alpha` rounded to float32, which PyTorch's formula of celu uses for every dtype."""
    return 1 / float(np.float32(alpha))


ELU_FORMULA = "scale * self, alpha * scale * (exp(input_scale * self) - 1) below 0"


_elu_examples = [(1.0, 1, 1), (0.7, 1.05, 1.0)]


elu: Op = Op(
    "elu(self, *, alpha=1.0, scale=1, input_scale=1)",
    grad_fn="EluBackward0",
    pointwise=True,
    formula=ELU_FORMULA,
    forward=only("f", "elu_cpu", _elu),
    rules=(Rule("self", "g * scale, g * alpha * scale * input_scale * exp(input_scale * self) below 0", _through_elu),),
    public=False,
    examples=lambda: [
        Example((spaced(2, 3),), {"alpha": a, "scale": s, "input_scale": i}) for a, s, i in _elu_examples
    ],
)


elu_written: Op = Op(
    "elu(self, *, alpha=1.0, scale=1, input_scale=1)",
    grad_fn="EluBackward1",
    pointwise=True,
    formula=ELU_FORMULA,
    forward=elu.forward,
    rules=(Rule("self", "g * scale, g * input_scale * (result + alpha * scale) below 0", _through_written_elu),),
    in_place=True,
    public=False,
    examples=elu.examples,
)


celu: Op = Op(
    "celu(self, *, alpha=1.0)",
    grad_fn="CeluBackward0",
    pointwise=True,
    formula="self, alpha * (exp(self / alpha) - 1) below 0",
    forward=lambda self, alpha: elu.forward(self, alpha, 1, 1 / alpha),
    rules=(
        Rule(
            "self",
            "g, g * exp(self / alpha) below 0",
            lambda g, self, alpha: _through_elu(g, self, alpha, 1, _rounded_inverse(alpha)),
        ),
    ),
    public=False,
    torch="celu",
    examples=lambda: [Example((spaced(2, 3),), {"alpha": alpha}) for alpha in (1.0, 0.7)],
)


celu_written: Op = Op(
    "celu(self, *, alpha=1.0)",
    grad_fn="CeluBackward1",
    pointwise=True,
    formula=celu.formula,
    forward=celu.forward,
    rules=(
        Rule(
            "self",
            "g, g * (result / alpha + 1) below 0",
            lambda g, result, alpha: _through_written_elu(g, result, alpha, 1, _rounded_inverse(alpha)),
        ),
    ),
    in_place=True,
    public=False,
    examples=celu.examples,
)


# ----------------------------------------------------------------------------------------------------------------------
# Smooth activations: gelu, silu, softplus and others. Those composed of other operations are in ``nn.functional``.


KAPPA, CUBE = sqrt(2 / pi), 0.044715
"""The constants of gelu's tanh approximation."""


def _gelu(self: Array, approximate: str) -> Any:
    if approximate == "tanh":
        return 0.5 * self * (1 + np.tanh(KAPPA * (self + CUBE * (self * self * self))))
    return self * _normal_cdf(self)


def _normal_cdf(self: Any) -> Any:
    """Return the probability that a standard normal number is below `self`."""
    scaled = self * sqrt(0.5)
    bent = _erf(scaled) if isinstance(self, np.ndarray) and self.dtype == np.float32 else erf(scaled)
    return 0.5 * (1 + bent)


ODD = (-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
       -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02)  # fmt: skip
EVEN = (-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
        -1.42647390514189e-02)  # fmt: skip
"""Coefficients of a quotient of polynomials that approximates erf between -4 and 4, to the last bits of float32."""


def _erf(self: Array) -> Array:
    """Return the error function in float32, several times as fast as SciPy's."""
    clipped = np.clip(self, -4, 4)
    square = clipped * clipped
    result = _polynomial(square, ODD)
    result *= clipped
    result /= _polynomial(square, EVEN)
    return result


def _polynomial(square: Array, coefficients: tuple[float, ...]) -> Array:
    total = square * np.float32(coefficients[0])
    for coefficient in coefficients[1:-1]:
        total += np.float32(coefficient)
        total *= square
    total += np.float32(coefficients[-1])
    return total


def _through_gelu(g: Any, self: Any, approximate: str) -> Any:
    square = self * self
    if approximate == "tanh":
        bent = tanh(KAPPA * (self + CUBE * (square * self)))
        slope = (1 - bent * bent) * (KAPPA * (1 + 3 * CUBE * square))
        return g * (0.5 * (1 + bent) + 0.5 * self * slope)
    return g * (_normal_cdf(self) + self * (exp(-0.5 * square) * (1 / sqrt(2 * pi))))


gelu: Op = Op(
    "gelu(self, *, approximate='none')",
    grad_fn="GeluBackward0",
    formula="self * probability that a normal number is below self",
    pointwise=True,
    forward=only("f", "GeluKernelImpl", _gelu),
    rules=(Rule("self", "g * (cdf(self) + self * pdf(self))", _through_gelu),),
    public=False,
    torch="nn.functional.gelu",
    examples=lambda: [Example((normal(2, 3),), {"approximate": how}) for how in ("none", "tanh")],
)


silu: Op = Op(
    "silu(self)",
    grad_fn="SiluBackward0",
    formula="self * sigmoid(self)",
    pointwise=True,
    forward=only("f", "silu_cpu", lambda self: self / (1 + np.exp(-self))),
    rules=(
        Rule("self", "g * sigmoid(self) * (1 + self * (1 - sigmoid(self)))", lambda g, self: _through_silu(g, self)),
    ),
    in_place=True,
    public=False,
    torch="nn.functional.silu",
    examples=on(normal),
)


def _through_silu(g: Any, self: Any) -> Any:
    gate = sigmoid(self)
    return g * (gate * (1 + self * (1 - gate)))


def _mish(self: Array) -> Any:
    return self * np.tanh(np.logaddexp(self, np.zeros((), self.dtype)))


def _through_mish(g: Any, self: Any) -> Any:
    gate, bent = sigmoid(self), tanh(softplus(self, beta=1, threshold=20))
    return g * (bent + self * gate * (1 - bent * bent))


mish: Op = Op(
    "mish(self)",
    grad_fn="MishBackward0",
    formula="self * tanh(softplus(self))",
    pointwise=True,
    forward=only("f", "mish_cpu", _mish),
    rules=(Rule("self", "g * (tanh(softplus(self)) + self * derivative of tanh(softplus(self)))", _through_mish),),
    in_place=True,
    public=False,
    torch="nn.functional.mish",
    examples=on(normal),
)


def _softplus(self: Array, beta: float, threshold: float) -> Any:
    scaled = self * beta
    return np.where(scaled > threshold, self, np.log1p(np.exp(np.minimum(scaled, threshold))) / beta)


def _through_softplus(g: Any, self: Any, beta: float, threshold: float) -> Any:
    scaled = self * beta
    bent = where_op(scaled < threshold, scaled, zeros(self, ()) + threshold)  # at the threshold it counts as linear
    return where_op(scaled > threshold, g, g * sigmoid(bent))


softplus: Op = Op(
    "softplus(self, *, beta=1, threshold=20)",
    grad_fn="SoftplusBackward0",
    formula="log(1 + exp(beta * self)) / beta, self where beta * self is above threshold",
    pointwise=True,
    forward=only("f", "softplus_cpu", _softplus),
    rules=(Rule("self", "g * sigmoid(beta * self), g above threshold", _through_softplus),),
    public=False,
    torch="nn.functional.softplus",
    examples=lambda: [
        Example((normal(2, 3),), {"beta": 1, "threshold": 20}),
        Example((spaced(2, 3),), {"beta": 2.0, "threshold": 1.1}),
    ],
)


log_sigmoid: Op = Op(
    "logsigmoid(self)",
    grad_fn="LogSigmoidBackward0",
    formula="log(sigmoid(self))",
    forward=in_rows(only("f", "log_sigmoid_cpu", lambda self: np.minimum(self, 0) - np.log1p(np.exp(-np.abs(self))))),
    rules=(Rule("self", "g * sigmoid(-self)", lambda g, self: g * sigmoid(-self)),),
    public=False,
    torch="nn.functional.logsigmoid",
    examples=on(normal),
)


def _glu(self: Array, dim: int) -> Any:
    value, gate = np.split(self, 2, dim)
    return value * sigmoid(gate)


def _through_glu(g: Any, self: Any, dim: int) -> Any:
    dim, half = dim % self.ndim, self.shape[dim] // 2
    value, gate = (narrow(self, dim=dim, start=n, end=n + half, step=1) for n in (0, half))
    opened = sigmoid(gate)
    return cat_op(g * opened, g * value * (opened * (1 - opened)), dim=dim)


glu: Op = Op(
    "glu(self, *, dim=-1)",
    grad_fn="GluBackward0",
    formula="first half of self * sigmoid(second half)",
    forward=only("f", "glu_cpu", _glu),
    rules=(Rule("self", "g * sigmoid(second); g * first * sigmoid'(second)", _through_glu),),
    public=False,
    torch="nn.functional.glu",
    examples=lambda: [Example((normal(2, 4),), {"dim": dim}) for dim in (-1, 0)],
)


# ----------------------------------------------------------------------------------------------------------------------
# The softmax family: normalized exponentials along one dimension.


def _check(self: Array, kernel: str, dim: int) -> None:
    last = "lastdim_" if dim == self.ndim - 1 or not self.ndim else ""
    refuse_unless(self.dtype.kind == "f", f"{kernel}_{last}kernel_impl", self)


def _above_largest(self: Array, dim: int) -> Any:
    """`self` minus its maximum along `dim`, so that no exponential overflows."""
    return self - self.max(axis=dim, keepdims=True) if self.ndim else self * 0


def _softmax(self: Array, dim: int) -> Any:
    if not self.size:
        return self.copy()  # of any dtype
    _check(self, "softmax", dim)
    return _shares(_above_largest(self, dim), dim)


def _shares(shifted: Any, dim: int) -> Any:
    if not shifted.ndim:
        return np.exp(shifted)
    np.exp(shifted, out=shifted)
    shifted /= np.add.reduce(shifted, axis=dim, keepdims=True)
    return shifted


def _safe_softmax(self: Array, dim: int) -> Any:
    if not self.size:
        return self.copy()
    largest = self.max(axis=dim, keepdims=True)
    shares = _shares(self - largest, dim)
    empty = largest == -np.inf
    return np.where(empty, np.zeros((), self.dtype), shares) if empty.any() else shares


def _log_softmax(self: Array, dim: int) -> Any:
    if not self.size:
        return self.copy()
    _check(self, "log_softmax", dim)
    shifted = _above_largest(self, dim)
    if not self.ndim:
        return shifted
    shifted -= np.log(np.add.reduce(np.exp(shifted), axis=dim, keepdims=True))
    return shifted


def _over(tensor: Any, dim: int) -> Any:
    return sum_dim(tensor, dim=(dim,), keepdim=True) if tensor.ndim else tensor


def _through_softmax(g: Any, result: Any, dim: int) -> Any:
    weighted = g * result
    return weighted - result * _over(weighted, dim)


def _examples() -> list[Example]:
    return [*[Example((normal(2, 3),), {"dim": dim}) for dim in (0, 1)], Example((normal(),), {"dim": 0})]


softmax: Op = Op(
    "softmax(self, *, dim)",
    grad_fn="SoftmaxBackward0",
    formula="exp(self) / sum of exp(self) over dim",
    forward=in_rows(_softmax),
    rules=(Rule("self", "result * (g - sum of g * result over dim)", _through_softmax),),
    public=False,
    torch="softmax",
    examples=_examples,
)
safe_softmax: Op = Op(
    "_safe_softmax(self, *, dim)",
    grad_fn="SafeSoftmaxBackward0",
    formula="exp(self) / sum of exp(self) over dim, 0 where all are -inf",
    forward=in_rows(_safe_softmax),
    rules=softmax.rules,
    public=False,
    examples=lambda: _examples()[:2],
)
log_softmax: Op = Op(
    "log_softmax(self, *, dim)",
    grad_fn="LogSoftmaxBackward0",
    formula="self - log of the sum of exp(self) over dim",
    forward=in_rows(_log_softmax),
    rules=(
        Rule(
            "self",
            "g - exp(result) * sum of g over dim",
            lambda g, result, dim: g - exp(result) * _over(g, dim),
        ),
    ),
    public=False,
    torch="log_softmax",
    examples=_examples,
)


@front("softmax")
def softmax_front(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Exponentials of `input` divided by their sum along `dim`."""
    return _of_dim(softmax, input, dim, dtype)


@front("log_softmax")
def log_softmax_front(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """The logarithm of `softmax`, computed in one operation."""
    return _of_dim(log_softmax, input, dim, dtype)


def _of_dim(op: Op, input: Tensor, dim: int, dtype: DType | None) -> Tensor:
    tensor = checked(op, input, 1) if dtype is None else checked(op, input, 1).to(dtype)
    return run(op, tensor, dim=normal_dims(dim, tensor.ndim)[0])
