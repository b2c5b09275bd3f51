"""Pooling: the mean or maximum of each window or of a given number of parts, and maxima put back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule, zero_gradient
from gviz.engine.ops._examples import normal, spaced
from gviz.engine.ops.convolution import Windows, inner, padded
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Pooling: the maximum or mean under windows that slide over the last dimensions.


Shape = tuple[int, ...]


def output_size(size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool) -> Shape:
    """The number of windows; with `ceil_mode` including those that extend beyond the end but start before it."""
    counts = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (room + (s - 1 if ceil_mode else 0)) // s + 1
        counts.append(count - 1 if ceil_mode and (count - 1) * s >= n + p else count)
    return tuple(counts)


def _windows(size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool) -> Windows:
    """Return the windows over an input padded enough for the last of them."""
    count = output_size(size, kernel, stride, padding, dilation, ceil_mode)
    geometry = zip(size, padding, count, kernel, stride, dilation, strict=True)
    reach = tuple([max(n + 2 * p, (c - 1) * s + d * (k - 1) + 1) for n, p, c, k, s, d in geometry])
    return Windows(reach, count, kernel, stride, dilation)


def _framed(self: Array, windows: Windows, padding: Shape, value: Any) -> Array:
    sizes = self.shape[self.ndim - len(padding) :]
    after = tuple([r - n - p for r, n, p in zip(windows.size, sizes, padding, strict=True)])
    return padded(self, padding, after, value)


def _lowest(kind: np.dtype[Any]) -> Any:
    return -np.inf if kind.kind == "f" else np.iinfo(kind).min


def _max_pool(
    self: Array, kernel_size: Shape, stride: Shape, padding: Shape, dilation: Shape, ceil_mode: bool
) -> tuple[Array, Array]:
    """Return the maxima and their indices, counted through the unpadded last dimensions. Among equal ones,
    the first.
    """
    dims = len(kernel_size)
    sizes = self.shape[self.ndim - dims :]
    windows = _windows(sizes, kernel_size, stride, padding, dilation, ceil_mode)
    frame = _framed(self, windows, padding, _lowest(self.dtype))
    parts = [frame[windows.under(place)] for place in windows.places()]
    best, which = parts[0].copy(), np.zeros(parts[0].shape, np.int8 if len(parts) < 128 else np.int32)
    for number, part in enumerate(parts[1:], 1):
        larger = part > best
        np.maximum(best, part, out=best)
        np.maximum(which, larger.view(np.int8) * which.dtype.type(number), out=which)  # far faster than a masked write
    if self.dtype.kind == "f" and np.isnan(best).any():
        for number, part in enumerate(parts):  # the last nan wins
            np.copyto(which, number, where=np.isnan(part))
    return best, _positions(which, windows, sizes, padding)


def _positions(which: Array, windows: Windows, sizes: Shape, padding: Shape) -> Array:
    """Positions in windows converted to positions in the unpadded input."""
    steps = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
    places = np.array(
        [sum(p * d * t for p, d, t in zip(place, windows.dilation, steps, strict=True)) for place in windows.places()],
        np.int64,
    )
    positions = places[which]
    for dim, (count, s, p, step) in enumerate(zip(windows.count, windows.stride, padding, steps, strict=True)):
        starts = (np.arange(count) * s - p) * step
        positions += starts.reshape(-1, *[1] * (len(sizes) - dim - 1))
    return positions


def flat(array: Array, dims: int) -> Array:
    """Flattens the last dimensions into one, and those before into another."""
    lead = array.shape[: array.ndim - dims]
    return array.reshape(prod(lead), prod(array.shape[array.ndim - dims :]))


def _picked(self: Array, indices: Array, dims: int) -> Array:
    return np.take_along_axis(flat(self, dims), flat(indices, dims), 1).reshape(indices.shape)


def _put(self: Array, indices: Array, size: Shape) -> Array:
    dims = len(size)
    lead = self.shape[: self.ndim - dims]
    places = flat(indices, dims) + np.arange(prod(lead))[:, np.newaxis] * prod(size)
    result = np.zeros(prod(lead) * prod(size), self.dtype)
    np.add.at(result, places.reshape(-1), self.reshape(-1))
    return result.reshape(*lead, *size)


picked_at: Op = Op(
    "pool_pick(self, indices, *, dims)",
    grad_fn="PoolPickBackward0",
    formula="self at indices of its last dims",
    forward=_picked,
    rules=(
        Rule(
            "self",
            "g at indices, else 0",
            lambda g, indices, self_sym_sizes, dims: put_at(
                g, indices, size=self_sym_sizes[len(self_sym_sizes) - dims :]
            ),
        ),
    ),
    public=False,
    examples=lambda: [Example((normal(2, 2, 3), np.array([[[1]], [[4]]])), {"dims": 2})],
)
put_at: Op = Op(
    "pool_put(self, indices, *, size)",
    grad_fn="PoolPutBackward0",
    formula="0 with self added at indices of the last dimensions",
    forward=_put,
    rules=(Rule("self", "g at indices", lambda g, indices, size: picked_at(g, indices, dims=len(size))),),
    public=False,
    examples=lambda: [Example((normal(2, 1, 2), np.array([[[1, 1]], [[4, 0]]])), {"size": (2, 3)})],
)


def _maxima_op(name: str, grad_fn: str, dims: int) -> Op:
    """Return the gradient of a maximum pooling, as an operation on the incoming gradient."""

    def put(self: Array, at: Array, indices: Array) -> Array:
        return _put(self, indices, at.shape[at.ndim - dims :])

    op: Op = Op(
        f"{name}_backward(self, at, indices)",
        grad_fn=grad_fn,
        formula="self where the largest was found, else 0",
        forward=put,
        rules=(
            Rule("self", "g where the largest was found", lambda g, indices: picked_at(g, indices, dims=dims)),
            Rule("at", "0", zero_gradient),
        ),
        public=False,
        examples=lambda: [
            Example((normal(2, *(1, 1, 2)[-dims:]), spaced(2, *(1, 2, 3)[-dims:]), _example_indices(dims)), {})
        ],
    )
    return op


def _example_indices(dims: int) -> Array:
    return np.array([[1, 1], [4, 0]]).reshape(2, *(1, 1, 2)[-dims:])


def _max_examples(dims: int) -> Callable[[], list[Example]]:
    plain = {"stride": (2,) * dims, "padding": (0,) * dims, "dilation": (1,) * dims, "ceil_mode": False}
    bent = {"stride": (1,) * dims, "padding": (1,) * dims, "dilation": (2,) * dims, "ceil_mode": True}
    shape = (2, *range(4, 4 + dims))
    return lambda: [Example((spaced(1, *shape),), {"kernel_size": (2,) * dims} | attrs) for attrs in (plain, bent)]


def _max_pool_op(dims: int) -> Op:
    name = f"max_pool{dims}d_with_indices"
    backward = _maxima_op(name, f"MaxPool{dims}DWithIndicesBackwardBackward0", dims)
    return Op(
        f"{name}(self, *, kernel_size, stride, padding, dilation, ceil_mode)",
        grad_fn=f"MaxPool{dims}DWithIndicesBackward0",
        formula="the largest element under each window",
        forward=_max_pool,
        rules=(
            Rule(
                "self",
                "g where the largest was found, else 0",
                lambda g, self, result1: backward(g, self, result1),
            ),
        ),
        outputs=("result", "result1"),
        differentiable_outputs=1,
        public=False,
        examples=_max_examples(dims),
    )


max_pool2d = _max_pool_op(2)
max_pool3d = _max_pool_op(3)


def _divisors(
    windows: Windows, sizes: Shape, padding: Shape, count_include_pad: bool, divisor_override: int | None
) -> Any:
    """Return the divisor of the sum under each window."""
    if divisor_override is not None:
        return divisor_override
    counts: Any = 1
    for dim, (n, p, c, k, s) in enumerate(
        zip(sizes, padding, windows.count, windows.kernel, windows.stride, strict=True)
    ):
        start = np.arange(c) * s - p
        end = np.minimum(start + k, n + p)
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, n)
        counts = counts * (end - start).reshape(-1, *[1] * (len(sizes) - dim - 1))
    return counts


def _avg_pool(
    self: Array,
    kernel_size: Shape,
    stride: Shape,
    padding: Shape,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    sizes = self.shape[self.ndim - len(kernel_size) :]
    windows = _windows(sizes, kernel_size, stride, padding, (1,) * len(sizes), ceil_mode)
    frame = _framed(self, windows, padding, 0)
    total = np.zeros((*self.shape[: self.ndim - len(sizes)], *windows.count), self.dtype)
    for place in windows.places():
        total += frame[windows.under(place)]
    divisors = _divisors(windows, sizes, padding, count_include_pad, divisor_override)
    if self.dtype.kind != "f":
        return np.asarray(total / divisors).astype(self.dtype)
    total /= np.asarray(divisors, self.dtype)
    return total


def _avg_spread(
    self: Array,
    at: Array,
    kernel_size: Shape,
    stride: Shape,
    padding: Shape,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Array:
    size = at.shape[at.ndim - len(kernel_size) :]
    windows = _windows(size, kernel_size, stride, padding, (1,) * len(size), ceil_mode)
    divisors = _divisors(windows, size, padding, count_include_pad, divisor_override)
    share = self / np.asarray(divisors, self.dtype)
    frame = np.zeros((*self.shape[: self.ndim - len(size)], *windows.size), self.dtype)
    for place in windows.places():
        frame[windows.under(place)] += share
    return np.ascontiguousarray(frame[inner(size, padding)])


def _geometry(dims: int, shift: int) -> dict[str, Any]:
    return {
        "kernel_size": (2, 3, 2)[:dims],
        "stride": (2, 1, 1)[:dims],
        "padding": (shift,) * dims,
        "ceil_mode": bool(shift),
        "count_include_pad": not shift,
        "divisor_override": None,
    }


def _avg_pool_op(dims: int) -> Op:
    names = "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override"
    size = (3, 4, 3)[:dims]

    def spread(
        g: Any,
        self: Any,
        kernel_size: Shape,
        stride: Shape,
        padding: Shape,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        geometry = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}
        divided = {"count_include_pad": count_include_pad, "divisor_override": divisor_override}
        return backward(g, self, **geometry, **divided)

    def gather(
        g: Any,
        kernel_size: Shape,
        stride: Shape,
        padding: Shape,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        geometry = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}
        return pool(g, **geometry, count_include_pad=count_include_pad, divisor_override=divisor_override)

    pool: Op = Op(
        f"avg_pool{dims}d(self, *, {names})",
        grad_fn=f"AvgPool{dims}DBackward0",
        formula="the mean under each window",
        forward=_avg_pool,
        rules=(Rule("self", "g, shared among the elements under its window", spread),),
        public=False,
        torch=f"nn.functional.avg_pool{dims}d",
        examples=lambda: [
            *[Example((normal(1, 2, *size),), _geometry(dims, shift)) for shift in (0, 1)],
            Example((normal(2, *size),), _geometry(dims, 1) | {"divisor_override": 3}),
        ],
    )
    backward: Op = Op(
        f"avg_pool{dims}d_backward(self, at, *, {names})",
        grad_fn=f"AvgPool{dims}DBackwardBackward0",
        formula="self, shared among the elements under its window",
        forward=_avg_spread,
        rules=(Rule("self", "the mean of g under each window", gather), Rule("at", "0", zero_gradient)),
        public=False,
        examples=lambda: [Example((normal(1, *[2, 2, 2][:dims]), normal(1, *(4, 4, 3)[:dims])), _geometry(dims, 0))],
    )
    return pool


avg_pool2d = _avg_pool_op(2)
avg_pool3d = _avg_pool_op(3)


# ----------------------------------------------------------------------------------------------------------------------
# Pooling into a given number of parts, which may overlap by one element if the sizes do not divide.


def _parts(size: int, count: int) -> list[slice]:
    """Return the elements of each part."""
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _mean(self: Array, output_size: Shape) -> Array:
    """Return the means of the parts, dimension by dimension."""
    first = self.ndim - len(output_size)
    for dim, count in enumerate(output_size, first):
        moved = np.moveaxis(self, dim, -1)
        means = np.zeros((*moved.shape[:-1], count), self.dtype)
        for number, part in enumerate(_parts(moved.shape[-1], count)):
            means[..., number] = moved[..., part].sum(-1) / (part.stop - part.start)
        self = np.moveaxis(means, -1, dim)
    return np.ascontiguousarray(self)


def _spread(self: Array, at: Array, dims: int) -> Array:
    """Distribute each number over the elements of its part: the transpose of `_mean`."""
    first = self.ndim - dims
    size = at.shape[first:]
    for dim in range(first, self.ndim):
        if not self.shape[dim]:
            raise RuntimeError(
                f"adaptive_avg_pool{dims}d_backward(): Expected grad_output to have non-zero size for non-batch "
                f"dimensions, but grad_output has sizes {list(self.shape)} with dimension {dim} being empty"
            )
    for dim, length in enumerate(size, first):
        moved = np.moveaxis(self, dim, -1)
        shares = np.zeros((*moved.shape[:-1], length), self.dtype)
        for number, part in enumerate(_parts(length, moved.shape[-1])):
            shares[..., part] += moved[..., number, np.newaxis] / (part.stop - part.start)
        self = np.moveaxis(shares, -1, dim)
    return np.ascontiguousarray(self)


def _largest(self: Array, output_size: Shape) -> tuple[Array, Array]:
    dims = len(output_size)
    lead, size = self.shape[: self.ndim - dims], self.shape[self.ndim - dims :]
    positions = np.arange(prod(size)).reshape(size)
    values, indices = np.empty((*lead, *output_size), self.dtype), np.empty((*lead, *output_size), np.int64)
    parts = [_parts(n, count) for n, count in zip(size, output_size, strict=True)]
    for place in product(*[range(count) for count in output_size]):
        window = tuple([parts[d][i] for d, i in enumerate(place)])
        under: Any = (..., *window)
        elements = self[under].reshape(*lead, -1)
        which = _winner(elements)
        at: Any = (..., *place)
        values[at] = np.take_along_axis(elements, which[..., np.newaxis], -1)[..., 0]
        indices[at] = positions[window].reshape(-1)[which]
    return values, indices


def _winner(elements: Array) -> Any:
    """Return the index of the first maximum, or of the last nan."""
    which = np.argmax(elements, axis=-1)
    if elements.dtype.kind == "f" and np.isnan(elements).any():
        nan = np.isnan(elements)
        which = np.where(nan.any(-1), elements.shape[-1] - 1 - np.argmax(nan[..., ::-1], axis=-1), which)
    return which


def _avg_op(dims: int) -> Op:
    pool: Op = Op(
        f"adaptive_avg_pool{dims}d(self, *, output_size)",
        grad_fn=f"AdaptiveAvgPool{dims}DBackward0",
        formula="the mean of each part",
        forward=_mean,
        rules=(
            Rule(
                "self",
                "g, shared among the elements of its part",
                lambda g, self: backward(g, self, dims=dims),
            ),
        ),
        public=False,
        torch=f"nn.functional.adaptive_avg_pool{dims}d",
        examples=lambda: [Example((normal(1, 2, *(4, 3, 5)[:dims]),), {"output_size": (3, 2, 4)[:dims]})],
    )
    backward: Op = Op(
        f"adaptive_avg_pool{dims}d_backward(self, at, *, dims)",
        grad_fn=f"AdaptiveAvgPool{dims}DBackwardBackward0",
        formula="self, shared among the elements of its part",
        forward=_spread,
        rules=(
            Rule(
                "self",
                "the mean of g in each part",
                lambda g, self_sym_sizes: pool(g, output_size=self_sym_sizes[len(self_sym_sizes) - dims :]),
            ),
            Rule("at", "0", zero_gradient),
        ),
        public=False,
        examples=lambda: [Example((normal(1, *(3, 2, 4)[:dims]), normal(1, *(4, 3, 5)[:dims])), {"dims": dims})],
    )
    return pool


def _max_op(dims: int) -> Op:
    name = f"adaptive_max_pool{dims}d"
    backward = _maxima_op(name, f"AdaptiveMaxPool{dims}DBackwardBackward0", dims)
    return Op(
        f"{name}(self, *, output_size)",
        grad_fn=f"AdaptiveMaxPool{dims}DBackward0",
        formula="the largest of each part",
        forward=_largest,
        rules=(
            Rule(
                "self",
                "g where the largest was found, else 0",
                lambda g, self, result1: backward(g, self, result1),
            ),
        ),
        outputs=("result", "result1"),
        differentiable_outputs=1,
        public=False,
        examples=lambda: [Example((spaced(1, 2, *(4, 3, 5)[:dims]),), {"output_size": (3, 2, 4)[:dims]})],
    )


avg_pools = {2: _avg_op(2), 3: _avg_op(3)}
max_pools = {2: _max_op(2), 3: _max_op(3)}


# ----------------------------------------------------------------------------------------------------------------------
# The maxima of pools, put back where they were found.


def _unpooled(self: Array, indices: Array, size: Shape) -> Array:
    dims = len(size)
    lead = self.shape[: self.ndim - dims]
    result = np.zeros((prod(lead), prod(size)), self.dtype)
    np.put_along_axis(result, flat(indices, dims), flat(self, dims), 1)
    return result.reshape(*lead, *size)


def _unpool_op(dims: int) -> Op:
    shape = (2, 1, 1)[:dims]
    return Op(
        f"max_unpool{dims}d(self, indices, *, size)",
        grad_fn=f"MaxUnpool{dims}DBackward0",
        formula="self at indices of the last dimensions, else 0",
        forward=_unpooled,
        rules=(Rule("self", "g at indices", lambda g, indices, size: picked_at(g, indices, dims=len(size))),),
        public=False,
        examples=lambda: [
            Example(
                (normal(2, *shape), np.array([0, 2, 3, 1]).reshape(2, *shape)),
                {"size": (2, 2, 1)[:dims] if dims > 1 else (4,)},
            )
        ],
    )


unpool = {1: _unpool_op(1), 2: _unpool_op(2), 3: _unpool_op(3)}
"""Each by its number of dimensions. An index that occurs twice keeps one of its values, and gives both the gradient."""
