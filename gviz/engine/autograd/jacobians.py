"""The two Jacobians that gradcheck compares: from central differences, and from backward passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from gviz.engine.autograd.grad import grad
from gviz.engine.creation import zeros_like
from gviz.engine.tensor import Tensor
from gviz.values import Array

Tensors = tuple[Tensor, ...]
Function = Callable[..., Any]

_NOT_REPEATABLE = """\n
NOTE: If your op relies on non-deterministic operations i.e., it is listed here:
https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
this failure might be expected.

If you are adding a new operator, please file an issue and then use one of the
workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.
If the test
- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck
  with `nondet_tol=<tol>` as a keyword argument.
- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test
  to have `gradcheck_nondet_tol=<tol>`.
- is a Module test (e.g., in common_nn.py), then modify the corresponding
  module_test entry to have `gradcheck_nondet_tol=<tol>`
"""


class GradcheckError(RuntimeError):
    """A gradient is not what differences say it is."""


@dataclass(frozen=True, slots=True)
class Check:
    """A function, its inputs, of which `xs` require grad, and how exactly its gradients are to agree."""

    func: Function
    inputs: tuple[Any, ...]
    xs: Tensors
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool

    def outputs(self) -> tuple[Any, ...]:
        return listed(self.func(*self.inputs))


def listed(value: Any) -> tuple[Any, ...]:
    """One thing or several as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def numerical(check: Check, x: Tensor, outputs: tuple[Any, ...]) -> list[Array]:
    """The Jacobian of every output by `x`, one row for each element of `x`, by central differences."""
    jacobians = [np.zeros((x.numel(), o.numel()), o._array.dtype) for o in outputs]
    for row, place in enumerate(np.ndindex(*x.shape)):
        below, above = (_moved(check, x, place, step) for step in (-check.eps, check.eps))
        for jacobian, low, high in zip(jacobians, below, above, strict=True):
            _check_same_form(low, high, check.eps)
            jacobian[row] = ((high - low) / (2 * check.eps)).reshape(-1)
    return jacobians


def _moved(check: Check, x: Tensor, place: tuple[int, ...], step: float) -> list[Array]:
    """The outputs with one element of `x` moved a step, through ``.data``, as no gradient is to notice."""
    entry = x.data[place]
    before = entry.clone()
    entry.copy_(before + step)
    try:
        return [np.array(output._array) for output in check.outputs()]
    finally:
        entry.copy_(before)


def _check_same_form(low: Array, high: Array, eps: float) -> None:
    for what in ("shape", "dtype"):
        if getattr(low, what) != getattr(high, what):
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {eps}, but got: "
                f"{what}s {getattr(low, what)} and {getattr(high, what)}."
            )


def analytical(check: Check, output: Tensor) -> list[Array]:
    """The Jacobian of one output by every input from backward passes, which must repeat themselves."""
    first, second = _columns(check, output), _columns(check, output)
    wrong_size = wrong_type = False
    jacobians = []
    for x, columns in zip(check.xs, first, strict=True):
        jacobian = np.zeros((x.numel(), output.numel()), x._array.dtype)
        for number, column in enumerate(columns):
            if column is not None:
                wrong_size |= column.shape != x.shape
                wrong_type |= column.shape == x.shape and column.dtype != x.dtype
                jacobian[:, number] = column._array.reshape(-1)
        jacobians.append(jacobian)
    if wrong_type and check.check_grad_dtypes:
        raise GradcheckError("Gradient has dtype mismatch")
    if wrong_size:
        raise GradcheckError("Analytical gradient has incorrect size")
    if _largest_difference(first, second) > check.nondet_tol:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
            "different values, although analytical gradient matches numerical gradient."
            f"The tolerance for nondeterminism was {check.nondet_tol}." + _NOT_REPEATABLE
        )
    return jacobians


def _columns(check: Check, output: Tensor) -> list[list[Tensor | None]]:
    """For every input the gradients of each element of `output`."""
    seed = zeros_like(output)
    found: list[list[Tensor | None]] = [[] for _ in check.xs]
    for place in np.ndindex(*output.shape):
        seed.zero_()
        seed[place] = 1.0
        gradients = grad(output, check.xs, seed, retain_graph=True, allow_unused=True)
        for columns, gradient in zip(found, gradients, strict=True):
            columns.append(None if gradient is None else gradient.clone())
    return found


def _largest_difference(one: list[list[Tensor | None]], other: list[list[Tensor | None]]) -> float:
    largest = 0.0
    for row, other_row in zip(one, other, strict=True):
        for a, b in zip(row, other_row, strict=True):
            if (a is None) != (b is None):
                return inf
            if a is not None and b is not None and a.numel():
                largest = max(largest, float(np.abs(a._array - b._array).max()))
    return largest
