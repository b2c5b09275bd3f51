"""The names of operations in PyTorch's documentation.

A recording has the names of PyTorch's dispatcher, and its private ones: ``native_layer_norm``, ``_unsafe_view``,
``convolution``. People write and read ``layer_norm``, ``view`` and ``conv2d``.
"""

from __future__ import annotations

import re

DOCUMENTED = {
    "native_batch_norm": "batch_norm", "cudnn_batch_norm": "batch_norm", "miopen_batch_norm": "batch_norm",
    "native_layer_norm": "layer_norm", "native_group_norm": "group_norm", "fused_rms_norm": "rms_norm",
    "native_dropout": "dropout", "addmm": "linear", "mm": "matmul", "bmm": "matmul", "mv": "matmul", "dot": "matmul",
    "baddbmm": "baddbmm", "getitem": "index", "native_norm": "norm", "linalg_vector_norm": "vector_norm",
    "nll_loss2d": "nll_loss", "slow_conv_dilated2d": "conv2d", "constant_pad_nd": "pad", "safe_softmax": "softmax",
    "unsafe_split": "split", "unsafe_chunk": "chunk", "reshape_alias": "reshape", "to_copy": "to",
    "mkldnn_rnn_layer": "lstm", "cudnn_rnn": "rnn", "transformer_encoder_layer_fwd": "TransformerEncoderLayer",
}  # fmt: skip
"""The function of PyTorch's documentation for operations that have another name."""

_WITH_INDICES = re.compile(r"_with_indices$")
_UPSAMPLING = re.compile(r"_?upsample_\w+$")
_FUSED_ATTENTION = re.compile(r"_?scaled_dot_product_\w*attention\w*$")
_CONVOLUTIONS = {"convolution", "mkldnn_convolution", "cudnn_convolution", "thnn_conv2d"}


def documented_name(name: str, dimensions: int = 0, *, transposed: bool = False) -> str:
    """Return the function in PyTorch's documentation for an operation.

    For a ``convolution``, `dimensions` are those of its result.
    """
    bare = name.lstrip("_") if not name.startswith("__") else name
    if bare in _CONVOLUTIONS:
        return f"conv{'_transpose' * transposed}{dimensions - 2}d" if dimensions > 2 else "conv"
    if _UPSAMPLING.match(bare):
        return "interpolate"
    if _FUSED_ATTENTION.match(bare):
        return "scaled_dot_product_attention"
    return DOCUMENTED.get(bare, _WITH_INDICES.sub("", bare))
