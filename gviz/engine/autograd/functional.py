"""``torch.autograd.functional``: Jacobians, Hessians and their products with vectors.

The product of a Jacobian with a vector (jvp) is computed by two backward passes. The gradient is linear in the gradient
it starts from, and its derivative with respect to that is the transposed Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

import numpy as np

from gviz.engine.autograd.grad import grad
from gviz.engine.creation import zeros_like
from gviz.engine.modes import enable_grad, is_grad_enabled, set_grad_enabled, thread
from gviz.engine.ops.joining import stack
from gviz.engine.tensor import Tensor
from gviz.engine.unsupported_names import lookup_in
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# The checks of ``torch.autograd.functional`` for its arguments and for the function.


Tensors = tuple[Tensor, ...]
Kind = Literal["outputs", "grad_inputs", "jacobian", "hessian"]
Stage = Literal["back", "back_trick", "double_back", "double_back_trick"]

_TYPE = "The {what} given to {function} must be either a Tensor or a tuple of Tensors but the {which} has type {kind}."
_INDEPENDENT = (
    "The output of the user-provided function is independent of input {index}. This is not allowed in strict mode."
)
_WITHOUT_GRADIENT: dict[Kind, str] = {
    "outputs": (
        "Output {index} of the user-provided function does not require gradients. The outputs must be computed in a "
        "differentiable manner from the input when running in strict mode."
    ),
    "grad_inputs": (
        "The gradient with respect to input {index} is independent of the inputs of the user-provided function. This "
        "is not allowed in strict mode."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
        "{index} is independent of the input. This is not allowed in strict mode. You should ensure that your function "
        "is twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear "
        "function for example)."
    ),
    "hessian": (
        "The hessian of the user-provided function with respect to input {index} is independent of the input. This is "
        "not allowed in strict mode. You should ensure that your function is thrice differentiable and that the "
        "hessian depends on the inputs."
    ),
}
_MISSING: dict[Stage, str] = {
    "back": _INDEPENDENT,
    "back_trick": (
        "The gradient with respect to the input is independent of entry {index} in the grad_outputs when using the "
        "double backward trick to compute forward mode gradients. This is not allowed in strict mode."
    ),
    "double_back": (
        "The jacobian of the user-provided function is independent of input {index}. This is not allowed in strict "
        "mode."
    ),
    "double_back_trick": (
        "The hessian of the user-provided function is independent of entry {index} in the grad_jacobian. This is not "
        "allowed in strict mode as it prevents from using the double backward trick to replace forward mode AD."
    ),
}
CONSTANT = (
    "The {what} of the user-provided function is independent of input {index}. This is not allowed in strict mode when "
    "create_graph=True."
)


def listed(value: Any, what: str, function: str) -> tuple[Tensors, bool]:
    """`value` as a tuple of tensors, and whether it was one. Raises TypeError for anything else."""
    tensors = value if isinstance(value, tuple) else (value,)
    for index, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            which = f"value at index {index}" if isinstance(value, tuple) else f"given {what}"
            raise TypeError(_TYPE.format(what=what, function=function, which=which, kind=type(tensor)))
    return tensors, isinstance(value, tuple)


def check_vector(v: Tensors, like: Tensors, several: bool) -> None:
    """Raises RuntimeError for a vector that does not have the shapes of `like`."""
    if len(like) != len(v):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (part, other) in enumerate(zip(v, like, strict=True)):
        if part.shape != other.shape:
            which = f"Entry {index} in " if several else ""
            raise RuntimeError(f"{which}v has invalid size: should be {other.shape} but got {part.shape}.")


def check_requires_grad(tensors: Sequence[Tensor | None], kind: Kind) -> None:
    """Raises RuntimeError, in strict mode, for tensors that do not depend on the inputs."""
    for index, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError(_INDEPENDENT.format(index=index))
        if not tensor.requires_grad:
            raise RuntimeError(_WITHOUT_GRADIENT[kind].format(index=index))


def check_depends(gradient: Tensor | None, index: int, stage: Stage, create_graph: bool) -> None:
    """Raises RuntimeError, in strict mode, for a gradient that is missing or constant."""
    if gradient is None:
        raise RuntimeError(_MISSING[stage].format(index=index))
    if create_graph and not gradient.requires_grad:
        raise RuntimeError(CONSTANT.format(what="hessian" if "double" in stage else "jacobian", index=index))


# ----------------------------------------------------------------------------------------------------------------------
# The two Jacobians that gradcheck compares: from central differences, and from backward passes.


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
    """Raised when a gradient does not agree with finite differences."""


@dataclass(frozen=True, slots=True)
class Check:
    """A function, its inputs (`xs` are those that require grad), and the tolerances of the comparison."""

    func: Function
    inputs: tuple[Any, ...]
    xs: Tensors
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool

    def outputs(self) -> tuple[Any, ...]:
        return as_tuple(self.func(*self.inputs))


def as_tuple(value: Any) -> tuple[Any, ...]:
    """One value or several as a tuple."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def numerical(check: Check, x: Tensor, outputs: tuple[Any, ...]) -> list[Array]:
    """The Jacobian of every output by `x`, one row for each element of `x`, by central differences."""
    jacobians = [np.zeros((x.numel(), o.numel()), o._array.dtype) for o in outputs]
    for row, place in enumerate(np.ndindex(*x.shape)):
        below, above = (_moved(check, x, place, step) for step in (-check.eps, check.eps))
        for jacobian, low, high in zip(jacobians, below, above, strict=True):
            _check_same_form(low, high, check.eps)
            jacobian[row] = thread.quietly(_slope, low, high, check.eps).reshape(-1)
    return jacobians


