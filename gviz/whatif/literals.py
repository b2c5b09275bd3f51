"""Recorded arrays as Python writes them, with the digits that tell each number from all others of its dtype."""

from __future__ import annotations

import textwrap

from gviz.values import Array


def literal(array: Array, dtype: str, *, requires_grad: bool = False) -> str:
    """The call that makes a tensor of these numbers; an array without elements keeps its shape."""
    more = "" if dtype in ("float32", "int64", "bool") and array.size else f", dtype=torch.{dtype}"
    more += ", requires_grad=True" if requires_grad else ""
    if not array.size:
        return f"torch.empty({array.shape}{more})"
    text = f"torch.tensor({_numbers(array)}{more})"
    return text if len(text) < 100 else "\n    ".join(textwrap.wrap(text, 110, break_long_words=False))


def number(array: Array) -> str:
    """The one number of an array."""
    return str(array[()])


def _numbers(array: Array) -> str:
    return f"[{', '.join(_numbers(part) for part in array)}]" if array.ndim else number(array)
