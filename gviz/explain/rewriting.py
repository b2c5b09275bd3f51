"""Lines of the program written as they were meant."""

from __future__ import annotations

import ast

from gviz import syntax


def update_in_place(text: str, name: str) -> str:
    """``w -= lr * w.grad`` for a line ``w = w - lr * w.grad``; empty for any other."""
    try:
        (statement,) = syntax.program(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=target)],
            value=ast.BinOp(left=ast.Name(id=left), op=ast.Add() | ast.Sub() as op, right=right),
        ) if target == left == name:
            return f"{name} {'+' if isinstance(op, ast.Add) else '-'}= {ast.unparse(right)}"
    return ""