def _slope(low: Array, high: Array, eps: float) -> Array:
    return (high - low) / (2 * eps)


def _moved(check: Check, x: Tensor, place: tuple[int, ...], step: float) -> list[Array]:
    """Return the outputs with one element of `x` changed by a step.

    Writes through ``.data``, so that autograd does not notice.
    """
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
    """The Jacobian of one output by every input, from two backward passes that must agree."""
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
    """For every input, the gradients of each element of `output`."""
    seed = zeros_like(output)
    by_input: list[list[Tensor | None]] = [[] for _ in check.xs]
    for place in np.ndindex(*output.shape):
        seed.zero_()
        seed[place] = 1.0
        gradients = grad(output, check.xs, seed, retain_graph=True, allow_unused=True)
        for columns, gradient in zip(by_input, gradients, strict=True):
            columns.append(None if gradient is None else gradient.clone())
    return by_input


def _largest_difference(one: list[list[Tensor | None]], other: list[list[Tensor | None]]) -> float:
    largest = 0.0
    for row, other_row in zip(one, other, strict=True):
        for a, b in zip(row, other_row, strict=True):
            if (a is None) != (b is None):
                return inf
            if a is not None and b is not None and a.numel():
                largest = max(largest, float(np.abs(thread.quietly(np.subtract, a._array, b._array)).max()))
    return largest


Gradients = tuple[Tensor | None, ...]

