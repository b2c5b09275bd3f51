"""What is said about a place that stands in the way, and how the program's own code is quoted in it."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """Why it cannot be in a static graph, and lines of code (or words) that can."""

    why: str
    instead: tuple[str, ...]


def code(node: ast.AST) -> str:
    """A part of the program as its author would write it."""
    return ast.unparse(node)


def operand(node: ast.AST, modules: frozenset[str] = frozenset({"torch"})) -> ast.AST:
    """The tensor of a call: ``x`` of ``x.item()``, of ``float(x)`` and, `modules` being known, ``torch.nonzero(x)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[first, *_]) if name in modules:
            return first
        case ast.Call(func=ast.Attribute(value=value)):
            return value
        case ast.Call(args=[first, *_]):
            return first
    return node
