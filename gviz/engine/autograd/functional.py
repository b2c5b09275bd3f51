"""``torch.autograd.functional``: Jacobians, Hessians and their products with vectors, of functions of tensors.

A product with a Jacobian from the right is computed by going backward twice: the gradient is linear in the gradient it
starts from, and its derivative with respect to that is the transposed Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gviz.engine.autograd.functional_checks import (
    CONSTANT,
    Stage,
    Tensors,
    check_depends,
    check_requires_grad,
    check_vector,
    listed,
)
from gviz.engine.autograd.grad import grad
from gviz.engine.creation import zeros_like
from gviz.engine.missing import lookup_in
from gviz.engine.modes import enable_grad, is_grad_enabled, set_grad_enabled
from gviz.engine.ops.joining import stack
from gviz.engine.tensor import Tensor

Function = Callable[..., Any]
Gradients = tuple[Tensor | None, ...]

_NO_VECTOR = (
    "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
)
_NO_VECTOR_FOR_VJP = (
    "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
)
_OUTPUTS = "outputs of the user-provided function"


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The outputs of `func`, and the product of `v` with its Jacobian."""
    with enable_grad():
        xs, several_inputs = _inputs(inputs, "vjp", create_graph)
        ys, several_outputs = _outputs(func, xs, "vjp", strict)
        vector = _vector(v, ys, several_outputs, "vjp", create_graph, _NO_VECTOR_FOR_VJP)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _filled(_gradients(ys, xs, vector, create_graph), xs, strict, create_graph, "back")
    return _given_back(ys, several_outputs, create_graph), _given_back(product, several_inputs, create_graph)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The outputs of `func`, and the product of its Jacobian with `v`."""
    with enable_grad():
        xs, several_inputs = _inputs(inputs, "jvp", create_graph)
        vector = _vector(v, xs, several_inputs, "jvp", create_graph, _NO_VECTOR)
        ys, several_outputs = _outputs(func, xs, "jvp", strict)
        seeds = tuple([zeros_like(y, requires_grad=True) for y in ys])  # any will do, the gradient is linear in them
        gradients = _gradients(ys, xs, seeds, create_graph=True)
        if strict:
            check_requires_grad(gradients, "grad_inputs")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _filled(_gradients(gradients, seeds, vector, create_graph), ys, strict, create_graph, "back_trick")
    return _given_back(ys, several_outputs, create_graph), _given_back(product, several_outputs, create_graph)


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivatives of every output of `func` by every input; nested tuples if there are several.

    It is computed row by row, whatever `vectorize` and `strategy` say of the way.
    """
    _check_strategy(create_graph, strict, vectorize, strategy)
    with enable_grad():
        xs, several_inputs = _inputs(inputs, "jacobian", create_graph)
        ys, several_outputs = _outputs(func, xs, "jacobian", strict)
        rows = tuple([_rows(i, y, xs, create_graph, strict) for i, y in enumerate(ys)])
    kept = tuple([_given_back(row, several_inputs, create_graph) for row in rows])
    return kept if several_outputs else kept[0]


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function of one element by every pair of inputs."""
    xs, several_inputs = listed(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*given: Tensor) -> Any:
        (output,) = _outputs_of_one(func, given, "hessian", strict)
        return output.squeeze()

    def gradient(*given: Tensor) -> Any:
        first = jacobian(scalar, given, create_graph=True)
        if strict:
            check_requires_grad(first, "jacobian")
        return first

    result = jacobian(gradient, xs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if several_inputs else result[0][0]


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of `func`, which has one element, and the product of `v` with its Hessian."""
    with enable_grad():
        xs, several_inputs = _inputs(inputs, "vhp", create_graph)
        vector = _vector(v, xs, several_inputs, "vhp", create_graph, _NO_VECTOR)
        ys = _outputs_of_one(func, xs, "vhp", strict)
        first = _gradients(ys, xs, None, create_graph=True)
        if strict:
            check_requires_grad(first, "jacobian")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        product = _filled(_gradients(first, xs, vector, create_graph), xs, strict, create_graph, "double_back")
    return _given_back(ys, False, create_graph), _given_back(product, several_inputs, create_graph)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The output of `func`, which has one element, and the product of its Hessian with `v`."""
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
        found = _gradients(second, seeds, vector, create_graph)
        product = _filled(found, xs, strict, create_graph, "double_back_trick")
    return _given_back(ys, False, create_graph), _given_back(product, several_inputs, create_graph)


def _inputs(inputs: Any, function: str, create_graph: bool) -> tuple[Tensors, bool]:
    """The inputs as new tensors that require grad, so that the same ones captured by `func` are others."""
    given, several = listed(inputs, "inputs", function)
    return tuple([_renewed(x, create_graph, True) for x in given]), several


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
    given, _ = listed(v, "v", function)
    vector = tuple([_renewed(t, create_graph, False) for t in given])
    check_vector(vector, like, several)
    return vector


def _gradients(
    ys: Sequence[Tensor | None], xs: Tensors, seeds: Tensors | None, create_graph: bool, retain: bool | None = None
) -> Gradients:
    """``autograd.grad`` of those `ys` that have one; None for an input that none depends on."""
    pairs = [(y, None if seeds is None else seeds[i]) for i, y in enumerate(ys) if y is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(xs)
    roots, given = zip(*pairs, strict=True)
    return grad(roots, xs, given, retain_graph=retain, create_graph=create_graph, allow_unused=True)


def _filled(gradients: Gradients, like: Tensors, strict: bool, create_graph: bool, stage: Stage) -> Tensors:
    """Zeros for the gradients that are missing, which strict mode refuses."""
    if strict:
        for index, gradient in enumerate(gradients):
            check_depends(gradient, index, stage, create_graph)
    return tuple([zeros_like(x) if g is None else g for g, x in zip(gradients, like, strict=True)])


def _rows(index: int, y: Tensor, xs: Tensors, create_graph: bool, strict: bool) -> Tensors:
    """The derivatives of output number `index` by each input."""
    found: list[list[Tensor]] = [[] for _ in xs]
    for place in range(y.numel()):
        gradients = _gradients((y.reshape(-1)[place],), xs, None, create_graph, retain=True)
        for number, (row, gradient) in enumerate(zip(found, gradients, strict=True)):
            if strict:
                _check_row(gradient, index, number, create_graph)
            row.append(zeros_like(xs[number]) if gradient is None else gradient)
    return tuple([stack(row).view(y.shape + x.shape) for row, x in zip(found, xs, strict=True)])


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
        raise NotImplementedError(  # the words are PyTorch's, a missing space included
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for "
            "`vectorize=True`."
        )


def _given_back(tensors: Tensors, several: bool, create_graph: bool) -> Any:
    """Results in the form the caller used, without history unless it is wanted."""
    kept = tensors if create_graph else tuple([t.detach() for t in tensors])
    return kept if several else kept[0]


__getattr__ = lookup_in(__name__)
