"""Whether what is computed again is what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gviz.engine.tensor import Tensor
from gviz.values import Array


def agrees(made: Any, recorded: Sequence[Array | None], *, exactly: bool) -> bool:
    """Whether what an expression gave is what was recorded; a function may keep some of it to itself."""
    tensors = made if isinstance(made, tuple | list) else [made]
    if len(tensors) > len(recorded) or not all(isinstance(tensor, Tensor) for tensor in tensors):
        return False
    pairs = [(tensor.detach().numpy(), array) for tensor, array in zip(tensors, recorded, strict=False)]
    return all(array is not None and _same(mine, array, exactly=exactly) for mine, array in pairs)


def _same(mine: Array, recorded: Array, *, exactly: bool) -> bool:
    """Whether two arrays are equal or, if it need not be `exactly`, agree in half of the digits of the largest."""
    if mine.shape != recorded.shape or mine.dtype != recorded.dtype:
        return False
    if exactly or mine.dtype.kind != "f":
        return np.array_equal(mine, recorded, equal_nan=mine.dtype.kind == "f")
    part = float(np.finfo(recorded.dtype).eps) ** 0.5
    largest = float(np.abs(recorded).max(initial=0.0, where=np.isfinite(recorded)))
    return bool(np.allclose(mine, recorded, rtol=part, atol=part * largest / 10, equal_nan=True))
