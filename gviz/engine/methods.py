"""The methods of tensors made from declarations: `surface` sets them here, ``methods.pyi`` declares them."""

from __future__ import annotations


class Methods:
    """Base of `Tensor`: operators, methods and in-place variants of the declared operations."""

    __slots__ = ()
