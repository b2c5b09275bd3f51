"""Random numbers written to tensors, or drawn with a tensor's elements as parameters; dropout.

An op of this file gets its numbers as a second tensor, `drawn`, so that a recorded program can be run again with the
same ones. An element that is replaced by a drawn number gets no gradient: the result does not depend on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine import dtypes, messages
from gviz.engine.broadcasting import broadcast_error
from gviz.engine.functions_and_methods import front
from gviz.engine.op import Example, Op, Rule, apply
from gviz.engine.ops._examples import normal as some_normal
from gviz.engine.ops._examples import uniform_array
from gviz.engine.ops.shape import expanded
from gviz.engine.random import Generator, stream_of, uniform
from gviz.engine.random import normal as normal_array
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.views import apply_in_place
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Random numbers written to tensors, or drawn with a tensor's elements as parameters.
#
# An op of this file gets its numbers as a second tensor, `drawn`, so that a recorded program can be run again with the
# same ones. No gradient passes: the result does not depend on the replaced elements.


def _op(name: str, grad_fn: str) -> Op:
    return Op(
        f"{name}(self, drawn)",
        grad_fn=grad_fn,
        formula="drawn",
        forward=lambda self, drawn: drawn.astype(self.dtype),
        rules=(Rule("self", "0", lambda g: g * 0),),
        public=False,
        examples=lambda: [Example((uniform_array(0.2, 0.8, 2, 3), some_normal(2, 3)), {})],
    )


uniform_op: Op = _op("uniform", "UniformBackward0")
normal_op: Op = _op("normal", "NormalBackward0")
random_between_op: Op = _op("random", "RandomBackward0")
random_below_op: Op = _op("random", "RandomBackward1")
random_op: Op = _op("random", "RandomBackward2")
bernoulli_op: Op = _op("bernoulli", "BernoulliBackward0")
bernoulli_chance_op: Op = Op(
    "bernoulli(self, drawn)",
    grad_fn="NotImplemented",
    formula="drawn",
    forward=bernoulli_op.forward,
    rules=(Rule("self", "none", lambda g: _unknown(g)),),
    public=False,
)
bernoulli_tensor_op: Op = _op("bernoulli", "BernoulliBackward1")
bernoulli_number_op: Op = _op("bernoulli", "BernoulliBackward2")
exponential_op: Op = _op("exponential", "ExponentialBackward0")
log_normal_op: Op = _op("log_normal", "LogNormalBackward0")
cauchy_op: Op = _op("cauchy", "CauchyBackward0")
geometric_op: Op = _op("geometric", "GeometricBackward0")
normal_mean_op: Op = _op("normal", "NormalBackward1")
normal_std_op: Op = _op("normal", "NormalBackward2")
normal_both_op: Op = Op(
    "normal(mean, std, drawn)",
    grad_fn="NormalBackward3",
    formula="drawn",
    forward=lambda mean, std, drawn: np.array(drawn),
    rules=(Rule("mean", "0", lambda g: g * 0), Rule("std", "0", lambda g: g * 0)),
    public=False,
    examples=lambda: [Example((some_normal(2, 3), uniform_array(0.2, 0.8, 3), some_normal(2, 3)), {})],
)
poisson_op: Op = _op("poisson", "PoissonBackward0")
multinomial_op: Op = Op(
    "multinomial(self, drawn)", grad_fn="", formula="drawn", forward=lambda self, drawn: drawn.copy(), public=False
)


def _unknown(g: Any) -> Any:
    raise RuntimeError(messages.NOT_IMPLEMENTED.format(name="bernoulli"))


def _fill(op: Op, self: Tensor, drawn: Any) -> Tensor:
    return apply_in_place(op, (self, new_tensor(np.asarray(drawn).astype(self._array.dtype))), {})


def _bounds(name: str, low: Any, high: Any, named: dict[str, Any]) -> tuple[Any, Any]:
    """Return the bounds, which may be passed as ``from`` and ``to``; ``from`` is a keyword that no signature can
    contain.
    """
    unknown = [key for key in named if key not in ("from", "to")]
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument '{unknown[0]}'")
    return named.get("from", low), named.get("to", high)


def _need(holds: bool, message: str) -> None:
    if not holds:
        raise RuntimeError(message)


def check_floating(kernel: str, kind: np.dtype[Any]) -> None:
    """Raises NotImplementedError, with PyTorch's text, for a dtype that is not floating."""
    if kind.kind != "f":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtypes.of_numpy(kind).tensor_type}'")


