"""Attention in one operation: means of the values weighted by the similarity of queries and keys.

The logarithm of each row's sum (`logsumexp`) is a second output, from which the rules recompute the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from gviz.engine.op import Example, Op, Rule
from gviz.engine.ops._examples import normal
from gviz.engine.ops.elementary_functions import exp
from gviz.engine.ops.reductions import sum_dim
from gviz.engine.ops.shape import transpose, unsqueeze_dims
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array


def _hidden(scores: Array) -> Array:
    """Return a term added to scores so that no query attends to later keys."""
    kind = scores.dtype.type
    rows, columns = scores.shape[-2:]
    seen = np.arange(columns) <= np.arange(rows)[:, np.newaxis]
    hidden: Array = np.where(seen, kind(0), kind(-np.inf))
    return hidden


def _scores(query: Array, key: Array, attn_mask: Array | None, is_causal: bool, scale: float | None) -> Array:
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    scores: Array = np.matmul(query * query.dtype.type(factor), key.swapaxes(-1, -2))
    if attn_mask is not None:
        scores += attn_mask
    if is_causal:
        scores += _hidden(scores)
    return scores


def _attend(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> tuple[Array, Array]:
    scores = _scores(query, key, attn_mask, is_causal, scale)
    largest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    largest[largest == -np.inf] = 0  # a row that attends to nothing gives nothing
    scores -= largest
    np.exp(scores, out=scores)
    total = np.add.reduce(scores, axis=-1, keepdims=True)
    total[total == 0] = 1
    scores /= total
    # PyTorch gives the result the memory layout of the query.
    output = np.empty_like(query) if value.shape[-1] == query.shape[-1] else None
    return np.matmul(scores, value, out=output), (np.log(total) + largest)[..., 0]


def _product(first: Any, second: Any) -> Any:
    return np.matmul(first, second) if isinstance(first, np.ndarray) else first @ second


def _turned(matrix: Any) -> Any:
    return transpose(matrix, dim0=-2, dim1=-1) if isinstance(matrix, np.ndarray) else matrix.transpose(-2, -1)


def _shares(query: Any, key: Any, attn_mask: Any, logsumexp: Any, is_causal: bool, factor: float) -> Any:
    scores = _product(query * factor, _turned(key))
    if attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        array = scores._array if isinstance(scores, Tensor) else scores
        hidden = _hidden(array)
        scores = scores + (new_tensor(hidden) if isinstance(scores, Tensor) else hidden)
    return exp(scores - unsqueeze_dims(logsumexp, dims=(logsumexp.ndim,)))


def _through(
    grads: Sequence[Any],
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any,
    output: Any,
    logsumexp: Any,
    is_causal: bool,
    scale: float | None,
) -> tuple[Any, Any, Any]:
    g, of_sum = grads
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    shares = _shares(query, key, attn_mask, logsumexp, is_causal, factor)
    spent = sum_dim(g * output, dim=(g.ndim - 1,), keepdim=True) - unsqueeze_dims(of_sum, dims=(of_sum.ndim,))
    of_scores = shares * (_product(g, _turned(value)) - spent) * factor
    return _product(of_scores, key), _product(_turned(of_scores), query), _product(_turned(shares), g)


attention: Op = Op(
    "_scaled_dot_product_flash_attention_for_cpu(query, key, value, attn_mask?, *, dropout_p, is_causal, scale)",
    grad_fn="ScaledDotProductFlashAttentionForCpuBackward0",
    formula="softmax(query @ key.T * scale + attn_mask) @ value",
    forward=_attend,
    rules=(
        Rule(
            "query, key, value",
            "gradient of the scores @ key; gradient of the scores.T @ query; shares.T @ g",
            _through,
        ),
    ),
    outputs=("output", "logsumexp"),
    public=False,
    examples=lambda: [
        Example(
            (normal(1, 2, 3, 4), normal(1, 2, 2, 4), normal(1, 2, 2, 3), mask),
            {"dropout_p": 0.0, "is_causal": causal, "scale": scale},
        )
        for mask, causal, scale in ((None, False, None), (None, True, 0.7), (normal(3, 2), False, None))
    ],
)
