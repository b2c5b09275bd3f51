"""``torch.nn.utils``: clips gradients, and flattens parameters to one vector."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.creation import tensor
from gviz.engine.modes import no_grad
from gviz.engine.nn.deprecated_names import deprecated_name
from gviz.engine.nn.module import typename
from gviz.engine.nn.utils import rnn as rnn
from gviz.engine.ops.comparison import clamp_front
from gviz.engine.ops.joining import cat
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.unsupported_names import lookup_in
from gviz.source.call_stack import warn

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "rnn",
    "vector_to_parameters",
]

Tensors = Tensor | Iterable[Tensor]


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales all gradients by one factor so that their total norm is at most `max_norm`. Returns the norm before."""
    empty = isinstance(parameters, types.GeneratorType)
    listed = _listed(parameters)
    if empty and not listed:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(_gradients(listed), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, max_norm, total, foreach)
    return total


clip_grad_norm = deprecated_name(clip_grad_norm_, "torch.nn.utils")


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors, taken as one vector."""
    listed, order = _listed(tensors), float(norm_type)
    if not listed:
        return tensor(0.0)
    for t in listed:
        t._read("array")
    norms = [np.linalg.norm(t._array.ravel(), order) for t in listed]
    kind = np.result_type(*[t._array.dtype for t in listed])
    total = np.asarray(np.linalg.norm(np.asarray(norms, kind), order), kind)
    if error_if_nonfinite and not np.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be clipped. "
            "To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return new_tensor(total)


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales all gradients, whose total norm is `total_norm`, so that it is at most `max_norm`."""
    with no_grad():
        factor = clamp_front(float(max_norm) / (total_norm + 1e-6), max=1.0)
        for grad in _gradients(_listed(parameters)):
            grad.mul_(factor.to(grad.dtype))


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limits every element of every gradient to the range from ``-clip_value`` to ``clip_value``."""
    bound = float(clip_value)
    gradients = _gradients(_listed(parameters))
    if not gradients:
        raise RuntimeError(messages.NO_GRADIENTS_TO_CLIP)
    with no_grad():
        for grad in gradients:
            grad.clamp_(min=-bound)
            grad.clamp_(max=bound)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenates all elements of all parameters."""
    vector = cat([parameter.view(-1) for parameter in parameters])
    return vector


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes every parameter a view of its part of a vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end


def _listed(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


for _name in ("clipping", "vectors"):  # pickles of older versions look for the functions there
    sys.modules[f"{__name__}.{_name}"] = sys.modules[__name__]

__getattr__ = lookup_in(__name__)
