"""``torch.nn.functional.bilinear``: maps that are linear in each of two inputs."""

from __future__ import annotations

from gviz.engine import messages
from gviz.engine.ops.dims import one_dim
from gviz.engine.ops.shape import reshape, run
from gviz.engine.ops.trilinear import trilinear
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor

__all__ = ["bilinear"]


@front("bilinear", method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2 + bias[k]`` for every output `k`, over the last dimensions of the inputs."""
    _check_dtypes(input1, input2, weight, bias)
    _check_sizes(input1, input2, weight, bias)
    rows1, rows2 = (reshape(rows, -1, rows.shape[-1]) for rows in (input1, input2))
    dims = {"expand1": (1, 3), "expand2": (0,), "expand3": (1, 2), "sumdim": (2, 3)}
    flat = run(trilinear, rows1, weight, rows2, **dims)
    result: Tensor = reshape(flat, *input1.shape[:-1], weight.shape[0])
    return result if bias is None else result + bias


def _check_dtypes(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    given = {"input1": input1, "input2": input2, "weight": weight}
    if bias is not None:
        given["bias"] = bias
    if len({tensor.dtype for tensor in given.values()}) > 1:
        kinds = {name: tensor.dtype.tensor_type for name, tensor in given.items()}
        said = ", ".join(f"{name}: {messages.CPP_TYPES.get(kind, kind.lower())}" for name, kind in kinds.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {said}")


def _check_sizes(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for dim, (size, other) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if size != other:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {dim}: got {size} and {other}")
    for name, tensor, dim, place in (("input1", input1, -1, 1), ("input2", input2, -1, 2), ("bias", bias, 0, 0)):
        if tensor is not None and _size(tensor, dim) != _size(weight, place):
            got = f"got {_size(tensor, dim)} but expected {_size(weight, place)}"
            raise RuntimeError(f"bilinear(): {name} size does not match weight size: {got}")
    if weight.ndim != 3:
        raise RuntimeError("number of dimensions must match")


def _size(tensor: Tensor, dim: int) -> int:
    if not tensor.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    size: int = tensor.shape[one_dim(dim, tensor.ndim)]
    return size
