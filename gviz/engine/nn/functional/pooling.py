"""Pooling of ``torch.nn.functional``: what arguments mean, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gviz.engine.ops import pooling
from gviz.engine.ops.kernels import refuse_unless
from gviz.engine.ops.shape import run
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
]

Sizes = int | Sequence[int]
Shape = tuple[int, ...]
WORDS = {1: "one", 2: "two", 3: "three"}


def sizes_of(name: str, what: str, value: Sizes, dims: int, omitted: str = "") -> Shape:
    """One number per dimension. RuntimeError, in PyTorch's words, for another count."""
    given = (value,) if isinstance(value, int) else tuple(value)
    if len(given) not in (1, dims):
        raise RuntimeError(f"{name}: {what} must either be {omitted}a single int, or a tuple of {WORDS[dims]} ints")
    return given * dims if len(given) == 1 else given


def stride_of(name: str, stride: Sizes | None, kernel: Shape) -> Shape:
    """The stride, the size of the windows if it is not said."""
    if stride is None or (not isinstance(stride, int) and not len(stride)):
        return kernel
    return sizes_of(name, "stride", stride, len(kernel), "omitted, ")


def _check_windows(input: Tensor, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape) -> None:
    dims = len(kernel)
    if any(s == 0 for s in stride):
        raise RuntimeError("stride should not be zero")
    if any(k <= 0 for k in kernel):
        ends = ("T", "H", "W")[-dims:]
        said = " ".join(f"k{end}: {k}" for end, k in zip(ends, kernel, strict=True))
        raise RuntimeError(f"kernel size should be greater than zero, but got {said}")
    if any(d <= 0 for d in dilation):
        ends = ("T", "H", "W")[-dims:]
        said = " ".join(f"dilation{end}: {d}" for end, d in zip(ends, dilation, strict=True))
        raise RuntimeError(f"dilation should be greater than zero, but got {said}")
    for p, k, d in zip(padding, kernel, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={p}, kernel_size={k} and dilation={d}"
            )


def _check_input(input: Tensor, dims: int) -> None:
    batched = f"{dims + 1}D or {dims + 2}D"
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"non-empty {batched} (batch mode) tensor expected for input")
    if 0 in input.shape[input.ndim - dims - 1 :]:
        raise RuntimeError(
            f"Expected {batched} (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(input.shape)}"
        )


def _check_output(
    input: Tensor, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> None:
    dims = len(kernel)
    sizes = input.shape[input.ndim - dims - 1 :]
    count = pooling.output_size(tuple(sizes[1:]), kernel, stride, padding, dilation, ceil_mode)
    if any(n < 1 for n in count):
        raise RuntimeError(
            f"Given input size: ({'x'.join(map(str, sizes))}). Calculated output size: "
            f"({'x'.join(map(str, (sizes[0], *count)))}). Output size is too small"
        )


def _max_pool(
    dims: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> tuple[Tensor, Tensor]:
    name = f"max_pool{dims}d"
    kernel = sizes_of(name, "kernel_size", kernel_size, dims)
    attrs: dict[str, Any] = {
        "stride": stride_of(name, stride, kernel),
        "padding": sizes_of(name, "padding", padding, dims),
        "dilation": sizes_of(name, "dilation", dilation, dims),
    }
    _check_windows(input, kernel, **attrs)
    _check_input(input, dims)
    _check_output(input, kernel, **attrs, ceil_mode=ceil_mode)
    op = pooling.max_pool2d if dims == 2 else pooling.max_pool3d
    values, indices = op(input, kernel_size=kernel, **attrs, ceil_mode=ceil_mode)
    return values, indices


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest element under each window of the last dimension, and where it is."""
    if input.ndim not in (2, 3):
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(input.shape)}"
        )
    refuse_unless(input.dtype.is_floating_point, "max_pool1d_impl", input._array)
    kernel, (step, edge, gap) = _one(kernel_size), _line(kernel_size, stride, padding, dilation)
    _check_line(input, kernel, step, edge, gap, ceil_mode)
    wide = _max_pool(2, input.unsqueeze(-2), (1, kernel), (1, step), (0, edge), (1, gap), ceil_mode)
    return wide[0].squeeze(-2), wide[1].squeeze(-2)


def _one(value: Sizes) -> int:
    return value if isinstance(value, int) else value[0]


def _line(kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes) -> tuple[int, int, int]:
    step = kernel if stride is None or stride == () or stride == [] else stride
    return _one(step), _one(padding), _one(dilation)


def _check_line(input: Tensor, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> None:
    for bad, text in (
        (kernel <= 0, f"max_pool1d() kernel_size must be greater than zero, but got {kernel}"),
        (stride <= 0, f"max_pool1d() stride must be greater than zero, but got {stride}"),
        (padding < 0, f"max_pool1d() padding must be non-negative, but got {padding}"),
        (
            padding > kernel / 2,
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding} and "
            f"kernel_size={kernel}",
        ),
        (dilation <= 0, f"max_pool1d() dilation must be greater than zero, but got {dilation}"),
    ):
        if bad:
            raise RuntimeError(text)
    size = (input.shape[-1],)
    (count,) = pooling.output_size(size, (kernel,), (stride,), (padding,), (dilation,), ceil_mode)
    if count < 1:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest element under each window of the last two dimensions, and where it is."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest element under each window of the last three dimensions, and where it is."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode)


def _values_of(name: str, with_indices: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    def max_pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        found = with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        return found if return_indices else found[0]

    max_pool.__name__ = max_pool.__qualname__ = name
    max_pool.__doc__ = "The largest element under each window; with `return_indices` also where it is."
    return front(name, method=False)(max_pool)


max_pool1d = _values_of("max_pool1d", max_pool1d_with_indices)
max_pool2d = _values_of("max_pool2d", max_pool2d_with_indices)
max_pool3d = _values_of("max_pool3d", max_pool3d_with_indices)


@front("avg_pool1d", method=False)
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean under each window of the last dimension."""
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' (while "
            "checking arguments for avg_pool1d)"
        )
    step, edge, _ = _line(kernel_size, stride, padding, 1)
    wide = avg_pool2d(input.unsqueeze(-2), (1, _one(kernel_size)), (1, step), (0, edge), ceil_mode, count_include_pad)
    return wide.squeeze(-2)


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean under each window of the last two dimensions."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean under each window of the last three dimensions."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _avg_pool(
    dims: int,
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    name = f"avg_pool{dims}d"
    kernel = sizes_of(name, "kernel_size", kernel_size, dims)
    attrs: dict[str, Any] = {
        "stride": stride_of(name, stride, kernel),
        "padding": sizes_of(name, "padding", padding, dims),
    }
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    _check_windows(input, kernel, **attrs, dilation=(1,) * dims)
    _check_input(input, dims)
    _check_output(input, kernel, **attrs, dilation=(1,) * dims, ceil_mode=ceil_mode)
    attrs |= {"count_include_pad": count_include_pad, "divisor_override": divisor_override, "ceil_mode": ceil_mode}
    return run(pooling.avg_pool2d if dims == 2 else pooling.avg_pool3d, input, kernel_size=kernel, **attrs)
