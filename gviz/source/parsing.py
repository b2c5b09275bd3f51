"""Parses Python text without running it and without Python's warnings; and Python's operator signs."""

from __future__ import annotations

import ast
from functools import lru_cache
from warnings import catch_warnings

ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
"""The Python operator of an operation on two numbers, or elementwise on tensors."""

SIGNS = ARITHMETIC | {"matmul": "@", "mm": "@"}


def unwarned() -> catch_warnings[None]:
    """Return a context that suppresses warnings."""
    return catch_warnings(action="ignore")


def program(text: str) -> ast.Module:
    """Parse the statements of a text. Raises what `ast.parse` raises."""
    with unwarned():
        return ast.parse(text)


def expression(text: str) -> ast.Expression:
    """Parse a text as one expression. Raises what `ast.parse` raises."""
    with unwarned():
        return ast.parse(text, mode="eval")


@lru_cache(64)
def loops(text: str) -> tuple[range, ...]:
    """Return the lines of each loop of a program, including its head and its ``else``; empty for invalid Python."""
    try:
        nodes = ast.walk(program(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    statements = (node for node in nodes if isinstance(node, ast.For | ast.AsyncFor | ast.While))
    return tuple(range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in statements)
