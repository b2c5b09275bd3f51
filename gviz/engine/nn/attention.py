"""Scaled dot-product attention and multi-head attention (Vaswani and others, 2017), as functions and as a module.

It computes ``softmax(query @ key.T / sqrt(width) + mask) @ value``. Where PyTorch has one fused operation on the CPU,
so does the engine (`_is_fused`). Otherwise the steps are separate operations, in PyTorch's order, and a recording shows
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import sqrt
from typing import Any

import numpy as np

from gviz.engine import creation
from gviz.engine.dtypes import dtype as DType
from gviz.engine.functions_and_methods import front
from gviz.engine.nn import functional as F
from gviz.engine.nn import init
from gviz.engine.nn.activation import softmax
from gviz.engine.nn.dropout import dropout
from gviz.engine.nn.linear import Linear
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter, born, empty
from gviz.engine.ops.activations import safe_softmax
from gviz.engine.ops.arithmetic import times_number
from gviz.engine.ops.attention import attention
from gviz.engine.ops.images import pad
from gviz.engine.ops.joining import cat
from gviz.engine.ops.matrix_products import linear, matmul
from gviz.engine.ops.shape import run
from gviz.engine.tensor import Tensor, new_tensor
from gviz.source.call_stack import warn


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` with the class name that PyTorch prints."""


class MultiheadAttention(Module):
    """For every query, the mean of the values weighted by the similarity of query and key, in several heads."""

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        for name, shape in self._shapes(bias).items():
            self.register_parameter(name, None if shape is None else empty(*shape, device=device, dtype=dtype))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            bias_weight = empty(1, 1, embed_dim, device=device, dtype=dtype) if add_bias_kv else None
            setattr(self, name, bias_weight)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()
        born(self)

    def _shapes(self, bias: bool) -> dict[str, tuple[int, ...] | None]:
        """Return the shapes of the weights; None for an absent weight."""
        size = self.embed_dim
        together: dict[str, tuple[int, ...] | None] = {"in_proj_weight": (3 * size, size)}
        apart: dict[str, tuple[int, ...] | None] = {
            "q_proj_weight": (size, size),
            "k_proj_weight": (size, self.kdim),
            "v_proj_weight": (size, self.vdim),
        }
        there, absent = (together, apart) if self._qkv_same_embed_dim else (apart, together)
        return there | dict.fromkeys(absent) | {"in_proj_bias": (3 * size,) if bias else None}

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = getattr(self, name)
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the weighted values, and the weights if `need_weights` (else None)."""
        key_padding_mask = added_mask("key_padding_mask", key_padding_mask, query, "attn_mask", attn_mask)
        attn_mask = added_mask("attn_mask", attn_mask, query)
        batch_first = self.batch_first and query.dim() == 3
        if batch_first:
            query, key, value = _sequence_first(query, key, value)
        apart: dict[str, Any] = {}
        if not self._qkv_same_embed_dim:
            names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
            apart = {"use_separate_proj_weight": True, **{name: getattr(self, name) for name in names}}
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **apart,
        )
        return (output.transpose(1, 0) if batch_first else output), weights


def _sequence_first(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Put the sequence dimension first.

    Identical tensors stay identical, because self-attention is recognized by that.
    """
    if key is value:
        if query is key:
            query = key = value = query.transpose(1, 0)
        else:
            query, key = query.transpose(1, 0), key.transpose(1, 0)
            value = key
        return query, key, value
    return query.transpose(1, 0), key.transpose(1, 0), value.transpose(1, 0)


@F._declare
@front("scaled_dot_product_attention", method=False)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """For each query, the mean of `value` weighted by the similarity of query and key."""
    _check(query, key, value, attn_mask)
    mask = _added(attn_mask, query)
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(groups, -3) for t in (key, value))
    if _is_fused(query, key, value, mask, dropout_p):
        attrs = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
        result: Tensor = attention(query, key, value, mask, **attrs)[0]
        return result
    return _written_out(query, key, value, mask, dropout_p, is_causal, scale)


def _check(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None) -> None:
    named = {"query": query, "key": key, "value": value}
    if any(t.dtype is not query.dtype for t in named.values()):
        dtypes = " ".join(f"{name}.dtype: {t.dtype.cpp_name}" for name, t in named.items())
        dtypes = dtypes.replace(" value.", " and value.")
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got {dtypes} instead.")
    if any(t.ndim < 2 for t in named.values()):
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if attn_mask is not None and attn_mask.dtype.name not in ("bool", "float32", query.dtype.name):
        kinds = [t.dtype.cpp_name for t in (attn_mask, query)]
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {kinds[0]} and  query.dtype: {kinds[1]} instead."
        )


