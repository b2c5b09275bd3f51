"""Lookup of a table's rows by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops._examples import normal
from gviz.values.value import Array

Shape = tuple[int, ...]


def _rows(weight: Array, indices: Array) -> Array:
    if indices.size and (indices.min() < 0 or indices.max() >= len(weight)):
        raise IndexError("index out of range in self")
    return weight[indices]


def _scattered(self: Array, indices: Array, sizes: Shape, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    flat, rows = indices.reshape(-1), self.reshape(-1, sizes[1])
    if padding_idx >= 0:
        counts = flat != padding_idx
        flat, rows = flat[counts], rows[counts]
    if scale_grad_by_freq:
        rows = rows / np.bincount(flat, minlength=sizes[0])[flat][:, np.newaxis].astype(self.dtype)
    result = np.zeros(sizes, self.dtype)
    np.add.at(result, flat, rows)
    return result


def _gathered(g: Any, indices: Array, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    rows: Array = g[indices]
    if padding_idx >= 0:
        rows[indices == padding_idx] = 0
    if scale_grad_by_freq:
        rows /= np.bincount(indices.reshape(-1), minlength=len(g))[indices][..., np.newaxis]
    return rows


embedding: Op = Op(
    "embedding(weight, indices, *, padding_idx=-1, scale_grad_by_freq=False, sparse=False)",
    grad_fn="EmbeddingBackward0",
    formula="the rows indices of weight",
    forward=lambda weight, indices, padding_idx, scale_grad_by_freq, sparse: _rows(weight, indices),
    rules=(
        Rule(
            "weight",
            "g added at the rows indices, 0 elsewhere",
            lambda g, indices, weight_sym_sizes, padding_idx, scale_grad_by_freq: rows_added(
                g, indices, sizes=weight_sym_sizes, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq
            ),
        ),
    ),
    public=False,
    examples=lambda: [
        Example(
            (normal(4, 3), np.array([[1, 2], [2, 0]])),
            {"padding_idx": -1, "scale_grad_by_freq": False, "sparse": False},
        )
    ],
)
rows_added: Op = Op(
    "embedding_dense_backward(self, indices, *, sizes, padding_idx, scale_grad_by_freq)",
    grad_fn="EmbeddingDenseBackwardBackward0",
    formula="self added at the rows indices of zeros",
    forward=_scattered,
    rules=(
        Rule(
            "self",
            "g at the rows indices",
            lambda g, indices, padding_idx, scale_grad_by_freq: rows_of(
                g, indices, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq
            ),
        ),
    ),
    public=False,
    examples=lambda: [
        Example((normal(3, 2), np.array([1, 2, 2])), {"sizes": (4, 2), "padding_idx": p, "scale_grad_by_freq": s})
        for p, s in ((-1, False), (1, False), (-1, True))
    ],
)
rows_of: Op = Op(
    "embedding_rows(self, indices, *, padding_idx, scale_grad_by_freq)",
    grad_fn="EmbeddingRowsBackward0",
    formula="the rows indices of self, 0 at padding_idx",
    forward=_gathered,
    rules=(
        Rule(
            "self",
            "g added at the rows indices",
            lambda g, indices, self_sym_sizes, padding_idx, scale_grad_by_freq: rows_added(
                g, indices, sizes=self_sym_sizes, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq
            ),
        ),
    ),
    public=False,
    examples=lambda: [
        Example((normal(4, 2), np.array([1, 2, 2])), {"padding_idx": p, "scale_grad_by_freq": s})
        for p, s in ((-1, False), (1, False), (-1, True))
    ],
)


def _one_hot(self: Array, num_classes: int) -> Array:
    result = np.zeros((*self.shape, num_classes), np.int64)
    np.put_along_axis(result, self[..., np.newaxis], 1, -1)
    return result


one_hot: Op = Op(
    "one_hot(self, *, num_classes)", grad_fn="", formula="1 at self, 0 elsewhere", forward=_one_hot, public=False
)
renormed: Op = Op(
    "embedding_renorm(self, indices, *, max_norm, norm_type)",
    grad_fn="",
    formula="self, rows longer than max_norm made shorter",
    forward=lambda self, indices, max_norm, norm_type: _renormed(self, indices, max_norm, norm_type),
    public=False,
)


def _renormed(self: Array, indices: Array, max_norm: float, norm_type: float) -> Array:
    result, rows = self.copy(), np.unique(indices)
    norms = np.linalg.norm(self[rows], norm_type, axis=1)
    long = norms > max_norm
    result[rows[long]] *= (max_norm / (norms[long] + 1e-7))[:, np.newaxis].astype(self.dtype)
    return result
