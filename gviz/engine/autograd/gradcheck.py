"""``torch.autograd.gradcheck``: gradients compared with finite differences, once and twice over."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from gviz.engine.autograd.grad import grad
from gviz.engine.creation import from_numpy, zeros_like
from gviz.engine.missing import lookup_in
from gviz.engine.node import Grad, Node
from gviz.engine.sampling import rand
from gviz.engine.tensor import Tensor
from gviz.values import Array

Tensors = tuple[Tensor, ...]
Function = Callable[..., Any]

_NOTES = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
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
class _Check:
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
        return _listed(self.func(*self.inputs))


def gradcheck(
    func: Function,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` by those of `inputs` that require grad with central differences.

    Raises `GradcheckError` where they disagree, or returns False if `raise_exception` is. Every element is tried, also
    with `fast_mode`.
    """
    _refuse_modes(check_forward_ad, check_backward_ad, check_batched_grad, check_batched_forward_grad)
    listed = _listed(inputs)
    _check_inputs(listed)
    xs = tuple([x for x in listed if isinstance(x, Tensor) and x.requires_grad])
    check = _Check(func, listed, xs, eps, atol, rtol, nondet_tol, check_grad_dtypes)
    try:
        _compare(check)
        _check_zero_gradients(check)
        if check_undefined_grad:
            _check_missing_gradients(check)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    gen_non_contig_grad_outputs: bool = False,
    **options: Any,
) -> bool:
    """`gradcheck` of the gradients of `func`, by its inputs and by `grad_outputs`, which are random if not given."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    listed = _listed(inputs)
    seeds = _random_seeds(func, listed) if grad_outputs is None else _listed(grad_outputs)
    count = len(seeds)
    differentiated = {i for i, x in enumerate(listed) if isinstance(x, Tensor) and x.requires_grad}

    def gradients(*args: Any) -> Tensors:
        xs, given = args[:-count], args[-count:]
        wanted = [x for i, x in enumerate(xs) if i in differentiated]
        found = grad(_tracked(func(*xs)), wanted, given, create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradcheck(
        gradients,
        (*listed, *seeds),
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        **options,
    )


def _listed(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _tracked(outputs: Any) -> Tensors:
    return tuple([o for o in _listed(outputs) if o.requires_grad])


def _random_seeds(func: Function, inputs: tuple[Any, ...]) -> Tensors:
    return tuple([(rand(o.shape, dtype=o.dtype) * 2 - 1).requires_grad_() for o in _tracked(func(*inputs))])


def _refuse_modes(forward: bool, backward: bool, batched: bool, batched_forward: bool) -> None:
    if not (forward or backward):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if batched and not backward:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if batched_forward and not forward:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    if forward:
        raise NotImplementedError("gviz's built-in engine has no forward mode to check: leave check_forward_ad out")
    if batched:
        raise NotImplementedError("gviz's built-in engine has no batched gradients: leave check_batched_grad out")


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    tracked = [(i, x) for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
    for index, x in tracked:
        if x._array.dtype != np.float64:
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it to gradcheck."
            )
    if not tracked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _compare(check: _Check) -> None:
    """Both kinds of Jacobians, for every output by every input."""
    outputs = check.outputs()
    numerical = [_numerical(check, x, outputs) for x in check.xs]
    if not any(o.requires_grad for o in outputs):
        if any(jacobian.any() for jacobians in numerical for jacobian in jacobians):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    tracked = [number for number, output in enumerate(outputs) if output.requires_grad]
    for i, number in enumerate(tracked):
        analytical = _analytical(check, outputs[number])
        for j, (a, n) in enumerate(zip(analytical, [jacobians[number] for jacobians in numerical], strict=True)):
            if not np.allclose(a, n, check.rtol, check.atol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {j},\n"
                    f"numerical:{from_numpy(n)}\nanalytical:{from_numpy(a)}\n"
                )


def _numerical(check: _Check, x: Tensor, outputs: tuple[Any, ...]) -> list[Array]:
    """The Jacobian of every output by `x`, one row for each element of `x`, by central differences."""
    jacobians = [np.zeros((x.numel(), o.numel()), o._array.dtype) for o in outputs]
    for row, place in enumerate(np.ndindex(*x.shape)):
        below, above = (_moved(check, x, place, step) for step in (-check.eps, check.eps))
        for jacobian, low, high in zip(jacobians, below, above, strict=True):
            _check_same_form(low, high, check.eps)
            jacobian[row] = ((high - low) / (2 * check.eps)).reshape(-1)
    return jacobians


def _moved(check: _Check, x: Tensor, place: tuple[int, ...], step: float) -> list[Array]:
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


def _analytical(check: _Check, output: Tensor) -> list[Array]:
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


def _columns(check: _Check, output: Tensor) -> list[list[Tensor | None]]:
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


def _check_zero_gradients(check: _Check) -> None:
    """With zeros as gradients of the outputs, those of the inputs must be zero."""
    outputs = _tracked(check.outputs())
    if not outputs:
        return
    for gradient in grad(outputs, check.xs, [zeros_like(o) for o in outputs], allow_unused=True):
        if gradient is not None and gradient._array.any():
            raise GradcheckError("backward not multiplied by grad_output")


class _Undefined(Node):
    """A step that passes no gradient on."""

    __slots__ = ()

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        return [None]


def _without_gradient(tensor: Tensor) -> Tensor:
    node = _Undefined()
    node.next_edges = [tensor._edge()]
    node.outputs = ((tensor._array.shape, tensor._array.dtype),)
    return tensor._as_output_of(node, 0)


def _check_missing_gradients(check: _Check) -> None:
    """A backward must do without the gradients of its outputs: of all of them, and of each alone."""
    count = len(_tracked(check.outputs()))
    missing = [set(range(count)), *([{number} for number in range(count)] if count > 1 else [])]
    for numbers in missing if count else []:
        outputs = [_without_gradient(o) if i in numbers else o for i, o in enumerate(_tracked(check.outputs()))]
        try:
            gradients = grad(outputs, check.xs, [zeros_like(o) for o in outputs], allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError(f"Expected backward function to handle undefined output grads. {_NOTES}") from error
        if any(g is not None and g._array.any() for g in gradients):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                + _NOTES
            )


__getattr__ = lookup_in(__name__)
