"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from gviz.engine.nn.members import typename
from gviz.engine.ops.joining import cat
from gviz.engine.tensor import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of all parameters, one after the other."""
    vector = cat([parameter.view(-1) for parameter in parameters])
    return vector


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let every parameter look into its part of a vector."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end
