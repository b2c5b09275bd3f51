"""All pairings of the elements of several vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations as index_combinations
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from gviz.engine import messages
from gviz.engine.ops.flattening import flatten
from gviz.engine.ops.joining import stack
from gviz.engine.ops.masking import select_where
from gviz.engine.ops.shape import expand, run, view
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor, new_tensor
from gviz.engine.wanting import all_tensors, several


@front("meshgrid", method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid: each vector along a dimension of its own, repeated along the others.

    With `indexing` "xy" the first two vectors belong to columns and rows, not to rows and columns.
    """
    vectors = several(tensors)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for vector in vectors:
        if vector.ndim > 1:
            raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: " + _shown(vector))
    if indexing is None:
        messages.warn_once(messages.MESHGRID)
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    swapped = indexing == "xy" and len(vectors) > 1
    ordered = [vectors[1], vectors[0], *vectors[2:]] if swapped else vectors
    grids = _grids(ordered)
    return (grids[1], grids[0], *grids[2:]) if swapped else tuple(grids)


def _shown(tensor: Tensor) -> str:
    rows = "\n".join("".join(f"{value:8.4f}" for value in row)[1:] for row in np.atleast_2d(tensor._array))
    sizes = ",".join(map(str, tensor.shape))
    return f"{rows}\n[ torch.{tensor.dtype.tensor_type}Tensor{{{sizes}}} ]"


def _grids(vectors: Sequence[Tensor]) -> list[Tensor]:
    if any(vector.dtype is not vectors[0].dtype for vector in vectors):
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    size = tuple([vector.numel() for vector in vectors])
    lines = [
        view(vector, *[n if d == place else 1 for d, n in enumerate(size)]) for place, vector in enumerate(vectors)
    ]
    return [run(expand, line, size=size) for line in lines]


def _check_vector(tensor: Tensor) -> None:
    if tensor.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")


@front("cartesian_prod", method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All tuples of one element from each vector, one a row."""
    all_tensors(tensors)
    for tensor in tensors:
        _check_vector(tensor)
    if len(tensors) == 1:
        return tensors[0]
    return stack([flatten(grid) for grid in _grids(tensors)], 1)


@front("combinations")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to take `r` elements of a vector in their order, one a row."""
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return new_tensor(np.zeros(0, input._array.dtype))
    taken = combinations_with_replacement if with_replacement else index_combinations
    chosen = np.zeros((input.numel(),) * r, bool)
    places = list(taken(range(input.numel()), r))
    chosen[tuple(np.array(places, int).reshape(-1, r).T)] = True
    mask = new_tensor(chosen)
    return stack([run(select_where, grid, mask) for grid in _grids([input] * r)], 1)
