"""The names of operations in PyTorch's documentation.

A recording has the names of PyTorch's dispatcher, and its private ones: ``native_layer_norm``, ``_unsafe_view``,
``convolution``. People write and read ``layer_norm``, ``view`` and ``conv2d``.
"""

from __future__ import annotations

import re

from gviz.events.graph import NodeCreated

DOCUMENTED = {
    "native_batch_norm": "batch_norm", "cudnn_batch_norm": "batch_norm", "miopen_batch_norm": "batch_norm",
    "native_layer_norm": "layer_norm", "native_group_norm": "group_norm", "fused_rms_norm": "rms_norm",
    "native_dropout": "dropout", "addmm": "linear", "mm": "matmul", "bmm": "matmul", "mv": "matmul", "dot": "matmul",
    "getitem": "index", "native_norm": "norm", "linalg_vector_norm": "vector_norm",
    "nll_loss2d": "nll_loss", "slow_conv_dilated2d": "conv2d", "constant_pad_nd": "pad", "safe_softmax": "softmax",
    "unsafe_split": "split", "unsafe_chunk": "chunk", "unsafe_view": "view",
    "reshape_alias": "reshape", "to_copy": "to",
    "mkldnn_rnn_layer": "lstm", "cudnn_rnn": "rnn", "transformer_encoder_layer_fwd": "TransformerEncoderLayer",
}  # fmt: skip
"""The function of PyTorch's documentation for operations that have another name."""

ABBREVIATED = {"t": "transpose", "T": "transpose", "mT": "transpose", "H": "adjoint", "mH": "adjoint"}
"""The function of PyTorch's documentation for operations whose own name reads like a variable."""

PRODUCTS = frozenset({"addmm", "mm", "bmm", "mv", "dot"})
"""Operations that programs call themselves, and that ``linear`` and ``matmul`` run.

A recording of PyTorch has the name of the called function for each of them. In others they count as parts of a
``linear`` or ``matmul``.
"""

_WITH_INDICES = re.compile(r"_with_indices$")
_UPSAMPLING = re.compile(r"_?upsample_\w+$")
_FUSED_ATTENTION = re.compile(r"_?scaled_dot_product_\w*attention\w*$")
_CONVOLUTIONS = {"convolution", "mkldnn_convolution", "cudnn_convolution", "thnn_conv2d"}


def documented_name(name: str, created: NodeCreated) -> str:
    """Return the function in PyTorch's documentation for the operation of a node, or for the call that made it."""
    if not depends_on_result(name):
        return documented_names(name)[0]
    value = created.first_value
    dimensions = len(value.shape) if value is not None else 0
    transpose = "_transpose" if dict(created.attrs).get("transposed") is True else ""
    return f"conv{transpose}{dimensions - 2}d" if dimensions > 2 else "conv"


def documented_names(name: str) -> tuple[str, ...]:
    """Return the functions in PyTorch's documentation that an operation may be; several only for a ``convolution``."""
    if depends_on_result(name):
        return "conv", *(f"conv{transpose}{number}d" for transpose in ("", "_transpose") for number in (1, 2, 3))
    bare = _bare(name)
    if _UPSAMPLING.match(bare):
        return ("interpolate",)
    if _FUSED_ATTENTION.match(bare):
        return ("scaled_dot_product_attention",)
    return (ABBREVIATED.get(bare) or DOCUMENTED.get(bare, _WITH_INDICES.sub("", bare)),)


def depends_on_result(name: str) -> bool:
    """Return whether the documented name depends on the node: a ``convolution`` is a ``conv2d`` or another one."""
    return _bare(name) in _CONVOLUTIONS


def _bare(name: str) -> str:
    return name.lstrip("_") if not name.startswith("__") else name
