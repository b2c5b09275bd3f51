"""Python's text as a tree: parsed, never run, and without Python's warnings; and Python's signs for operations."""

from __future__ import annotations

import ast
from warnings import catch_warnings

ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
"""How Python writes an operation of two numbers, or of tensors element by element."""

SIGNS = ARITHMETIC | {"matmul": "@", "mm": "@"}


def unwarned() -> catch_warnings[None]:
    """A context in which nothing is warned of."""
    return catch_warnings(action="ignore")


def program(text: str) -> ast.Module:
    """The statements of a text; raises what `ast.parse` raises for what is none."""
    with unwarned():
        return ast.parse(text)


def expression(text: str) -> ast.Expression:
    """The one expression that a text is; raises what `ast.parse` raises for what is none."""
    with unwarned():
        return ast.parse(text, mode="eval")
