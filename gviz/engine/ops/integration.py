"""Areas under sampled curves."""

from __future__ import annotations

from gviz.engine.dtypes import bool_
from gviz.engine.ops import scalars
from gviz.engine.ops.dims import one_dim
from gviz.engine.ops.selecting import sliced
from gviz.engine.ops.shape import run
from gviz.engine.surface import Number, front
from gviz.engine.tensor import Tensor, count_writes


def _neighbours(y: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """All but the last along `axis`, and all but the first."""
    size = y.shape[axis]
    return sliced(y, axis, 0, max(size - 1, 0)), sliced(y, axis, min(1, size), size)


@front("trapezoid", "trapz", method=False)
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1) -> Tensor:
    """The area under `y`, sampled at `x` or at distances `dx`, by straight lines between the samples."""
    axis = _axis(y, dim)
    if y.dtype is bool_:
        raise RuntimeError("trapezoid: received a bool input for `y`, but bool is not supported")
    if not y.shape[axis]:
        return count_writes(y.detach().sum(axis), 1)
    if x is None:
        whole = y.sum(axis) - run(scalars.times, y.select(axis, 0) + y.select(axis, -1), other=0.5)
        return run(scalars.times, whole, other=float(1 if dx is None else dx))
    left, right = _neighbours(y, axis)
    return run(scalars.over, ((left + right) * _steps(x, y, axis)).sum(axis), other=2.0)


@front("cumulative_trapezoid", method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: int = -1) -> Tensor:
    """The area under `y` up to each of its samples but the first."""
    axis = _axis(y, dim)
    left, right = _neighbours(y, axis)
    if x is None:
        return run(scalars.times, left + right, other=float(1 if dx is None else dx) / 2).cumsum(axis)
    return run(scalars.over, ((left + right) * _steps(x, y, axis)).cumsum(axis), other=2.0)


def _steps(x: Tensor, y: Tensor, axis: int) -> Tensor:
    if x.ndim == 1 and y.ndim > 1:
        if x.shape[0] != y.shape[axis]:
            raise RuntimeError("trapezoid: There must be one `x` value for each sample point")
        x = x.reshape([-1 if d == axis else 1 for d in range(y.ndim)])
    before, after = _neighbours(x, axis if x.ndim == y.ndim else one_dim(-1, x.ndim))
    return after - before


def _axis(y: Tensor, dim: int) -> int:
    if not y.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return one_dim(dim, y.ndim)
