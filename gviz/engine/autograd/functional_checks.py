"""What the functions of ``torch.autograd.functional`` ask of their arguments and of the function they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from gviz.engine.tensor import Tensor

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
    """`value` as a tuple of tensors, and whether it was one. TypeError for anything else."""
    tensors = value if isinstance(value, tuple) else (value,)
    for index, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            which = f"value at index {index}" if isinstance(value, tuple) else f"given {what}"
            raise TypeError(_TYPE.format(what=what, function=function, which=which, kind=type(tensor)))
    return tensors, isinstance(value, tuple)


def check_vector(v: Tensors, like: Tensors, several: bool) -> None:
    """Refuse a vector that does not have the form of `like`."""
    if len(like) != len(v):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (given, other) in enumerate(zip(v, like, strict=True)):
        if given.shape != other.shape:
            which = f"Entry {index} in " if several else ""
            raise RuntimeError(f"{which}v has invalid size: should be {other.shape} but got {given.shape}.")


def check_requires_grad(tensors: Sequence[Tensor | None], kind: Kind) -> None:
    """Refuse, in strict mode, what does not depend on the inputs."""
    for index, tensor in enumerate(tensors):
        if tensor is None:
            raise RuntimeError(_INDEPENDENT.format(index=index))
        if not tensor.requires_grad:
            raise RuntimeError(_WITHOUT_GRADIENT[kind].format(index=index))


def check_depends(gradient: Tensor | None, index: int, stage: Stage, create_graph: bool) -> None:
    """Refuse, in strict mode, a gradient that is missing or constant."""
    if gradient is None:
        raise RuntimeError(_MISSING[stage].format(index=index))
    if create_graph and not gradient.requires_grad:
        raise RuntimeError(CONSTANT.format(what="hessian" if "double" in stage else "jacobian", index=index))
