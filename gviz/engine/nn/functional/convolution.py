"""Convolutions of ``torch.nn.functional``: what arguments mean, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gviz.engine.nn.functional.convolution_checks import check
from gviz.engine.ops.convolution import convolution
from gviz.engine.ops.padding import constant_pad_nd
from gviz.engine.ops.shape import run
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]

Sizes = int | Sequence[int]
Shape = tuple[int, ...]


@front("conv1d", method=False)
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """`weight` slid over the last dimension of `input`."""
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@front("conv2d", method=False)
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """`weight` slid over the last two dimensions of `input`."""
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@front("conv3d", method=False)
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """`weight` slid over the last three dimensions of `input`."""
    return _conv("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@front("conv_transpose1d", method=False)
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of `conv1d`: from what it gives to what it takes."""
    return _transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@front("conv_transpose2d", method=False)
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of `conv2d`: from what it gives to what it takes."""
    return _transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@front("conv_transpose3d", method=False)
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transpose of `conv3d`: from what it gives to what it takes."""
    return _transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _conv(
    name: str,
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    batched = _batched(name, dims, input)
    attrs: dict[str, Any] = {"stride": _sizes("stride", stride, dims), "dilation": _sizes("dilation", dilation, dims)}
    if isinstance(padding, str):
        batched, around = _by_name(padding, batched, weight, attrs)
    else:
        around = _sizes("padding", padding, dims)
    attrs |= {"padding": around, "transposed": False, "output_padding": (0,) * dims, "groups": groups}
    check(batched, weight, bias, **attrs)
    return _unbatched(run_optional(batched, weight, bias, attrs), input)


def _transposed(
    name: str,
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Tensor:
    batched = _batched(name, dims, input)
    attrs: dict[str, Any] = {
        "stride": _sizes("stride", stride, dims),
        "padding": _sizes("padding", padding, dims),
        "dilation": _sizes("dilation", dilation, dims),
        "transposed": True,
        "output_padding": _sizes("output_padding", output_padding, dims),
        "groups": groups,
    }
    check(batched, weight, bias, **attrs)
    return _unbatched(run_optional(batched, weight, bias, attrs), input)


@front("convolution", method=False)
def any_convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """The convolution that all others are, of a batch."""
    dims = weight.ndim - 2
    given = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": output_padding}
    attrs: dict[str, Any] = {name: _sizes(name, value, dims) for name, value in given.items()}
    attrs |= {"transposed": transposed, "groups": groups}
    check(input, weight, bias, **attrs)
    return run_optional(input, weight, bias, attrs)


def run_optional(input: Tensor, weight: Tensor, bias: Tensor | None, attrs: dict[str, Any]) -> Tensor:
    """Run the convolution, with or without a bias."""
    op, tensors = convolution.present((input, weight, bias))
    return run(op, *tensors, **attrs)


def _batched(name: str, dims: int, input: Tensor) -> Tensor:
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    return input if input.ndim == dims + 2 else input.unsqueeze(0)


def _unbatched(result: Tensor, input: Tensor) -> Tensor:
    return result if result.ndim == input.ndim else result.squeeze(0)


def _sizes(name: str, value: Sizes, dims: int) -> Shape:
    """One number per dimension. RuntimeError, in PyTorch's words, for another count."""
    given = (value,) if isinstance(value, int) else tuple(value)
    if len(given) not in (1, dims):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match the convolution "
            f"dimensions, but got {name}={list(given)}"
        )
    return given * dims if len(given) == 1 else given


def _by_name(padding: str, input: Tensor, weight: Tensor, attrs: dict[str, Any]) -> tuple[Tensor, Shape]:
    """The input and the padding that ``'same'`` or ``'valid'`` means; an odd rest is padded at the end first."""
    dims = weight.ndim - 2
    if padding == "valid":
        return input, (0,) * dims
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in attrs["stride"]):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(attrs["dilation"], weight.shape[2:], strict=True)]
    if any(n % 2 for n in total):
        input = constant_pad_nd(input, [v for n in reversed(total) for v in (0, n % 2)])
    return input, tuple([n // 2 for n in total])
