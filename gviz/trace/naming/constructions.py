"""Which expressions of a source text make an object of an imported class: what its constructor computes is no value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from gviz import syntax
from gviz.trace.naming.bindings import LARGEST_SOURCE, Range, is_of_class, where_stands


@lru_cache(maxsize=64)
def constructions(text: str) -> frozenset[Range]:
    """Where ``Categorical(logits=x)`` or ``distributions.Normal(0, s)`` stand, if imported; none in a text that
    cannot be parsed or is larger than any program."""
    if len(text) > LARGEST_SOURCE:
        return frozenset()
    try:
        nodes = list(ast.walk(syntax.program(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    imported = frozenset(name for node in nodes for name in _imported(node))
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return frozenset(where_stands(call) for call in calls if _is_class(call.func, imported))


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (name.asname or name.name.partition(".")[0] for name in node.names)


def _is_class(function: ast.expr, imported: frozenset[str]) -> bool:
    """Whether it is written as classes are, ``OneHotCategorical``, and comes from an import."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return is_of_class(name) and _root(function) in imported
    return False


def _root(value: ast.expr) -> str:
    """The variable that ``a.b.c`` begins with."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""
