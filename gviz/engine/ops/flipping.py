"""Elements in reverse order, shifted around, and planes turned: copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.engine.arguments import whole_numbers
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.examples import normal
from gviz.engine.ops.kernels import laid_out_as
from gviz.engine.ops.shape import normal_dims, run
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.values import Array

Dims = tuple[int, ...]

flip_op: Op = Op(
    "flip(self, *, dims)",
    grad_fn="FlipBackward0",
    formula="self in reverse order along dims",
    forward=lambda self, dims: laid_out_as(self, np.flip(self, dims)),
    rules=(Rule("self", "g reversed", lambda g, dims: flip_op(g, dims=dims)),),
    public=False,
    torch="flip",
    examples=lambda: [Example((normal(2, 3),), {"dims": (0, 1)}), Example((normal(0, 3),), {"dims": (1,)})],
)
roll_op: Op = Op(
    "roll(self, *, shifts, dims)",
    grad_fn="RollBackward0",
    formula="self shifted around along dims",
    forward=lambda self, shifts, dims: _rolled(self, shifts, dims),
    rules=(
        Rule(
            "self",
            "g shifted back",
            lambda g, shifts, dims: roll_op(g, shifts=tuple([-n for n in shifts]), dims=dims),
        ),
    ),
    public=False,
    torch="roll",
    examples=lambda: [
        Example((normal(2, 3),), {"shifts": (1, 2), "dims": (0, 1)}),
        Example((normal(2, 3),), {"shifts": (2,), "dims": ()}),
    ],
)
rot90_op: Op = Op(
    "rot90(self, *, k, dims)",
    grad_fn="Rot90Backward0",
    formula="self turned k times from the first of dims to the second",
    forward=lambda self, k, dims: _turned(self, k, dims),
    rules=(Rule("self", "g turned back", lambda g, k, dims: rot90_op(g, k=-k, dims=dims)),),
    public=False,
    torch="rot90",
    examples=lambda: [Example((normal(2, 3),), {"k": 1, "dims": (0, 1)})],
)


def _turned(self: Array, k: int, dims: Dims) -> Array:
    """A flipped copy whose dimensions are then exchanged, if it is turned by 90 or 270 degrees."""
    one, other = dims
    if k % 2 == 0:
        return laid_out_as(self, np.rot90(self, k, (one, other)))
    flipped = laid_out_as(self, np.flip(self, other if k % 4 == 1 else one))
    return np.swapaxes(flipped, one, other)


def _rolled(self: Array, shifts: Dims, dims: Dims) -> Array:
    rolled: Array = np.roll(self, shifts, dims) if dims else np.roll(self, shifts[0])
    return np.asarray(rolled, order="C")


@front("flip")
def flip(self: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """A copy in reverse order along `dims`."""
    if order and dims is not None:
        raise TypeError("flip() got multiple values for argument 'dims'")
    if not order and dims is None:
        raise TypeError('flip() missing 1 required positional arguments: "dims"')
    given = whole_numbers("flip", "dims", order if dims is None else dims, 1)
    wanted = normal_dims(given, self.ndim)
    for d in wanted:
        if wanted.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return run(flip_op, self, dims=wanted if self.ndim else ())


@front("fliplr")
def fliplr(self: Tensor) -> Tensor:
    """A copy with the columns in reverse order."""
    if self.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(self, 1)


@front("flipud")
def flipud(self: Tensor) -> Tensor:
    """A copy with the rows in reverse order."""
    if not self.ndim:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(self, 0)


@front("roll")
def roll(self: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """A copy shifted along `dims`, what leaves at one end entering at the other; without `dims`, as if it were flat."""
    steps = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    along = () if dims is None else (dims,) if isinstance(dims, int) else tuple(dims)
    if not steps:
        raise RuntimeError("`shifts` required")
    if len(steps) != len(along) and (along or len(steps) > 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(along)}")
    if along and not self.ndim:
        raise IndexError(f"Dimension specified as {along[0]} but tensor has no dimensions")
    return run(roll_op, self, shifts=steps, dims=normal_dims(along, self.ndim))


@front("rot90")
def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy turned by 90 degrees, `k` times, in the plane of two `dims`."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == self.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return run(rot90_op, self, k=k, dims=normal_dims(dims, self.ndim))
