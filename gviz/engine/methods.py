"""The tensor methods made from declarations: `functions_and_methods` sets them, ``methods.pyi`` declares them."""

from __future__ import annotations


class Methods:
    """Base of `Tensor`: operators, methods and in-place variants of the declared operations."""

    __slots__ = ()