_NO_VECTOR = (
    "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
)
_NO_VECTOR_FOR_VJP = (
    "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
)
_OUTPUTS = "outputs of the user-provided function"


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Returns the outputs of `func`, and the product of `v` with its Jacobian."""
    with enable_grad():
        xs, several_inputs = _inputs(inputs, "vjp", create_graph)
        ys, several_outputs = _outputs(func, xs, "vjp", strict)
        vector = _vector(v, ys, several_outputs, "vjp", create_graph, _NO_VECTOR_FOR_VJP)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _filled(_gradients(ys, xs, vector, create_graph), xs, strict, create_graph, "back")
    return _in_argument_form(ys, several_outputs, create_graph), _in_argument_form(
        product, several_inputs, create_graph
    )


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Returns the outputs of `func`, and the product of its Jacobian with `v`."""
    with enable_grad():
        xs, several_inputs = _inputs(inputs, "jvp", create_graph)
        vector = _vector(v, xs, several_inputs, "jvp", create_graph, _NO_VECTOR)
        ys, several_outputs = _outputs(func, xs, "jvp", strict)
        # any values will do: the gradient is linear in them
        seeds = tuple([zeros_like(y, requires_grad=True) for y in ys])
        gradients = _gradients(ys, xs, seeds, create_graph=True)
        if strict:
            check_requires_grad(gradients, "grad_inputs")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _filled(_gradients(gradients, seeds, vector, create_graph), ys, strict, create_graph, "back_trick")
    return _in_argument_form(ys, several_outputs, create_graph), _in_argument_form(
        product, several_outputs, create_graph
    )


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of every output of `func` by every input; nested tuples if there are several.

    They are computed row by row; `vectorize` and `strategy` do not change that.
    """
    _check_strategy(create_graph, strict, vectorize, strategy)
    with enable_grad():
        xs, several_inputs = _inputs(inputs, "jacobian", create_graph)
        ys, several_outputs = _outputs(func, xs, "jacobian", strict)
        rows = tuple([_rows(i, y, xs, create_graph, strict) for i, y in enumerate(ys)])
    converted = tuple([_in_argument_form(row, several_inputs, create_graph) for row in rows])
    return converted if several_outputs else converted[0]


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function with a one-element output, by every pair of inputs."""
    xs, several_inputs = listed(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*args: Tensor) -> Any:
        (output,) = _outputs_of_one(func, args, "hessian", strict)
        return output.squeeze()

    def gradient(*args: Tensor) -> Any:
        first = jacobian(scalar, args, create_graph=True)
        if strict:
            check_requires_grad(first, "jacobian")
        return first

    result = jacobian(gradient, xs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if several_inputs else result[0][0]


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Returns the one-element output of `func`, and the product of `v` with its Hessian."""
    with enable_grad():
        xs, several_inputs = _inputs(inputs, "vhp", create_graph)
        vector = _vector(v, xs, several_inputs, "vhp", create_graph, _NO_VECTOR)
        ys = _outputs_of_one(func, xs, "vhp", strict)
        first = _gradients(ys, xs, None, create_graph=True)
        if strict:
            check_requires_grad(first, "jacobian")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _filled(_gradients(first, xs, vector, create_graph), xs, strict, create_graph, "double_back")
    return _in_argument_form(ys, False, create_graph), _in_argument_form(product, several_inputs, create_graph)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Returns the one-element output of `func`, and the product of its Hessian with `v`."""
    with enable_grad():
        xs, several_inputs = _inputs(inputs, "hvp", create_graph)
        vector = _vector(v, xs, several_inputs, "hvp", create_graph, _NO_VECTOR)
        ys = _outputs_of_one(func, xs, "hvp", strict)
        first = _gradients(ys, xs, None, create_graph=True)
        if strict:
            check_requires_grad(first, "jacobian")
        seeds = tuple([zeros_like(x, requires_grad=True) for x in xs])
        second = _gradients(first, xs, seeds, create_graph=True)
        if strict:
            check_requires_grad(first, "hessian")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        products = _gradients(second, seeds, vector, create_graph)
        product = _filled(products, xs, strict, create_graph, "double_back_trick")
    return _in_argument_form(ys, False, create_graph), _in_argument_form(product, several_inputs, create_graph)


def _inputs(inputs: Any, function: str, create_graph: bool) -> tuple[Tensors, bool]:
    """Return the inputs as new tensors that require grad. Inputs that `func` captures itself stay distinct
    from them.
    """
    tensors, several = listed(inputs, "inputs", function)
    return tuple([_renewed(x, create_graph, True) for x in tensors]), several


def _renewed(tensor: Tensor, create_graph: bool, requires_grad: bool) -> Tensor:
    if create_graph and tensor.requires_grad:
        return tensor.view(tensor.shape)
    return tensor.detach().requires_grad_(requires_grad)


def _outputs(func: Function, xs: Tensors, function: str, strict: bool) -> tuple[Tensors, bool]:
    ys, several = listed(func(*xs), _OUTPUTS, function)
    if strict:
        check_requires_grad(ys, "outputs")
    return ys, several


def _outputs_of_one(func: Function, xs: Tensors, function: str, strict: bool) -> Tensors:
    ys, several = _outputs(func, xs, function, strict)
    if several:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if ys[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return ys


def _vector(v: Any, like: Tensors, several: bool, function: str, create_graph: bool, missing: str) -> Tensors | None:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(missing)
        return None
    tensors, _ = listed(v, "v", function)
    vector = tuple([_renewed(t, create_graph, False) for t in tensors])
    check_vector(vector, like, several)
    return vector


def _gradients(
    ys: Sequence[Tensor | None], xs: Tensors, seeds: Tensors | None, create_graph: bool, retain: bool | None = None
) -> Gradients:
    """``autograd.grad`` of those `ys` that have one; None for an input that none of them depends on."""
    pairs = [(y, None if seeds is None else seeds[i]) for i, y in enumerate(ys) if y is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(xs)
    roots, gradients = zip(*pairs, strict=True)
    return grad(roots, xs, gradients, retain_graph=retain, create_graph=create_graph, allow_unused=True)


def _filled(gradients: Gradients, like: Tensors, strict: bool, create_graph: bool, stage: Stage) -> Tensors:
    """Replace missing gradients by zeros. In strict mode missing ones raise RuntimeError."""
    if strict:
        for index, gradient in enumerate(gradients):
            check_depends(gradient, index, stage, create_graph)
    return tuple([zeros_like(x) if g is None else g for g, x in zip(gradients, like, strict=True)])


def _rows(index: int, y: Tensor, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """Return the derivatives of output number `index` by each input."""
    by_input: list[list[Tensor]] = [[] for _ in xs]
    for place in range(y.numel()):
        gradients = _gradients((y.reshape(-1)[place],), xs, None, create_graph, retain=True)
        for number, (row, gradient) in enumerate(zip(by_input, gradients, strict=True)):
            if strict:
                _check_row(gradient, index, number, create_graph)
            row.append(zeros_like(xs[number]) if gradient is None else gradient)
    return tuple([stack(row).view(y.shape + x.shape) for row, x in zip(by_input, xs, strict=True)])


def _check_row(gradient: Tensor | None, output: int, number: int, create_graph: bool) -> None:
    if gradient is None:
        raise RuntimeError(
            f"Output {output} of the user-provided function is independent of input {number}. This is not allowed in "
            "strict mode."
        )
    if create_graph and not gradient.requires_grad:
        raise RuntimeError(CONSTANT.format(what="jacobian", index=output))


def _check_strategy(create_graph: bool, strict: bool, vectorize: bool, strategy: str) -> None:
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict and strategy == "forward-mode":
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(  # PyTorch's text, including its missing space
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )


def _in_argument_form(tensors: Tensors, several: bool, create_graph: bool) -> Any:
    """Return results in the form of the caller's arguments, detached unless `create_graph`."""
    results = tensors if create_graph else tuple([t.detach() for t in tensors])
    return results if several else results[0]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__getattr__ = lookup_in(__name__)
