"""What is usually written instead where an operation makes a nan or inf."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gviz.explain.operations import MASKING
from gviz.trace.state import NodeInfo
from gviz.value_text import bad_text
from gviz.values import Value

_SMALL = "add a small number first: sqrt(x + 1e-8)"
_FIXES = {
    "sqrt": _SMALL,
    "rsqrt": _SMALL,
    "norm": "add a small number to what it is taken of: its gradient is not defined at 0",
    "std": "add a small number to the variance: its gradient is not defined where nothing varies",
    "div": "keep what is divided by away from 0: x / (y + 1e-8)",
    "reciprocal": "keep what is divided by away from 0: 1 / (x + 1e-8)",
    "log": "keep its input above 0: log(x.clamp(min=1e-8)), or log_softmax, log1p, binary_cross_entropy_with_logits",
    "exp": "keep its input small: subtract the maximum first, or use softmax, logsumexp",
    "pow": "keep its base above 0, or add a small number to it",
    "acos": "clamp its input to a little less than 1",
    "asin": "clamp its input to a little less than 1",
}
"""By operation: what to write where it makes a nan or inf."""

_AT_ZERO = _FIXES.keys() - {"exp", "pow"}
"""Operations that are infinite at some input, however small all numbers are."""

_MASKED = (
    "leave one element of each row unmasked: softmax of a row of -inf is 0 / 0; or fill with a large negative number"
)
_DATA = "it came with the data: look there for what is missing, with torch.isfinite(x).all(), before it is used"
_NARROW = f"float16 has no number above 65504, a greater one becomes inf (bfloat16, float32 have them); else {_DATA}"
_SMALLER = "take a smaller number, or compute in float32 or bfloat16, which have greater ones"
DIVERGING = "a smaller learning rate; else smaller numbers going in, by normalization, or smaller weights at the start"
"""Where a loss grew until something became too large."""

_OF_SIZE = "smaller numbers going in, by normalization, smaller weights at the start, or a smaller learning rate"
LEAPT = "a smaller learning rate, or clip_grad_norm_ before the step"
"""Where a step has made a parameter many times as large."""

_OF_ONE = "one number has no spread: take it over a dim with more elements, or with unbiased=False"
_OTHER = "look at the numbers that go in, and keep them away from where it is not defined"


_LARGEST = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.4e38, "float64": 1.8e308}
"""The largest number of a dtype."""


def fix(
    info: NodeInfo, made: Value | None, operands: Iterable[Value | None], *, diverging: bool = False, line: str = ""
) -> str:
    """What to write instead of an operation that has made a bad value of these operands.

    `diverging`: the loss grew; `line` is that of the program.
    """
    op, operands = info.op.base_name, list(operands)
    if info.created.kind != "op":
        if is_beyond(info, made, line):
            return _SMALLER
        narrow = made is not None and made.dtype == "float16" and "inf" in bad_text(made)
        return _NARROW if narrow else _DATA
    if op in MASKING:
        return _MASKED
    if op in ("std", "var") and made is not None and [value.size for value in operands[:1] if value] == [made.size]:
        return _OF_ONE
    at_zero = op in _AT_ZERO or (op == "pow" and any(map(_has_zero, operands)))
    is_nan = made is None or "nan" in bad_text(made)
    too_large = op not in _FIXES and any(map(_is_huge, operands))
    if made is None or at_zero or op == "exp" or (is_nan and not too_large):
        return _FIXES.get(op, _OTHER)
    if diverging:
        return DIVERGING
    return f"keep its result small enough for {made.dtype}: {_OF_SIZE}"


def is_of_size(remedy: str) -> bool:
    """Whether what is to be written instead is to keep numbers small."""
    return remedy == DIVERGING or remedy.endswith(_OF_SIZE)


def is_beyond(info: NodeInfo, made: Value | None, line: str) -> bool:
    """Whether a bad value is one number that float16 has no room for, and the line does not write as infinite."""
    one = (
        "inf" not in line.lower()
        and info.created.kind == "constant"
        and made is not None
        and made.dtype == "float16"
        and made.shape == ()
    )
    return one and "inf" in bad_text(made)


def _is_huge(value: Value | None) -> bool:
    """Whether the product of two such numbers has no place in their dtype."""
    stats = value.statistics() if value is not None else None
    if value is None or stats is None or value.dtype not in _LARGEST:
        return False
    return max(-stats.min, stats.max) > math.sqrt(_LARGEST[value.dtype])


def _has_zero(value: Value | None) -> bool:
    stats = value.statistics() if value is not None else None
    return stats is not None and bool(stats.zero)