@front("uniform_", function=False)
def uniform_(
    self: Tensor, a: float = 0, b: float = 1, *, generator: Generator | None = None, **from_and_to: float
) -> Tensor:
    """Fills with uniform random numbers between two bounds, called ``from`` and ``to``."""
    low, high = _bounds("uniform_", a, b, from_and_to)
    kind = self._array.dtype
    check_floating("check_uniform_bounds", kind)
    _need(low <= high, f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    return _fill(uniform_op, self, uniform(low, high, self._array.shape, kind, generator))


@front("normal_", function=False)
def normal_(self: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fills with normal random numbers."""
    check_floating("normal_kernel_cpu", self._array.dtype)
    _need(std >= 0, f"normal expects std >= 0.0, but found std {std:g}")
    return _fill(normal_op, self, stream_of(generator).normal(mean, std, self._array.shape))


@front("log_normal_", function=False)
def log_normal_(self: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None) -> Tensor:
    """Fills with random numbers whose logarithms are normal."""
    _need(std > 0, f"log_normal_ expects std > 0.0, but found std={std:g}")
    check_floating("log_normal_cpu", self._array.dtype)
    return _fill(log_normal_op, self, stream_of(generator).lognormal(mean, std, self._array.shape))


@front("exponential_", function=False)
def exponential_(self: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fills with exponential random numbers of rate `lambd`."""
    kind = dtypes.of(self._array)
    _need(
        kind.is_floating_point,
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
        f"specified {kind.tensor_type}",
    )
    _need(lambd > 0, f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return _fill(exponential_op, self, stream_of(generator).exponential(1 / lambd, self._array.shape))


@front("cauchy_", function=False)
def cauchy_(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fills with random numbers of a Cauchy distribution."""
    kind = dtypes.of(self._array)
    _need(
        kind.is_floating_point,
        "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
        f"specified {kind.tensor_type}",
    )
    _need(sigma > 0, f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return _fill(cauchy_op, self, median + sigma * stream_of(generator).standard_cauchy(self._array.shape))


@front("geometric_", function=False)
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fills with geometric random numbers: the tries until the first success, of probability `p`."""
    _need(0 < p < 1, f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return _fill(geometric_op, self, stream_of(generator).geometric(p, self._array.shape))


@front("random_", function=False)
def random_(
    self: Tensor, a: int | None = None, b: int | None = None, *, generator: Generator | None = None, **from_and_to: int
) -> Tensor:
    """Fills with random integers from ``from`` (0) up to and excluding ``to`` (what the dtype can hold)."""
    low, high = _bounds("random_", a, b, from_and_to)
    if low is None and high is None:
        return _fill(random_op, self, stream_of(generator).integers(0, _top(self._array.dtype), self._array.shape))
    op = random_below_op if high is None else random_between_op
    start, stop = (0, low) if high is None else (low or 0, high)
    assert stop is not None
    check_integer_range(start, stop, self._array.dtype)
    return _fill(op, self, stream_of(generator).integers(start, stop, self._array.shape))


def _top(kind: np.dtype[Any]) -> int:
    """Return one more than the largest number that `random_` draws."""
    if kind.kind == "f":
        return int(2 ** (np.finfo(kind).nmant + 1)) + 1
    return 2 if kind.kind == "b" else int(np.iinfo(kind).max) + (kind.itemsize < 8)


def check_integer_range(low: int, high: int, kind: np.dtype[Any]) -> None:
    """Raises RuntimeError for an empty range, or one outside the range of `kind`."""
    _need(low < high, f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if kind.kind not in "iu":
        return
    names = {"uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "int64_t"}
    limits = np.iinfo(kind)
    for what, value in (("from", low), ("to - 1", high - 1)):
        _need(limits.min <= value <= limits.max, f"{what} is out of bounds for {names[kind.name]}")


@front("bernoulli_", function=False)
def bernoulli_(self: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fills with ones (of probability `p`) and zeros."""
    if isinstance(p, Tensor):
        chances = expanded(p._array, tuple(self.shape))
        check_floating("bernoulli_tensor_cpu_p_", p._array.dtype)
        _need(bool(np.all((chances >= 0) & (chances <= 1))), messages.CHANCES)
        return _fill(bernoulli_tensor_op, self, stream_of(generator).random(self._array.shape) < chances)
    _need(0 <= p <= 1, f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return _fill(bernoulli_number_op, self, stream_of(generator).random(self._array.shape) < p)


@front("bernoulli")
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Draws ones, with the probabilities in `input` (or `p`), and zeros."""
    chances: Any = input._array if p is None else p
    if p is None:
        check_floating("bernoulli_tensor_cpu_p_", input._array.dtype)
        _need(bool(np.all((chances >= 0) & (chances <= 1))), messages.CHANCES)
    else:
        _need(0 <= p <= 1, f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    op = bernoulli_op if p is None else bernoulli_chance_op
    return _drawn(op, input, stream_of(generator).random(input._array.shape) < chances)


@front("poisson", method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws Poisson random numbers with the rates in `input`."""
    _need(bool(np.all(input._array >= 0)), "invalid Poisson rate, expected rate to be non-negative")
    return _drawn(poisson_op, input, stream_of(generator).poisson(input._array))


@front("multinomial")
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Draws `num_samples` indices per row, with the weights in the row."""
    weights, kind = input._array, input.dtype
    _need(kind.is_floating_point, f"multinomial only supports floating-point dtypes for input, got: {kind.tensor_type}")
    _check_weights(weights, num_samples, replacement)
    rows = np.atleast_2d(weights).astype(np.float64)
    stream = stream_of(generator)
    drawn = np.array([_choose(stream, row, num_samples, replacement) for row in rows], np.int64)
    return _drawn(multinomial_op, input, drawn.reshape(*weights.shape[:-1], num_samples))


def _check_weights(weights: Array, samples: int, replacement: bool) -> None:
    _need(weights.ndim in (1, 2), "prob_dist must be 1 or 2 dim")
    _need(samples > 0, "cannot sample n_sample <= 0 samples")
    _need(
        replacement or samples <= weights.shape[-1],
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    )
    fine = bool(np.all(np.isfinite(weights) & (weights >= 0)))
    _need(fine, "probability tensor contains either `inf`, `nan` or element < 0")
    _need(bool(np.all(weights.sum(-1) > 0)), "invalid multinomial distribution (sum of probabilities <= 0)")


def _choose(stream: np.random.Generator, row: Array, samples: int, replacement: bool) -> Array:
    if replacement:
        return np.minimum(np.searchsorted(np.cumsum(row) / row.sum(), stream.random(samples), "right"), row.size - 1)
    with np.errstate(divide="ignore"):  # a weight of 0 comes last
        waiting = stream.exponential(size=row.shape) / row
    return np.argsort(waiting, kind="stable")[:samples]


def _drawn(op: Op, input: Tensor, drawn: Any) -> Tensor:
    result: Tensor = apply(op, (input, new_tensor(np.asarray(drawn))))
    return result


@front("normal", method=False)
def normal(
    mean: Tensor | float = 0.0, std: Tensor | float = 1.0, size: Any = None, *, generator: Generator | None = None
) -> Tensor:
    """Normal random numbers around `mean`: one for each element of the tensors, or `size` of them for two numbers."""
    if size is not None:
        return new_tensor(normal_array(mean, std, tuple(size), dtypes.get_default_dtype().numpy, generator))
    grad_fns = {(True, False): normal_mean_op, (False, True): normal_std_op, (True, True): normal_both_op}
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if not tensors:
        raise TypeError("normal() received an invalid combination of arguments: two numbers need a size")
    centre, spread = (t._array if isinstance(t, Tensor) else t for t in (mean, std))
    _need(bool(np.all(np.asarray(spread) >= 0)), _negative_std(std))
    drawn = stream_of(generator).standard_normal(broadcast(tensors)) * spread + centre
    op = grad_fns[isinstance(mean, Tensor), isinstance(std, Tensor)]
    result: Tensor = apply(op, (*tensors, new_tensor(np.asarray(drawn, tensors[0]._array.dtype))))
    return result


def _negative_std(std: Tensor | float) -> str:
    if isinstance(std, Tensor):
        return "normal expects all elements of std >= 0.0"
    return f"normal expects std >= 0.0, but found std {std:g}"


def broadcast(tensors: list[Tensor]) -> tuple[int, ...]:
    """The shape that tensors broadcast to. Raises RuntimeError, with PyTorch's text, if there is none."""
    shapes = [t._array.shape for t in tensors]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise RuntimeError(broadcast_error(shapes[0], shapes[1])) from None


# ----------------------------------------------------------------------------------------------------------------------
# Dropout as a product with a mask that was drawn before: PyTorch's node for it is also that of a product.


class Mask(Tensor):
    """The mask of one dropout: 0 for dropped elements, ``1 / (1 - p)`` for kept ones."""

    __slots__ = ()
    _is_mask = True


class Dropout(Op):
    """A product whose node shows its operands, as PyTorch's does, but not its `p`."""

    def saved_properties(self) -> dict[str, property]:
        return {name: read for name, read in super().saved_properties().items() if name != "p"}


def _declared(name: str) -> Op:
    return Dropout(
        f"{name}(self, other, *, p)",
        grad_fn="MulBackward0",
        formula="self * other",
        forward=lambda self, other, p: np.multiply(self, other),
        rules=(
            Rule("self", "g * other", lambda g, other: g * other),
            Rule("other", "g * self", lambda g, self: g * self),
        ),
        promotes=True,
        public=False,
        in_place=True,
        drawn="other",
        examples=lambda: [Example((some_normal(2, 3), 2.0 * (some_normal(2, 3) > 0)), {"p": 0.5})],
    )


DROPOUTS = {name: _declared(name) for name in ("dropout", "dropout1d", "dropout2d", "dropout3d")}
"""Dropout of single elements and of whole channels, by the name of its function."""
