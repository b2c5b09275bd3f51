"""Where a program's source takes numbers out of tensors, or decides by a tensor itself."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator

from gviz import syntax

_METHODS = frozenset({"argmax", "argmin", "argsort", "item", "numpy", "tolist"})
_FUNCTIONS = frozenset({"asarray", "bool", "float", "index", "int"})


def reads_tensors(source: str, names: Container[str]) -> bool:
    """Whether it may: by ``.item()``, ``float``, ``if loss:``, ``range(n)``; `names` are those of tensors.

    What it decides by a comparison is an operation, and needs no guess. True for what cannot be read.
    """
    try:
        tree = syntax.program(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(_takes_out(node) or _is_read(node, names) for node in ast.walk(tree))


def _takes_out(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _METHODS | {"asarray", "index"}
        case ast.Call(func=ast.Name(id=name)):
            return name in _FUNCTIONS
    return False


def _is_read(node: ast.AST, names: Container[str]) -> bool:
    return any(_names_one(test, names) for test in _truths(node))


def _truths(node: ast.AST) -> Iterator[ast.expr]:
    """What a part of the program asks the truth of, or counts to."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test) | ast.IfExp(test=test):
            yield test
        case ast.UnaryOp(op=ast.Not(), operand=test) | ast.Match(subject=test):
            yield test
        case ast.BoolOp(values=tests) | ast.comprehension(ifs=tests):
            yield from tests
        case ast.Call(func=ast.Name(id="range"), args=tests):
            yield from tests


def _names_one(test: ast.expr, names: Container[str]) -> bool:
    """Whether a test that is no comparison is of one of the tensors."""
    match test:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value):
            return _names_one(value, names)
        case ast.BinOp(left=left, right=right):
            return _names_one(left, names) or _names_one(right, names)
    return False
