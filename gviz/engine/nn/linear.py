"""Linear and bilinear maps, and modules that only change the shape."""

from __future__ import annotations

from math import sqrt
from typing import Any

from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import front
from gviz.engine.nn import functional as F
from gviz.engine.nn import init
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter, begin, empty
from gviz.engine.ops.matrix_products import trilinear
from gviz.engine.ops.shape import one_dim, reshape, run
from gviz.engine.tensor import Tensor


class Linear(Module):
    """``input @ weight.T + bias``; both are initialized uniformly within ±1 / sqrt(`in_features`)."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty(out_features, in_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty(out_features, device=device, dtype=dtype) if bias else None)
        begin(self)

    def reset_parameters(self) -> None:
        """Initializes the parameters."""
        init.kaiming_uniform_(self.weight, a=sqrt(5))
        if self.bias is not None:
            bound = 1 / sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Applies the map to the last dimension."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """``input1 @ weight[k] @ input2 + bias[k]`` for every output `k`."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty(out_features, in1_features, in2_features, device=device, dtype=dtype)
        self.register_parameter("bias", empty(out_features, device=device, dtype=dtype) if bias else None)
        begin(self)

    def reset_parameters(self) -> None:
        """Initializes the parameters."""
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={self.in1_features})")
        bound = 1 / sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Applies the map to the last dimensions."""
        result: Tensor = F.bilinear(input1, input2, self.weight, self.bias)
        return result

    def extra_repr(self) -> str:
        """The sizes."""
        sizes = f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"


class Identity(Module):
    """Returns its input; accepts any arguments and ignores them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Returns its input."""
        return input


class Flatten(Module):
    """Flattens dimensions `start_dim` to `end_dim` into one; by default all but the first, which is the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Flattens the input."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits one dimension into several."""

    def __init__(self, dim: int, unflattened_size: tuple[int, ...] | list[int]) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos "
                    f"{position}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Unflattens the input."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The dimension, and its sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


@F._declare
@front("bilinear", method=False)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[k] @ input2 + bias[k]`` for every output `k`, over the last dimensions of the inputs."""
    _check_bilinear_dtypes(input1, input2, weight, bias)
    _check_bilinear_sizes(input1, input2, weight, bias)
    rows1, rows2 = (reshape(rows, -1, rows.shape[-1]) for rows in (input1, input2))
    dims = {"expand1": (1, 3), "expand2": (0,), "expand3": (1, 2), "sumdim": (2, 3)}
    flat = run(trilinear, rows1, weight, rows2, **dims)
    result: Tensor = reshape(flat, *input1.shape[:-1], weight.shape[0])
    return result if bias is None else result + bias


def _check_bilinear_dtypes(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    tensors = {"input1": input1, "input2": input2, "weight": weight}
    if bias is not None:
        tensors["bias"] = bias
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        dtypes = ", ".join(f"{name}: {tensor.dtype.cpp_name}" for name, tensor in tensors.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {dtypes}")


def _check_bilinear_sizes(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
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
