"""Tensors as pictures: a small one as a grid of numbers, a larger one as a heat map or a histogram."""

from __future__ import annotations

import numpy as np

from gviz.values.number_text import number
from gviz.values.value import Array, Value
from gviz.values.value_text import FEW, NO_VALUE

Shades = tuple[tuple[int, ...], ...]
Numbers = tuple[tuple[str, ...], ...]

GRID_ROWS, GRID_COLUMNS = 6, 8
"""The largest matrix that readers read number by number."""
CELL = 7
"""Characters of one number in a grid."""
DIGITS = 3
"""Significant digits of the elements of a tensor in a box, the same in each of its rows."""
SHADE_ROWS, SHADE_COLUMNS = 8, 16
DARKEST = 4
"""Shades go from ``-DARKEST`` (the most negative) through 0 to ``DARKEST``."""
NOT_A_NUMBER = 9
"""The shade of nan and infinity."""
NO_SHADES: Shades = ((0,),)
"""An empty thumbnail, which reserves the room of one without known elements."""
THUMBNAIL_LINES = 4
"""Rows of text that a thumbnail takes."""
_BLOCKS = " ▁▂▃▄▅▆▇█"


def grid_shape(shape: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the rows and columns of the grid for a vector or matrix of this shape; None if one line is clearer."""
    rows, columns = shape if len(shape) == 2 else (1, *shape) if len(shape) == 1 else (0, 0)
    fits = 0 < rows <= GRID_ROWS and 0 < columns <= GRID_COLUMNS
    return (rows, columns) if fits and (rows > 1 or columns > FEW) else None


def grid(value: Value | None, shape: tuple[int, int]) -> Numbers:
    """Return the elements as text, row by row; dots where they are not known."""
    array = value.array() if value is not None else None
    rows, columns = shape
    if array is None or array.size != rows * columns:
        return ((NO_VALUE,) * columns,) * rows
    return tuple(tuple(map(_cell, row)) for row in array.reshape(shape))


def _cell(x: object) -> str:
    return next((text for digits in range(DIGITS, 0, -1) if len(text := number(x, digits)) <= CELL), "…")


def heat(array: Array) -> Shades:
    """Return a heat map of an array. Each shade is the mean of a block; the largest magnitude is the darkest."""
    blocks = _blocks(_flat(array))
    finite = np.abs(blocks[np.isfinite(blocks)])
    largest = float(finite.max()) if finite.size else 0.0
    with np.errstate(invalid="ignore"):
        levels = np.rint(blocks / (largest or 1.0) * DARKEST)
    return tuple(tuple(int(x) if np.isfinite(x) else NOT_A_NUMBER for x in row) for row in levels)


def histogram(array: Array) -> tuple[Shades, str]:
    """Return the distribution of the finite elements, as vertical bars and as one line of text."""
    flat = _real(array).reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = flat[np.isfinite(flat)] / (np.abs(flat[np.isfinite(flat)]).max(initial=0.0) or 1.0)
    counts, _ = np.histogram(scaled, bins=SHADE_COLUMNS)
    heights = np.ceil(counts / max(int(counts.max()), 1) * SHADE_ROWS).astype(int)
    levels = np.where(heights >= np.arange(SHADE_ROWS, 0, -1)[:, None], DARKEST, 0)
    text = "".join(_BLOCKS[height * (len(_BLOCKS) - 1) // SHADE_ROWS] for height in heights)
    return tuple(tuple(map(int, row)) for row in levels), text


def _real(array: Array) -> Array:
    return np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64)


def _flat(array: Array) -> Array:
    """Return any array as a matrix: the last dimension is kept, the others are merged into rows."""
    real = _real(array)
    return real.reshape(-1, real.shape[-1] if real.ndim > 1 else max(real.size, 1))


def _blocks(matrix: Array) -> Array:
    """Return the means of at most `SHADE_ROWS` by `SHADE_COLUMNS` blocks of a matrix."""
    for axis, most in enumerate((SHADE_ROWS, SHADE_COLUMNS)):
        length = matrix.shape[axis]
        if length > most:
            starts = np.arange(most) * length // most
            sizes = np.diff([*starts, length])
            with np.errstate(invalid="ignore", over="ignore"):
                matrix = np.add.reduceat(matrix, starts, axis) / (sizes[:, None] if axis == 0 else sizes)
    return matrix
