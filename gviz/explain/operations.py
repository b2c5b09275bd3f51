"""What explanations know of operations by their names: for each fact one set of them, whatever framework ran them.

An operation that is new to this table is explained by its formula and rules alone.
"""

from __future__ import annotations

from gviz.source.syntax import ARITHMETIC

DROPOUTS = frozenset({"dropout", "dropout1d", "dropout2d", "dropout3d", "native_dropout"})

PRODUCTS = DROPOUTS | {"mul", "mm", "addmm", "bmm", "baddbmm", "matmul", "mv", "dot", "convolution"}
"""What arrives is multiplied by the other input."""

SOFTMAXES = frozenset({"softmax", "log_softmax"})

SQUASHING = frozenset({"sigmoid", "tanh", "hardsigmoid", "hardtanh", "softsign", "erf", "atan"})
"""Functions with two flat ends. They send at most what arrives, and mostly far less."""

FLAT = SQUASHING | SOFTMAXES
"""Functions whose derivative rounds to zero where their inputs are large."""

SHUTTING = frozenset({"relu", "threshold", "hardshrink", "softshrink"})
"""Functions that are off for a part of their inputs, and let no gradient through there."""

HOLDING = frozenset({"clamp", "clamp_min", "clamp_max", "hardtanh", "maximum", "minimum"})
"""Functions that hold numbers at a border."""

STEPPING = frozenset({"round", "floor", "ceil", "trunc", "sign", "heaviside"})
"""Functions that are constant between their steps."""

CHOOSING = frozenset(
    {"where", "masked_fill", "nan_to_num", "index", "select", "slice", "gather", "max", "min", "amax", "amin",
     "max_pool2d_with_indices", "masked_select", "index_select"}
)  # fmt: skip
"""Functions whose result has only some of the elements they are given."""

MASKING = frozenset({"masked_fill", "where", "fill", "triu", "tril"})
"""Operations that put an infinity somewhere on purpose, to hide a part of attention scores."""

ACTIVATIONS = DROPOUTS | SHUTTING | {"leaky_relu", "elu", "selu", "celu", "hardtanh", "silu", "mish"}
"""Functions that also exist with ``inplace=True``."""

LOSSES_OF_PAIRS = frozenset(
    {"mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
)
"""Losses between an input and a target of the same shape that are one operation."""

LOSSES = LOSSES_OF_PAIRS | {
    "l1_loss", "margin_ranking_loss", "hinge_embedding_loss", "triplet_margin_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_margin_loss_forward", "cosine_embedding_loss", "soft_margin_loss",
}  # fmt: skip
"""Losses whose least value is 0."""

ELEMENT_BY_ELEMENT = LOSSES_OF_PAIRS | ARITHMETIC.keys()
"""Operations in which each element of the one input meets one of the other."""

BY_ELEMENT = ARITHMETIC.keys() | {
    "log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "sqrt", "rsqrt", "reciprocal", "square", "true_divide",
    "acos", "asin", "acosh", "atanh", "sinh", "cosh", "tan", "logit", "xlogy", "erfinv", "lgamma", "digamma",
    "float_power", "remainder", "fmod", "atan2", "hypot", "logaddexp", "addcmul", "addcdiv",
}  # fmt: skip
"""Elementwise operations that can make a nan or inf out of good numbers."""

OF_LOSSES = LOSSES_OF_PAIRS | {
    "mean", "sum", "neg", "pow", "square", "abs", "log_softmax", "nll_loss", "nll_loss2d", "cross_entropy", "l1_loss",
    "kl_div",
}  # fmt: skip
"""Operations that losses end with: what they let through is small where there is little left to learn."""

LISTS = frozenset({"stack", "cat"})
"""The operations that put a list of numbers together to be summed."""

RESHAPING = frozenset({"view", "reshape", "squeeze", "unsqueeze", "expand", "_reshape_alias", "_unsafe_view"})

SAME_NUMBERS = RESHAPING | {
    "transpose", "t", "permute", "alias", "clone", "contiguous", "slice", "select", "getitem", "index",
    "to", "type", "float", "double", "half", "bfloat16",
}  # fmt: skip
"""Operations after which the numbers are still the same: views, copies and conversions."""
