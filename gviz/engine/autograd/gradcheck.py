"""``torch.autograd.gradcheck``: compares first and second derivatives with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine.autograd.functional import Check, Tensors, analytical, as_tuple, numerical
from gviz.engine.autograd.functional import GradcheckError as GradcheckError
from gviz.engine.autograd.grad import grad
from gviz.engine.creation import from_numpy, zeros_like
from gviz.engine.node import Grad, Node
from gviz.engine.random_tensors import rand
from gviz.engine.tensor import Tensor
from gviz.engine.unsupported_names import lookup_in
from gviz.events import OpSeen
from gviz.source.call_stack import warn

Function = Callable[..., Any]

_NOTES = 'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'


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
    """Compares the gradients of `func` by those of `inputs` that require grad with central differences.

    Raises `GradcheckError` if they disagree, or returns False if `raise_exception` is False. Every element is checked,
    even with `fast_mode`.
    """
    _refuse_modes(check_forward_ad, check_backward_ad, check_batched_grad, check_batched_forward_grad)
    arguments = as_tuple(inputs)
    _check_inputs(arguments)
    xs = tuple([x for x in arguments if isinstance(x, Tensor) and x.requires_grad])
    check = Check(func, arguments, xs, eps, atol, rtol, nondet_tol, check_grad_dtypes)
    try:
        _compare(check)
        _check_nothings(check)
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
    """Runs `gradcheck` on the gradients of `func`, by its inputs and by `grad_outputs` (random by default)."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    arguments = as_tuple(inputs)
    seeds = _random_seeds(func, arguments) if grad_outputs is None else as_tuple(grad_outputs)
    count = len(seeds)
    differentiated = {i for i, x in enumerate(arguments) if isinstance(x, Tensor) and x.requires_grad}

    def gradients(*args: Any) -> Tensors:
        xs, arguments = args[:-count], args[-count:]
        variables = [x for i, x in enumerate(xs) if i in differentiated]
        first = grad(_tracked(func(*xs)), variables, arguments, create_graph=True, allow_unused=True)
        return tuple([g for g in first if g is not None])

    return gradcheck(
        gradients,
        (*arguments, *seeds),
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        **options,
    )


def _tracked(outputs: Any) -> Tensors:
    return tuple([o for o in as_tuple(outputs) if o.requires_grad])


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
            warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
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


def _compare(check: Check) -> None:
    """Compare both Jacobians, for every output by every input."""
    outputs = check.outputs()
    by_input = [numerical(check, x, outputs) for x in check.xs]
    if not any(o.requires_grad for o in outputs):
        if any(jacobian.any() for jacobians in by_input for jacobian in jacobians):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    tracked = [number for number, output in enumerate(outputs) if output.requires_grad]
    for i, number in enumerate(tracked):
        expected = [jacobians[number] for jacobians in by_input]
        for j, (a, n) in enumerate(zip(analytical(check, outputs[number]), expected, strict=True)):
            if not np.allclose(a, n, check.rtol, check.atol):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {j},\n"
                    f"numerical:{from_numpy(n)}\nanalytical:{from_numpy(a)}\n"
                )


def _check_nothings(check: Check) -> None:
    """Check that zero gradients of the outputs give zero gradients of the inputs."""
    outputs = _tracked(check.outputs())
    if not outputs:
        return
    for gradient in grad(outputs, check.xs, [zeros_like(o) for o in outputs], allow_unused=True):
        if gradient is not None and gradient._array.any():
            raise GradcheckError("backward not multiplied by grad_output")


class _UndefinedGradient(Node):
    """A backward step that passes no gradient on."""

    __slots__ = ()

    def vjp(self, grads: Sequence[Grad | None], create_graph: bool) -> Sequence[Grad | None]:
        return [None]

    def describe(self, number: int) -> OpSeen:
        """The step as an event, in case the check is recorded."""
        return OpSeen(number, "undefined", "UndefinedGradBackward", ("self",), ("",), ())


def _without_gradient(tensor: Tensor) -> Tensor:
    node = _UndefinedGradient()
    node.next_edges = [tensor._edge()]
    node.outputs = ((tensor._array.shape, tensor._array.dtype),)
    return tensor._as_output_of(node, 0)


def _check_missing_gradients(check: Check) -> None:
    """Check that a backward handles undefined gradients of its outputs: of all of them, and of each one."""
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
