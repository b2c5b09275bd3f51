"""Transformers (Vaswani and others, 2017), as modules: their layers, stacks of these, and the whole model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from gviz.engine.creation import full
from gviz.engine.dtypes import dtype as DType
from gviz.engine.nn import functional as F
from gviz.engine.nn import init
from gviz.engine.nn.attention import MultiheadAttention, added_mask
from gviz.engine.nn.container import ModuleList
from gviz.engine.nn.dropout import Dropout
from gviz.engine.nn.linear import Linear
from gviz.engine.nn.module import Module
from gviz.engine.nn.normalization import LayerNorm
from gviz.engine.tensor import Tensor

Activation = Callable[[Tensor], Tensor]


class _Layer(Module):
    """Base class of layers: attention, and a feed-forward network.

    Each is added to its input, with normalization before or after it.
    """

    blocks: int
    activation: Activation

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        for name in ("self_attn", "multihead_attn")[: self.blocks - 1]:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options))
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        for number in range(1, self.blocks + 1):
            setattr(self, f"norm{number}", LayerNorm(d_model, eps=layer_norm_eps, **options))
        for number in range(1, self.blocks + 1):
            setattr(self, f"dropout{number}", Dropout(dropout))
        self.activation = _activation(activation) if isinstance(activation, str) else activation

    def _add(self, x: Tensor, number: int, block: Callable[[Tensor], Tensor]) -> Tensor:
        """`x` plus a block applied to it, with the dropout and norm of this number."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        result: Tensor = x + dropout(block(norm(x))) if self.norm_first else norm(x + dropout(block(x)))
        return result

    def _feed_forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return result


class TransformerEncoderLayer(_Layer):
    """Self-attention, and a feed-forward network of two linear layers."""

    blocks = 2
    self_attn: MultiheadAttention

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Runs the layer."""
        padding = added_mask("src_key_padding_mask", src_key_padding_mask, src, "src_mask", src_mask)
        mask = added_mask("src_mask", src_mask, src)

        def attend(x: Tensor) -> Tensor:
            masks = {"attn_mask": mask, "key_padding_mask": padding}
            attended: Tensor = self.self_attn(x, x, x, need_weights=False, is_causal=is_causal, **masks)[0]
            return attended

        return self._add(self._add(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the output of an encoder, and a feed-forward network of two linear layers."""

    blocks = 3
    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Runs the layer."""

        def attend(x: Tensor) -> Tensor:
            masks = {"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask}
            attended: Tensor = self.self_attn(x, x, x, is_causal=tgt_is_causal, need_weights=False, **masks)[0]
            return attended

        def look(x: Tensor) -> Tensor:
            masks = {"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask}
            options = {"is_causal": memory_is_causal, "need_weights": False, **masks}
            seen: Tensor = self.multihead_attn(x, memory, memory, **options)[0]
            return seen

        return self._add(self._add(self._add(tgt, 1, attend), 2, look), 3, self._feed_forward)


class _Stack(Module):
    """Copies of a layer that run one after the other."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _run(self, x: Tensor, *args: Any, **masks: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *args, **masks)
        return x if self.norm is None else self.norm(x)

    def _steps(self, x: Tensor) -> int:
        """Return the number of steps of an input: (batch, time, features) if the layers are made so."""
        attention = getattr(self.layers[0], "self_attn", None) if len(self.layers) else None
        return int(x.shape[1 if x.dim() == 3 and getattr(attention, "batch_first", False) else 0])


class TransformerEncoder(_Stack):
    """Encoder layers that run one after the other."""

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Runs all layers."""
        causal = _is_causal(mask, is_causal, self._steps(src))
        return self._run(src, src_mask=mask, is_causal=causal, src_key_padding_mask=src_key_padding_mask)


class TransformerDecoder(_Stack):
    """Decoder layers that run one after the other."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Runs all layers."""
        return self._run(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=_is_causal(tgt_mask, tgt_is_causal, self._steps(tgt)),
            memory_is_causal=memory_is_causal,
        )


def generate_square_subsequent_mask(size: int, dtype: DType | None = None) -> Tensor:
    """A mask that lets every position attend to itself and to earlier ones."""
    ones: Tensor = full((size, size), float("-inf"), dtype=dtype)
    return ones.triu(diagonal=1)


def _is_causal(mask: Tensor | None, option: bool | None, steps: int) -> bool:
    """Return whether a mask is causal for this number of steps: `option` if set, otherwise by comparison."""
    if option is not None or mask is None:
        return option is True
    causal = generate_square_subsequent_mask(steps, mask.dtype)
    return mask.shape == causal.shape and bool((mask == causal).all())


def _activation(name: str) -> Activation:
    known: dict[str, Activation] = {"relu": F.relu, "gelu": F.gelu}
    if name not in known:
        raise RuntimeError(f"activation should be relu/gelu, not {name}")
    return known[name]


class Transformer(Module):
    """An encoder, and a decoder that attends to its output."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, **options)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*sizes, **options), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*sizes, **options), num_decoder_layers, norm()
        )
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    generate_square_subsequent_mask = staticmethod(generate_square_subsequent_mask)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encodes `src`, and decodes `tgt` with attention to the result."""
        self._check(src, tgt)
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        result: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return result

    def _check(self, src: Tensor, tgt: Tensor) -> None:
        place = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[place] != tgt.shape[place]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
