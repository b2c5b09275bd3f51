"""The methods a tensor gets from declarations: put here by `surface`, shown to type checkers by ``methods.pyi``."""

from __future__ import annotations


class Methods:
    """Base of `Tensor`: operators, methods and in-place variants of the declared operations."""

    __slots__ = ()
