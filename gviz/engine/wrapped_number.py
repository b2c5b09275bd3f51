"""A Python number where an operation takes a tensor."""

from __future__ import annotations

from gviz.engine.tensor import Tensor


class WrappedNumber(Tensor):
    """A Python number as an operand: a 0-dimensional constant, drawn smaller than a tensor somebody made."""

    __slots__ = ()
    _is_number = True
