"""Attention of several heads, as a module."""

from __future__ import annotations

from typing import Any

from gviz.engine.dtypes import dtype as DType
from gviz.engine.nn import functional, init
from gviz.engine.nn.fresh import born, empty
from gviz.engine.nn.linear import Linear
from gviz.engine.nn.module import Module
from gviz.engine.nn.parameter import Parameter
from gviz.engine.tensor import Tensor


class NonDynamicallyQuantizableLinear(Linear):
    """A `Linear` under the name that PyTorch prints."""


class MultiheadAttention(Module):
    """For every query, values weighted by how well their keys fit it, in several heads."""

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
            made = empty(1, 1, embed_dim, device=device, dtype=dtype) if add_bias_kv else None
            setattr(self, name, made)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()
        born(self)

    def _shapes(self, bias: bool) -> dict[str, tuple[int, ...] | None]:
        """The shapes of the weights, None for those that are not there."""
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
        """The weighted values, and (if `need_weights`) the weights."""
        turned = self.batch_first and query.dim() == 3
        if turned:
            query, key, value = _turned(query, key, value)
        apart: dict[str, Any] = {}
        if not self._qkv_same_embed_dim:
            names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
            apart = {"use_separate_proj_weight": True, **{name: getattr(self, name) for name in names}}
        output, weights = functional.multi_head_attention_forward(
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
        return (output.transpose(1, 0) if turned else output), weights


def _turned(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sequences first; one turn for what is the same tensor, which is how self-attention is recognized."""
    if key is value:
        if query is key:
            query = key = value = query.transpose(1, 0)
        else:
            query, key = query.transpose(1, 0), key.transpose(1, 0)
            value = key
        return query, key, value
    return query.transpose(1, 0), key.transpose(1, 0), value.transpose(1, 0)
