"""Pooling: the maximum, mean or norm of each window, and the inverse of max pooling; as functions and as modules.

A pool has windows of `kernel_size` at every `stride`. An *adaptive* pool has a number of parts instead, `output_size`.
One declaration covers each family. Pools in one dimension are pools in two dimensions with one row, except that
`max_pool1d` has its own error texts, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar

from gviz.engine.functions_and_methods import front
from gviz.engine.modes import thread
from gviz.engine.nn import functional as F
from gviz.engine.nn._families_by_dimension import LAST, Shape, Sizes, each, named, sizes_of, stride_of
from gviz.engine.nn.module import Module
from gviz.engine.ops import pooling
from gviz.engine.ops._kernels import refuse_unless
from gviz.engine.ops.pooling import unpool
from gviz.engine.ops.shape import run
from gviz.engine.tensor import Tensor

Parts = int | None | Sequence[int | None]


class _MaxPool(Module):
    """The maximum of every window; with `return_indices` also its index."""

    dims: ClassVar[int]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Pools the input."""
        return getattr(F, f"max_pool{self.dims}d")(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        """The window and its movement."""
        window = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
        return f"{window}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class MaxPool1d(_MaxPool):
    """The maximum of every window of a sequence."""

    dims = 1


class MaxPool2d(_MaxPool):
    """The maximum of every window of an image."""

    dims = 2


class MaxPool3d(_MaxPool):
    """The maximum of every window of a volume."""

    dims = 3


class _MaxUnpool(Module):
    """Puts elements back where a `_MaxPool` found them, with zeros elsewhere."""

    dims: ClassVar[int]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = each(kernel_size, self.dims)
        self.stride = each(stride if stride is not None else kernel_size, self.dims)
        self.padding = each(padding, self.dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Puts the elements back."""
        unpool = getattr(F, f"max_unpool{self.dims}d")
        result: Tensor = unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)
        return result

    def extra_repr(self) -> str:
        """The window and its movement."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The inverse of `MaxPool1d`, with zeros for the elements that it dropped."""

    dims = 1


class MaxUnpool2d(_MaxUnpool):
    """The inverse of `MaxPool2d`, with zeros for the elements that it dropped."""

    dims = 2


class MaxUnpool3d(_MaxUnpool):
    """The inverse of `MaxPool3d`, with zeros for the elements that it dropped."""

    dims = 3


class AvgPool1d(Module):
    """The mean of every window of a sequence."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = each(kernel_size, 1)
        self.stride = each(stride if stride is not None else kernel_size, 1)
        self.padding = each(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Pools the input."""
        window = (self.kernel_size, self.stride, self.padding)
        return F.avg_pool1d(input, *window, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        """The window and its movement."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    """The mean of every window."""

    dims: ClassVar[int]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Pools the input."""
        window = (self.kernel_size, self.stride, self.padding)
        pool = getattr(F, f"avg_pool{self.dims}d")
        result: Tensor = pool(input, *window, self.ceil_mode, self.count_include_pad, self.divisor_override)
        return result

    def extra_repr(self) -> str:
        """The window and its movement."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of every window of an image."""

    dims = 2


class AvgPool3d(_AvgPool):
    """The mean of every window of a volume."""

    dims = 3


class _LPPool(Module):
    """The norm of every window."""

    dims: ClassVar[int]

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Pools the input."""
        pool = getattr(F, f"lp_pool{self.dims}d")
        result: Tensor = pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)
        return result

    def extra_repr(self) -> str:
        """The norm, the window and its movement."""
        window = f"kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"
        return f"norm_type={self.norm_type}, {window}"


class LPPool1d(_LPPool):
    """The norm of every window of a sequence."""

    dims = 1


class LPPool2d(_LPPool):
    """The norm of every window of an image."""

    dims = 2


class LPPool3d(_LPPool):
    """The norm of every window of a volume."""

    dims = 3


class _AdaptivePool(Module):
    """Base class of pooling to a given size."""

    dims: ClassVar[int]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """The size of the result."""
        return f"output_size={self.output_size}"


class _AdaptiveAvgPool(_AdaptivePool):
    """The mean of every part."""

    def forward(self, input: Tensor) -> Tensor:
        """Pools the input."""
        result: Tensor = getattr(F, f"adaptive_avg_pool{self.dims}d")(input, self.output_size)
        return result


class _AdaptiveMaxPool(_AdaptivePool):
    """The maximum of every part; with `return_indices` also its index."""

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """Pools the input."""
        return getattr(F, f"adaptive_max_pool{self.dims}d")(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Average pooling to a sequence of a given length."""

    dims = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Average pooling to an image of a given size."""

    dims = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Average pooling to a volume of a given size."""

    dims = 3


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Max pooling to a sequence of a given length."""

    dims = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Max pooling to an image of a given size."""

    dims = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Max pooling to a volume of a given size."""

    dims = 3


def _make_max_pool(dims: int) -> tuple[Callable[..., Any], Callable[..., tuple[Tensor, Tensor]]]:
    @F._declare
    @named(f"max_pool{dims}d_with_indices", f"The largest element in each window of {LAST[dims]}, and where it is.")
    def with_indices(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        if dims == 1:
            return _max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
        return _max_pool(dims, input, kernel_size, stride, padding, dilation, ceil_mode)

    @F._declare
    @front(f"max_pool{dims}d", method=False)
    @named(f"max_pool{dims}d", "The largest element in each window; with `return_indices` also where it is.")
    def max_pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        values, indices = with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        if dims == 1 and not return_indices and not (input.requires_grad and thread.grad_enabled):
            values._base = None  # PyTorch has another kernel then, whose result is no view
        return (values, indices) if return_indices else values

    return max_pool, with_indices


max_pool1d, max_pool1d_with_indices = _make_max_pool(1)
max_pool2d, max_pool2d_with_indices = _make_max_pool(2)
max_pool3d, max_pool3d_with_indices = _make_max_pool(3)


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


def _max_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> tuple[Tensor, Tensor]:
    """`_max_pool` in one dimension, with its own error texts; computed as an image with one row."""
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


def _make_avg_pool(dims: int) -> Callable[..., Tensor]:
    @F._declare
    @named(f"avg_pool{dims}d", f"The mean of each window of {LAST[dims]}.")
    def avg_pool(
        input: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
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

    return avg_pool


avg_pool2d, avg_pool3d = map(_make_avg_pool, (2, 3))


@F._declare
@front("avg_pool1d", method=False)
def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of the last dimension."""
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' (while "
            "checking arguments for avg_pool1d)"
        )
    step, edge, _ = _line(kernel_size, stride, padding, 1)
    wide = avg_pool2d(input.unsqueeze(-2), (1, _one(kernel_size)), (1, step), (0, edge), ceil_mode, count_include_pad)
    return wide.squeeze(-2)


@F._declare
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: int, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The norm of each window of the last dimension: the root of a sum of powers."""
    return _root(avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), norm_type, kernel_size)


def _make_lp_pool(dims: int) -> Callable[..., Tensor]:
    mean_of = {2: avg_pool2d, 3: avg_pool3d}[dims]

    @F._declare
    @named(f"lp_pool{dims}d", f"The norm of each window of {LAST[dims]}: the root of a sum of powers.")
    def lp_pool(
        input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
    ) -> Tensor:
        count = prod(sizes_of(f"lp_pool{dims}d", "kernel_size", kernel_size, dims))
        return _root(mean_of(input.pow(norm_type), kernel_size, stride, 0, ceil_mode), norm_type, count)

    return lp_pool


lp_pool2d, lp_pool3d = map(_make_lp_pool, (2, 3))


def _root(mean: Tensor, norm_type: float, count: int) -> Tensor:
    return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / norm_type)


def _make_adaptive_avg_pool(dims: int) -> Callable[..., Tensor]:
    name = f"adaptive_avg_pool{dims}d"

    @F._declare
    @named(name, f"The mean of each of `output_size` parts of {LAST[dims]}.")
    def adaptive_avg_pool(input: Tensor, output_size: Parts) -> Tensor:
        parts = _parts(name, dims, input, output_size)
        if all(n == 1 for n in parts):
            return input.mean(tuple(range(-1, -dims - 1, -1)), keepdim=True)
        return run(pooling.avg_pools[dims], input, output_size=parts)

    return adaptive_avg_pool


adaptive_avg_pool2d, adaptive_avg_pool3d = map(_make_adaptive_avg_pool, (2, 3))


@F._declare
@front("adaptive_avg_pool1d", method=False)
def adaptive_avg_pool1d(input: Tensor, output_size: Parts) -> Tensor:
    """The mean of each of `output_size` parts of the last dimension."""
    (parts,) = _parts("adaptive_avg_pool1d", 1, input, output_size)
    return adaptive_avg_pool2d(input.unsqueeze(-2), (1, parts)).squeeze(-2)


def _make_adaptive_max_pool(dims: int) -> tuple[Callable[..., Any], Callable[..., tuple[Tensor, Tensor]]]:
    name = f"adaptive_max_pool{dims}d"

    @F._declare
    @named(f"{name}_with_indices", f"The largest of each part of {LAST[dims]}, and where it is.")
    def with_indices(input: Tensor, output_size: Parts, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        parts = _parts(name, dims, input, output_size, ":")
        if dims > 1:
            values, indices = pooling.max_pools[dims](input, output_size=parts)
            return values, indices
        values, indices = adaptive_max_pool2d_with_indices(input.unsqueeze(-2), (1, *parts))
        return values.squeeze(-2), indices.squeeze(-2)

    @F._declare
    @named(name, "The largest of each part; with `return_indices` also where it is.")
    def adaptive_max_pool(input: Tensor, output_size: Parts, return_indices: bool = False) -> Any:
        values, indices = with_indices(input, output_size)
        return (values, indices) if return_indices else values

    return adaptive_max_pool, with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _make_adaptive_max_pool(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _make_adaptive_max_pool(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _make_adaptive_max_pool(3)
front("adaptive_max_pool1d", method=False)(adaptive_max_pool1d_with_indices)


def _parts(name: str, dims: int, input: Tensor, output_size: Parts, colon: str = "") -> Shape:
    """Return the number of parts along each dimension, from `output_size`; None keeps the size of the dimension."""
    sizes = (output_size,) * dims if isinstance(output_size, int) or output_size is None else tuple(output_size)
    if len(sizes) != dims:
        raise RuntimeError(f"{name}: output_size must be {dims}")
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got{colon} {list(input.shape)}")
    parts = tuple([own if n is None else n for n, own in zip(sizes, input.shape[-dims:], strict=True)])
    if any(n < 0 for n in parts):
        text = ", ".join(map(str, parts))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{text}}}"
        )
    for dim in range(input.ndim - dims, input.ndim):
        if not input.shape[dim]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {dim} being empty"
            )
    return parts


def _make_max_unpool(dims: int) -> Callable[..., Tensor]:
    @F._declare
    @named(f"max_unpool{dims}d", f"The largest elements back where `max_pool{dims}d` found them, zeros elsewhere.")
    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        name = f"max_unpool{dims}d"
        kernel = sizes_of(name, "kernel_size", kernel_size, dims)
        steps, edges = stride_of(name, stride, kernel), sizes_of(name, "padding", padding, dims)
        counts = input.shape[input.ndim - dims :]
        size = tuple([(n - 1) * s - 2 * p + k for n, k, s, p in zip(counts, kernel, steps, edges, strict=True)])
        if output_size is not None:
            requested = tuple(output_size)[-dims:]
            for d, (n, own, s) in enumerate(zip(requested, size, steps, strict=True)):
                if not own - s < n < own + s:
                    raise ValueError(
                        f'invalid output_size "{requested}" (dim {d} must be between {own - s} and {own + s})'
                    )
            size = requested
        if input.shape != indices.shape:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got "
                f"indices tensor with shape: {list(indices.shape)}"
            )
        array, volume = indices._array, prod(size)
        bad = array[(array < 0) | (array >= volume)]
        if bad.size:
            sizes = "x".join(map(str, size))
            raise RuntimeError(f"Found an invalid max index: {bad[0]} (output volumes are of size {sizes})")
        return run(unpool[dims], input, indices, size=size)

    return max_unpool


max_unpool1d, max_unpool2d, max_unpool3d = map(_make_max_unpool, (1, 2, 3))


def _check_windows(input: Tensor, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape) -> None:
    dims = len(kernel)
    if any(s == 0 for s in stride):
        raise RuntimeError("stride should not be zero")
    if any(k <= 0 for k in kernel):
        ends = ("T", "H", "W")[-dims:]
        sizes = " ".join(f"k{end}: {k}" for end, k in zip(ends, kernel, strict=True))
        raise RuntimeError(f"kernel size should be greater than zero, but got {sizes}")
    if any(d <= 0 for d in dilation):
        ends = ("T", "H", "W")[-dims:]
        sizes = " ".join(f"dilation{end}: {d}" for end, d in zip(ends, dilation, strict=True))
        raise RuntimeError(f"dilation should be greater than zero, but got {sizes}")
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
