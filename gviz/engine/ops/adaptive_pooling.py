"""Pooling into a given number of parts, which may overlap by one element where the sizes do not divide."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal, spaced
from gviz.engine.ops.pooling import put_at
from gviz.values import Array

Shape = tuple[int, ...]


def _parts(size: int, count: int) -> list[slice]:
    """The elements of each part."""
    return [slice(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


def _mean(self: Array, output_size: Shape) -> Array:
    """The means of the parts, one dimension after the other."""
    first = self.ndim - len(output_size)
    for dim, count in enumerate(output_size, first):
        moved = np.moveaxis(self, dim, -1)
        means = np.zeros((*moved.shape[:-1], count), self.dtype)
        for number, part in enumerate(_parts(moved.shape[-1], count)):
            means[..., number] = moved[..., part].sum(-1) / (part.stop - part.start)
        self = np.moveaxis(means, -1, dim)
    return np.ascontiguousarray(self)


def _spread(self: Array, size: Shape) -> Array:
    """Each number shared among the elements of its part: the transpose of `_mean`."""
    first = self.ndim - len(size)
    for dim in range(first, self.ndim):
        if not self.shape[dim]:
            raise RuntimeError(
                f"adaptive_avg_pool{len(size)}d_backward(): Expected grad_output to have non-zero size for non-batch "
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
        found = self[under].reshape(*lead, -1)
        which = _winner(found)
        at: Any = (..., *place)
        values[at] = np.take_along_axis(found, which[..., np.newaxis], -1)[..., 0]
        indices[at] = positions[window].reshape(-1)[which]
    return values, indices


def _winner(found: Array) -> Any:
    """Where the first of the largest is, or the last nan."""
    which = np.argmax(found, axis=-1)
    if found.dtype.kind == "f" and np.isnan(found).any():
        nan = np.isnan(found)
        which = np.where(nan.any(-1), found.shape[-1] - 1 - np.argmax(nan[..., ::-1], axis=-1), which)
    return which


def _last(sizes: Shape, dims: int) -> Shape:
    return sizes[len(sizes) - dims :]


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
                lambda g, self_sym_sizes: backward(g, size=_last(self_sym_sizes, dims)),
            ),
        ),
        public=False,
        torch=f"nn.functional.adaptive_avg_pool{dims}d",
        examples=lambda: [Example((normal(1, 2, *(4, 3, 5)[:dims]),), {"output_size": (3, 2, 4)[:dims]})],
    )
    backward: Op = Op(
        f"adaptive_avg_pool{dims}d_backward(self, *, size)",
        grad_fn=f"AdaptiveAvgPool{dims}DBackwardBackward0",
        formula="self, shared among the elements of its part",
        forward=_spread,
        rules=(
            Rule(
                "self",
                "the mean of g in each part",
                lambda g, self_sym_sizes: pool(g, output_size=_last(self_sym_sizes, dims)),
            ),
        ),
        public=False,
        examples=lambda: [Example((normal(1, *(3, 2, 4)[:dims]),), {"size": (4, 3, 5)[:dims]})],
    )
    return pool


def _max_op(dims: int) -> Op:
    return Op(
        f"adaptive_max_pool{dims}d(self, *, output_size)",
        grad_fn=f"AdaptiveMaxPool{dims}DBackward0",
        formula="the largest of each part",
        forward=_largest,
        rules=(
            Rule(
                "self",
                "g where the largest was found, else 0",
                lambda g, result1, self_sym_sizes: put_at(g, result1, size=_last(self_sym_sizes, dims)),
            ),
        ),
        outputs=("result", "result1"),
        differentiable_outputs=1,
        public=False,
        examples=lambda: [Example((spaced(1, 2, *(4, 3, 5)[:dims]),), {"output_size": (3, 2, 4)[:dims]})],
    )


avg_pools = {2: _avg_op(2), 3: _avg_op(3)}
max_pools = {2: _max_op(2), 3: _max_op(3)}
