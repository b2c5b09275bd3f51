"""Images of another size: the nearest pixel, or a mixture of the neighbours along each dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.values import Array

Shape = tuple[int, ...]
Scales = tuple[float | None, ...]
Mix = list[tuple[Array, Array]]
"""Along one dimension: for each place the sources, and how much each counts."""


def _nearest(size: int, count: int, scale: float | None, shift: float) -> Mix:
    ratio = np.float32(1 / scale if scale else size / count)
    places = np.floor((np.arange(count, dtype=np.float32) + np.float32(shift)) * ratio).astype(np.int64)
    return [(np.minimum(places, size - 1), np.ones(count))]


def _linear(size: int, count: int, scale: float | None, align_corners: bool, kind: np.dtype[Any]) -> Mix:
    real = kind.type if kind.itemsize > 2 else np.float32
    places = np.arange(count, dtype=real)
    if align_corners:
        at = places * real((size - 1) / (count - 1) if count > 1 else 0)
    else:
        at = np.maximum((places + real(0.5)) * real(1 / scale if scale else size / count) - real(0.5), 0)
    low = np.minimum(at.astype(np.int64), size - 1)
    share = np.clip(at - low, 0, 1)
    return [(low, 1 - share), (np.minimum(low + 1, size - 1), share)]


def _mixes(
    size: Shape, output_size: Shape, scales: Scales, mode: str, align_corners: bool, kind: np.dtype[Any]
) -> list[Mix]:
    if mode == "linear":
        each = zip(size, output_size, scales, strict=True)
        return [_linear(n, count, scale, align_corners, kind) for n, count, scale in each]
    shift = 0.5 if mode == "nearest-exact" else 0.0
    return [_nearest(n, count, scale, shift) for n, count, scale in zip(size, output_size, scales, strict=True)]


def _mixed(self: Array, output_size: Shape, scales: Scales, mode: str, align_corners: bool) -> Array:
    first = self.ndim - len(output_size)
    mixes = _mixes(self.shape[first:], output_size, scales, mode, align_corners, self.dtype)
    for dim, mix in enumerate(mixes, first):
        (places, weights), *others = mix
        result = self.take(places, dim)
        if others:
            result = result * _along(weights, self, dim)
            for places, weights in others:
                result += self.take(places, dim) * _along(weights, self, dim)
        self = result
    return np.ascontiguousarray(self)


def _along(weights: Array, like: Array, dim: int) -> Array:
    return weights.astype(like.dtype).reshape(-1, *[1] * (like.ndim - dim - 1))


def _unmixed(self: Array, size: Shape, scales: Scales, mode: str, align_corners: bool) -> Array:
    """The transpose of `_mixed`: each source gets what it counted for."""
    first = self.ndim - len(size)
    mixes = _mixes(size, self.shape[first:], scales, mode, align_corners, self.dtype)
    for dim, (mix, length) in enumerate(zip(mixes, size, strict=True), first):
        moved = np.moveaxis(self, dim, 0)
        result = np.zeros((length, *moved.shape[1:]), self.dtype)
        for places, weights in mix:
            np.add.at(result, places, moved * _along(weights, moved, 0))
        self = np.moveaxis(result, 0, dim)
    return np.ascontiguousarray(self)


resized_back: Op = Op(
    "upsample_backward(self, *, size, scales, mode, align_corners)",
    grad_fn="UpsampleBackwardBackward0",
    formula="self added where it came from",
    forward=_unmixed,
    rules=(
        Rule(
            "self",
            "g in the other size",
            lambda g, self_sym_sizes, size, scales, mode, align_corners: OPS[mode, len(size)](
                g,
                output_size=self_sym_sizes[len(self_sym_sizes) - len(size) :],
                scales=scales,
                mode=mode,
                align_corners=align_corners,
            ),
        ),
    ),
    public=False,
    examples=lambda: [
        Example((normal(1, 2, 5),), {"size": (3,), "scales": (None,), "mode": mode, "align_corners": False})
        for mode in ("nearest", "linear")
    ],
)


def _op(name: str, grad_fn: str, mode: str, dims: int) -> Op:
    scales = (None,) * dims
    attrs: list[dict[str, Any]] = [{"mode": mode, "align_corners": False, "scales": scales}]
    attrs += [{"mode": mode, "align_corners": True, "scales": scales}] if mode == "linear" else []
    return Op(
        f"{name}(self, *, output_size, scales, mode, align_corners)",
        grad_fn=grad_fn,
        formula="self in another size",
        forward=_mixed,
        rules=(
            Rule(
                "self",
                "g added where it came from",
                lambda g, self_sym_sizes, scales, mode, align_corners: resized_back(
                    g,
                    size=self_sym_sizes[len(self_sym_sizes) - dims :],
                    scales=scales,
                    mode=mode,
                    align_corners=align_corners,
                ),
            ),
        ),
        public=False,
        examples=lambda: [
            Example((normal(1, 2, *(3, 2, 2)[:dims]),), a | {"output_size": (5, 3, 1)[:dims]}) for a in attrs
        ],
    )


LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}
OPS: dict[tuple[str, int], Op] = {
    **{("nearest", d): _op(f"upsample_nearest{d}d", f"UpsampleNearest{d}DBackward0", "nearest", d) for d in LINEAR},
    **{
        ("nearest-exact", d): _op(
            f"_upsample_nearest_exact{d}d", f"UpsampleNearestExact{d}DBackward0", "nearest-exact", d
        )
        for d in LINEAR
    },
    **{
        ("linear", d): _op(f"upsample_{name}{d}d", f"Upsample{name.title()}{d}DBackward0", "linear", d)
        for d, name in LINEAR.items()
    },
}
"""The operation of each mode, in each number of dimensions."""
