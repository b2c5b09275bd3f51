"""Elements picked by tensors of positions and by masks, as numpy's advanced indexing picks them, and put back.

Each index tensor belongs to one dimension (a mask to as many as it has); a dimension without one is taken whole.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any

import numpy as np

from gviz.engine.apply import zeros
from gviz.engine.node import Node
from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops.adding import added, added_rows
from gviz.engine.ops.examples import normal
from gviz.values import Array

Shape = tuple[int, ...]
Indices = Sequence[Any]

PLACES = 8
"""How many dimensions of a tensor can be indexed by tensors."""
_SLOTS = ", ".join(f"index{place}?" for place in range(PLACES))


class IndexOp(Op):
    """An operation with an index tensor for each dimension that has one; a node shows them as ``_saved_indices``."""

    def shown(self) -> dict[str, property]:
        return super().shown() | {"indices": property(self._indices)}

    def _indices(self, node: Node) -> tuple[Any, ...]:
        tensors = node.saved_tensors()
        by_place = {int(slot[5:]): tensors[i] for i, slot in enumerate(self.saved_names) if slot.startswith("index")}
        return tuple([by_place.get(place) for place in range(max(by_place) + 1)])


def key_of(indices: Indices) -> tuple[Any, ...]:
    """What numpy takes for index arrays by dimension, None for one taken whole."""
    last = max(place for place, index in enumerate(indices) if index is not None)
    return tuple([slice(None) if index is None else index for index in indices[: last + 1]])


def _picked(self: Array, *indices: Any) -> Array:
    key = key_of(indices)
    if len(key) == 1 and key[0].dtype.kind != "b":
        taken: Array = self.take(key[0], 0)  # several times as fast as self[key]
        return taken
    picked: Array = self[key]
    return np.asarray(picked, order="C") if len(key) > 1 or self.flags.c_contiguous else picked


def _put_back(self: Array, *indices: Any, sizes: Shape) -> Array:
    key = key_of(indices)
    if len(key) == 1 and key[0].dtype.kind != "b":
        rows = self.reshape(key[0].size, *sizes[1:])
        return added_rows(sizes[0], key[0].reshape(-1) % max(sizes[0], 1), rows)
    if len(key) == 1:
        result = np.zeros(sizes, self.dtype)
        result[key] = self
        return result
    places = np.arange(int(np.prod(sizes))).reshape(sizes)[key]
    return added(int(np.prod(sizes)), places.reshape(-1), self.reshape(-1)).reshape(sizes)


def _put(self: Array, values: Array, *indices: Any, accumulate: bool) -> Array:
    key = key_of(indices)
    result = self.copy()
    if not accumulate:
        result[key] = values
        return result
    places = np.arange(result.size).reshape(result.shape)[key]
    wide = np.broadcast_to(values, places.shape)
    return result + added(result.size, places.reshape(-1), wide.reshape(-1)).reshape(result.shape)


def _with_indices(vjp: Callable[..., Any]) -> Callable[..., Any]:
    """A rule of ``g``, the indices as one tuple, and attributes, as one with a parameter for each index."""
    first, _, *attrs = inspect.signature(vjp).parameters.values()
    names = [Parameter(f"index{place}", Parameter.POSITIONAL_OR_KEYWORD) for place in range(PLACES)]

    def spread(g: Any, *arguments: Any, **attrs: Any) -> Any:
        return vjp(g, arguments[:PLACES], *arguments[PLACES:], **attrs)

    spread.__signature__ = inspect.Signature([first, *names, *attrs])  # type: ignore[attr-defined]
    return spread


def _added_back(g: Any, indices: Indices, self_sym_sizes: Shape) -> Any:
    return put_back(g, *indices, sizes=self_sym_sizes)


def _rest(g: Any, indices: Indices, accumulate: bool) -> Any:
    return g if accumulate else index_put_op(g, zeros(g, ()), *indices, accumulate=False)


def _at(*indices: Any) -> tuple[Any, ...]:
    """Index arrays of an example, with None for the dimensions that have none."""
    return (*indices, *(None,) * (PLACES - len(indices)))


_ROWS = np.array([[0, 1], [1, 1]])
_MASK = np.array([[True, False, True], [False, False, True]])

index_op = IndexOp(
    f"index(self, {_SLOTS})",
    grad_fn="IndexBackward0",
    formula="self at the indices",
    forward=_picked,
    rules=(Rule("self", "g added at the indices, 0 elsewhere", _with_indices(_added_back)),),
    public=False,
    examples=lambda: [
        Example((normal(2, 3), *_at(_ROWS)), {}),
        Example((normal(2, 3), *_at(_MASK)), {}),
        Example((normal(2, 3), *_at(None, np.array([2, -1, 2]))), {}),
        Example((normal(2, 2, 3), *_at(np.array([1, 0, 1]), None, np.array([2, 0, 2]))), {}),
    ],
)
put_back = IndexOp(
    f"index_backward(self, {_SLOTS}, *, sizes)",
    grad_fn="IndexBackwardBackward0",
    formula="0 with self added at the indices",
    forward=_put_back,
    rules=(Rule("self", "g at the indices", _with_indices(lambda g, indices: index_op(g, *indices))),),
    public=False,
    examples=lambda: [
        Example((normal(2, 2, 3), *_at(_ROWS)), {"sizes": (2, 3)}),
        Example((normal(3, 2), *_at(np.array([1, 0, 1]), None, np.array([2, 0, 2]))), {"sizes": (2, 2, 3)}),
    ],
)
index_put_op = IndexOp(
    f"index_put(self, values, {_SLOTS}, *, accumulate=False)",
    grad_fn="IndexPutBackward0",
    formula="self with values at the indices",
    forward=_put,
    rules=(
        Rule("self", "g, 0 at the indices unless accumulated", _with_indices(_rest)),
        Rule("values", "g at the indices", _with_indices(lambda g, indices: index_op(g, *indices))),
    ),
    public=False,
    overlap="indexed",
    examples=lambda: [
        Example((normal(2, 3), normal(2), *_at(np.array([0, 1]), np.array([1, 1]))), {"accumulate": False}),
        Example((normal(2, 3), normal(3), *_at(np.array([1, 1]))), {"accumulate": True}),
        Example((normal(2, 3), normal(), *_at(_MASK)), {"accumulate": False}),
    ],
)
