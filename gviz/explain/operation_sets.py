"""Sets of operation names, one for each property that explanations use, whatever framework ran the operations.

An operation that is not in this table is explained only by its formula and rules.
"""

from __future__ import annotations

from gviz.source.parsing import ARITHMETIC

DROPOUTS = frozenset({"dropout", "dropout1d", "dropout2d", "dropout3d", "native_dropout"})

PRODUCTS = DROPOUTS | {"mul", "mm", "addmm", "bmm", "baddbmm", "matmul", "mv", "dot", "convolution"}
"""The incoming gradient is multiplied by the other input."""

_SUMMANDS = {"addmm": 0, "baddbmm": 0, "convolution": 2}
"""Products that also add an input, such as a bias: its slot. Its rule only sums, whatever the other inputs are."""


def multiplies(op: str, slot: int) -> bool:
    """Return whether the rule of an operation for an input multiplies the incoming gradient by the other inputs."""
    return op in PRODUCTS and _SUMMANDS.get(op) != slot


SOFTMAXES = frozenset({"softmax", "log_softmax"})

WEIGHTING = frozenset({"softmax", "_safe_softmax"})
"""Softmaxes whose result may be the weights of an attention."""

SQUASHING = frozenset({"sigmoid", "tanh", "hardsigmoid", "hardtanh", "softsign", "erf", "atan"})
"""Functions with two flat ends. They send at most the incoming gradient, and mostly far less."""

FLAT = SQUASHING | SOFTMAXES
"""Functions whose derivative rounds to zero for large inputs."""

ZERO_GRADIENT_REGIONS = frozenset({"relu", "threshold", "hardshrink", "softshrink"})
"""Functions that are constant for a part of their inputs, and send no gradient there."""

CLAMPS = frozenset({"clamp", "clamp_min", "clamp_max", "hardtanh", "maximum", "minimum"})
"""Functions that limit numbers at a bound."""

STEPPING = frozenset({"round", "floor", "ceil", "trunc", "sign", "heaviside"})
"""Functions that are constant between their steps."""

COMPARISONS = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})

DRAWS = frozenset({"bernoulli", "multinomial", "poisson"})
"""Random draws from a distribution, without a gradient for its parameters."""

SELECTIONS = frozenset(
    {"where", "masked_fill", "nan_to_num", "index", "select", "slice", "gather", "max", "min", "amax", "amin",
     "max_pool2d_with_indices", "masked_select", "index_select"}
)  # fmt: skip
"""Functions whose result has only some of their input's elements."""

MASKING = frozenset({"masked_fill", "where", "fill", "triu", "tril"})
"""Operations that insert an infinity on purpose, to hide a part of attention scores."""

ACTIVATIONS = DROPOUTS | ZERO_GRADIENT_REGIONS | {"leaky_relu", "elu", "selu", "celu", "hardtanh", "silu", "mish"}
"""Functions that also exist with ``inplace=True``."""

LOSSES_OF_PAIRS = frozenset(
    {"mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
)
"""Losses between an input and a target of the same shape that are one operation."""

LOSSES = LOSSES_OF_PAIRS | {
    "l1_loss", "margin_ranking_loss", "hinge_embedding_loss", "triplet_margin_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_margin_loss_forward", "cosine_embedding_loss", "soft_margin_loss",
}  # fmt: skip
"""Losses whose minimum is 0."""

ELEMENTWISE_PAIRS = LOSSES_OF_PAIRS | ARITHMETIC.keys()
"""Operations that combine each element of one input with an element of the other."""

NONFINITE_ELEMENTWISE = ARITHMETIC.keys() | {
    "log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "sqrt", "rsqrt", "reciprocal", "square", "true_divide",
    "acos", "asin", "acosh", "atanh", "sinh", "cosh", "tan", "logit", "xlogy", "erfinv", "lgamma", "digamma",
    "float_power", "remainder", "fmod", "atan2", "hypot", "logaddexp", "addcmul", "addcdiv",
}  # fmt: skip
"""Elementwise operations that can make nan or inf from finite numbers."""

ELEMENTWISE = NONFINITE_ELEMENTWISE | ZERO_GRADIENT_REGIONS | SQUASHING | {
    "leaky_relu", "elu", "selu", "celu", "silu", "mish", "gelu", "softplus", "neg", "abs", "sin", "cos", "clamp",
}  # fmt: skip
"""Operations whose rule multiplies each element of what arrives by a number."""

CLASS_LOSSES = frozenset({"nll_loss", "nll_loss2d", "cross_entropy"})
"""Losses whose targets are the numbers of classes."""

OF_LOSSES = LOSSES_OF_PAIRS | CLASS_LOSSES | {
    "mean", "sum", "neg", "pow", "square", "abs", "log_softmax", "l1_loss", "kl_div",
}  # fmt: skip
"""Operations at the end of losses: they send small gradients when the loss is small."""

LISTS = frozenset({"stack", "cat"})
"""The operations that combine a list of numbers into one tensor to be summed."""

RESHAPING = frozenset({"view", "reshape", "squeeze", "unsqueeze", "expand", "_reshape_alias", "_unsafe_view"})

RESHAPING_CALLS = RESHAPING | {"flatten", "unflatten", "ravel", "view_as", "reshape_as", "expand_as", "broadcast_to"}
"""Functions that only reshape: a node of `RESHAPING` that such a call made has the call's name."""

SAME_NUMBERS = RESHAPING | {
    "transpose", "t", "permute", "alias", "clone", "contiguous", "slice", "select", "getitem", "index",
    "to", "type", "float", "double", "half", "bfloat16",
}  # fmt: skip
"""Operations that keep the numbers: views, copies and conversions."""

JOINING_TERMS = LISTS | {"add", "sub"}
"""Operations that combine the terms of a loss."""

CARRYING_ONE_TERM = RESHAPING | {"sum", "mean", "mul", "div", "neg"}
"""Operations whose result is one term of a loss if their input is."""

WEIGHTED_SUMS = frozenset({"matmul", "bmm", "mm", "mv", "einsum"})
"""Products that add up one factor with the other as weights."""

MATRIX_PRODUCTS = WEIGHTED_SUMS | {"linear", "bilinear", "addmm", "baddbmm", "dot"}
"""The same, with what a layer adds to it."""

LAYER_PRODUCTS = MATRIX_PRODUCTS | {
    "convolution", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
}  # fmt: skip
"""Operations of layers that multiply their input by weights and add up the products."""


def is_fused_attention(op: str) -> bool:
    """Return whether an operation is a whole attention, as ``_scaled_dot_product_flash_attention_for_cpu``.

    In its boolean mask True takes part; a float mask is added to the scores.
    """
    return op.lstrip("_").startswith("scaled_dot_product_")
