"""What cannot be convolved, refused in PyTorch's words."""

from __future__ import annotations

from gviz.engine.ops.convolution import transposed_size
from gviz.engine.tensor import Tensor

Shape = tuple[int, ...]


def check(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Shape,
    padding: Shape,
    dilation: Shape,
    transposed: bool,
    output_padding: Shape,
    groups: int,
) -> None:
    """RuntimeError, in PyTorch's words, for what cannot be convolved."""
    for bad, text in (
        (any(p < 0 for p in padding), "negative padding is not supported"),
        (any(p < 0 for p in output_padding), "negative output_padding is not supported"),
        (any(s <= 0 for s in stride), "non-positive stride is not supported"),
        (any(d <= 0 for d in dilation), "non-positive dilation is not supported"),
        (groups <= 0, "non-positive groups is not supported"),
        (weight.ndim != input.ndim, _dimensions(input, weight, stride)),
    ):
        if bad:
            raise RuntimeError(text)
    _check_channels(input, weight, bias, transposed, groups)
    _check_kinds(input, weight, bias, transposed)
    if transposed:
        _check_output(input, weight, stride, padding, dilation, output_padding)
    else:
        _check_kernel(input, weight, padding, dilation)


def _dimensions(input: Tensor, weight: Tensor, stride: Shape) -> str:
    dims = weight.ndim - 2
    return (
        f"expected stride to be a single integer value or a list of {dims} values to match the convolution dimensions, "
        f"but got stride={list(stride)}"
    )


def _check_channels(input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool, groups: int) -> None:
    sizes, way = list(weight.shape), f"transposed={int(transposed)}" if transposed else f"groups={groups}"
    if sizes[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{sizes} instead"
        )
    expected = sizes[0] if transposed else sizes[1] * groups
    outputs = sizes[1] * groups if transposed else sizes[0]
    if sizes[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{sizes}] instead"
        )
    if input.shape[1] != expected:
        raise RuntimeError(
            f"Given {way}, weight of size {sizes}, expected input{list(input.shape)} to have {expected} channels, but "
            f"got {input.shape[1]} channels instead"
        )
    if bias is not None and (bias.ndim != 1 or bias.shape[0] != outputs):
        given = f"Given {way}, weight" if transposed else "Given weight"
        raise RuntimeError(
            f"{given} of size {sizes}, expected bias to be 1-dimensional with {outputs} elements, but got bias of size "
            f"{list(bias.shape)} instead"
        )


def _check_kinds(input: Tensor, weight: Tensor, bias: Tensor | None, transposed: bool) -> None:
    """RuntimeError for mixed dtypes; which of the two is looked at first differs, as in PyTorch."""
    if transposed and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.tensor_type} but found {weight.dtype.tensor_type}")
    if bias is not None and bias.dtype is not input.dtype:
        kinds = [t.dtype.tensor_type.lower() for t in (input, bias)]
        raise RuntimeError(f"Input type ({kinds[0]}) and bias type ({kinds[1]}) should be the same")
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.tensor_type} but found {weight.dtype.tensor_type}")


def _check_kernel(input: Tensor, weight: Tensor, padding: Shape, dilation: Shape) -> None:
    around = [n + 2 * p for n, p in zip(input.shape[2:], padding, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(n < r for n, r in zip(around, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, around))}). Kernel size: "
            f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
        )


def _check_output(
    input: Tensor, weight: Tensor, stride: Shape, padding: Shape, dilation: Shape, output_padding: Shape
) -> None:
    if any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation, strict=True)):
        rows = (("output_padding", output_padding), ("stride", stride), ("dilation", dilation))
        ends = ["depth", "height", "width"][-len(stride) :]
        said = " ".join(f"{name}_{end}: {v}" for name, values in rows for end, v in zip(ends, values, strict=True))
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {said}")
    size = transposed_size(input.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
    if any(n < 1 for n in size):
        raise RuntimeError(
            f"Given input size per channel: {list(input.shape[2:])}. Calculated output size per channel: {list(size)}. "
            "Output size is too small"
        )