def _added(attn_mask: Tensor | None, query: Tensor) -> Tensor | None:
    """Return a mask as a term to add to the scores: 0 where a query may attend, -inf elsewhere."""
    if attn_mask is None or attn_mask.dtype.name != "bool":
        return attn_mask
    kind = query._array.dtype.type
    attn_mask._read("array")
    return new_tensor(np.where(attn_mask._array, kind(0), kind(-np.inf)))


def _is_fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float) -> bool:
    """Return whether PyTorch computes it in one operation on the CPU."""
    if dropout_p or (mask is not None and (mask.requires_grad or mask.ndim not in (2, 4))):
        return False
    shapes = [t.shape for t in (query, key, value)]
    alike = all(
        t.ndim == 4 and t.shape[:2] == shapes[0][:2] and t.shape[3] == shapes[0][3] for t in (query, key, value)
    )
    return alike and shapes[1][2] == shapes[2][2] and all(t.numel() for t in (query, key, value))


def _written_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    factor = sqrt(1 / sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        seen = np.tri(query.shape[-2], key.shape[-2], dtype=bool)
        hidden = _added(new_tensor(seen), query)
        mask = hidden if mask is None or hidden is None else mask + hidden
    scaled = run(times_number, query, other=factor)
    scores = matmul(scaled, run(times_number, key.transpose(-2, -1), other=factor))
    if mask is not None:
        scores.add_(mask)
    shares = run(safe_softmax, scores, dim=scores.ndim - 1)
    return matmul(dropout(shares, dropout_p) if dropout_p else shares, value)


NO_MASK = (
    "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
    "`generate_square_subsequent_mask` to create this mask."
)


@F._declare
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention: each head uses its own projection; the results are joined and projected again."""
    is_batched = query.ndim == 3
    if not is_batched:
        query, key, value = (t.unsqueeze(1) for t in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    _check_sizes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if is_causal and attn_mask is None:
        raise RuntimeError(NO_MASK)
    hinted = is_causal and key_padding_mask is None and not need_weights
    key_padding_mask = added_mask("key_padding_mask", key_padding_mask, query, "attn_mask", attn_mask)
    mask = None if hinted else added_mask("attn_mask", attn_mask, query)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    projected = _projected(query, key, value, weights, in_proj_bias)
    q, k, v = _heads(projected, num_heads, (bias_k, bias_v), (static_k, static_v), with_zero=add_zero_attn)
    mask = _merged(mask, key_padding_mask, query, num_heads, k.shape[1], (bias_k is not None) + add_zero_attn)
    attend: Callable[..., tuple[Tensor, Tensor | None]] = _with_weights if need_weights else _without_weights
    result, shares = attend(q, k, v, mask, dropout_p if training else 0.0, query.shape, num_heads, hinted)
    length, batch, _ = query.shape
    output = linear(result, out_proj_weight, out_proj_bias)
    output = output.view(length, batch, output.shape[1])
    if shares is not None and average_attn_weights:
        shares = shares.mean(dim=1)
    if is_batched:
        return output, shares
    return output.squeeze(1), None if shares is None else shares.squeeze(0)


def _heads(
    projected: Iterable[Tensor],
    heads: int,
    biases: tuple[Tensor | None, Tensor | None],
    static: tuple[Tensor | None, Tensor | None],
    *,
    with_zero: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value of every head; a bias and a zero may be appended to keys and values."""
    q, k, v = projected
    bias_k, bias_v = biases
    if bias_k is not None and bias_v is not None:
        k, v = (cat([t, bias.repeat(1, t.shape[1], 1)]) for t, bias in ((k, bias_k), (v, bias_v)))
    q = _in_heads(q, heads)
    k, v = (_in_heads(t, heads) if states is None else states for t, states in zip((k, v), static, strict=True))
    if with_zero:
        zero = creation.zeros((k.shape[0], 1, k.shape[2]), dtype=q.dtype)
        k, v = (cat([t, zero], dim=1) for t in (k, v))
    return q, k, v


def _check_sizes(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_heads: int, separate: bool) -> None:
    width = query.shape[2]
    assert width == embed_dim, f"was expecting embedding dimension of {embed_dim}, but got {width}"
    assert width % num_heads == 0, f"embed_dim {width} not divisible by num_heads {num_heads}"
    if separate:
        assert key.shape[:2] == value.shape[:2], (
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    else:
        assert key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}"


def _projected(query: Tensor, key: Tensor, value: Tensor, weights: Any, bias: Tensor | None) -> tuple[Tensor, ...]:
    """Queries, keys and values. A weight for all three is applied in as few products as the inputs allow."""
    width = query.shape[-1]
    if isinstance(weights, tuple):
        biases = (None, None, None) if bias is None else bias.chunk(3)
        return tuple([linear(t, w, b) for t, w, b in zip((query, key, value), weights, biases, strict=True)])
    if key is value and query is key:
        joint = linear(query, weights, bias).unflatten(-1, (3, width)).unsqueeze(0).transpose(0, -2)
        return _each(joint.squeeze(-2).contiguous())
    if key is value:
        own, others = weights.split([width, width * 2])
        own_bias, other_bias = (None, None) if bias is None else bias.split([width, width * 2])
        pair = linear(key, others, other_bias).unflatten(-1, (2, width)).unsqueeze(0).transpose(0, -2)
        return (linear(query, own, own_bias), *_each(pair.squeeze(-2).contiguous()))
    biases = (None, None, None) if bias is None else bias.chunk(3)
    three = zip((query, key, value), weights.chunk(3), biases, strict=True)
    return tuple([linear(t, w, b) for t, w, b in three])


def _each(joint: Tensor) -> tuple[Tensor, ...]:
    return tuple([joint[number] for number in range(joint.shape[0])])


def _in_heads(tensor: Tensor, num_heads: int) -> Tensor:
    length, batch, width = tensor.shape
    return tensor.view(length, batch * num_heads, width // num_heads).transpose(0, 1)


def added_mask(
    name: str, mask: Tensor | None, like: Tensor, other_name: str = "", other: Tensor | None = None
) -> Tensor | None:
    """A layer's mask as a term to add to the scores: -inf where a bool mask is True.

    Raises AssertionError for integers, and warns if the `other` mask has another dtype.
    """
    for one_mask in (mask, other):
        if one_mask is not None and not isinstance(one_mask, Tensor):
            raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")
    if mask is None:
        return None
    if mask.dtype.name != "bool" and not mask.dtype.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other.dtype is not mask.dtype:
        warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.")
    if mask.dtype.is_floating_point:
        return mask
    kind = like._array.dtype.type
    mask._read("array")
    return new_tensor(np.where(mask._array, kind(-np.inf), kind(0)))


def _merged(
    mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor, num_heads: int, columns: int, added: int
) -> Tensor | None:
    """Merge both masks to the shape ``(batch * heads or 1, queries, keys)``; `added` keys of the layer are shown."""
    length, batch, _ = query.shape
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.ndim == 2 else mask
        rows, keys = (1, batch * num_heads), (length, columns - added)
        if mask.ndim != 3 or mask.shape[0] not in rows or tuple(mask.shape[1:]) != keys:
            what, expected = ("2D", keys) if mask.shape[0] == 1 else ("3D", (batch * num_heads, *keys))
            shape = tuple(mask.shape[1:] if what == "2D" else mask.shape)
            raise RuntimeError(
                f"The shape of the {what} attn_mask is torch.Size({list(shape)}), but should be {expected}."
            )
        mask = pad(mask, (0, added)) if added else mask
    if key_padding_mask is None:
        return mask
    if key_padding_mask.shape[0] != batch:
        raise AssertionError(f"Expected key_padded_mask.shape[0] to be {batch}, but got {key_padding_mask.shape[0]}")
    hidden = pad(key_padding_mask, (0, added)) if added else key_padding_mask
    by_head = hidden.view(batch, 1, 1, columns).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, columns)
    return by_head if mask is None else mask + by_head


def _with_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, shape: Any, heads: int, is_causal: bool
) -> tuple[Tensor, Tensor]:
    length, batch, width = shape
    scaled, turned = q * sqrt(1.0 / q.shape[-1]), k.transpose(-2, -1)
    scores = scaled.bmm(turned) if mask is None else mask.baddbmm(scaled, turned)
    shares = softmax(scores, dim=-1)
    shares = dropout(shares, dropout_p) if dropout_p else shares
    result = shares.bmm(v).transpose(0, 1).reshape(length * batch, width)
    return result, shares.view(batch, heads, length, k.shape[1])


def _without_weights(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, shape: Any, heads: int, is_causal: bool
) -> tuple[Tensor, None]:
    length, batch, width = shape
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.view(batch, heads, -1, k.shape[1])
    query, key, value = (t.view(batch, heads, -1, width // heads) for t in (q, k, v))
    result = scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal)
    return result.permute(2, 0, 1, 3).reshape(batch * length, width), None
