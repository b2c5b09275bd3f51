"""Which expressions of a source text become variables: read from the text alone, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gviz.site import Frame

Range = tuple[int, int, int, int]
"""``(line, end_line, column, end_column)`` as in `Frame`: lines from 1, columns in UTF-8 bytes from 0."""

LARGEST_SOURCE = 1 << 20
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the value of one expression goes.

    `names` are the targets of the assignment, several for ``a, b = f()``; empty if the expression is returned, so that
    the caller's statement decides, from its element `element` if it was one of a returned tuple. `exact` is False for
    the start of a chain of method calls whose end is assigned. `lines` are those of the statement.
    """

    names: tuple[str, ...]
    element: int | None
    exact: bool
    lines: tuple[int, int]


@lru_cache(maxsize=64)
def bindings(text: str) -> dict[Range, Binding]:
    """All expressions of a source that become variables; none if it cannot be parsed or is larger than any program."""
    if len(text) > LARGEST_SOURCE:
        return {}
    try:
        found: dict[Range, Binding] = {}
        for node in ast.walk(ast.parse(text)):
            for where, binding in _of_node(node):
                found.setdefault(where, binding)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return found


def range_of(frame: Frame) -> Range:
    """The expression a frame was running."""
    return frame.line, frame.end_line, frame.column, frame.end_column


def _of_node(node: ast.AST) -> Iterator[tuple[Range, Binding]]:
    match node:
        case ast.Assign(targets=[target, *_], value=value):
            yield from _assigned(target, value, node)
            if isinstance(target, ast.Subscript):  # storing is a write into the variable itself
                yield _range(target), Binding((_name(target.value),), None, True, _lines(node))
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _assigned(target, value, node)
        case ast.AugAssign(target=target):
            yield _range(node), Binding((_name(target),), None, True, _lines(node))
        case ast.Return(value=ast.Tuple(elts=elements)):
            for place, element in enumerate(elements):
                yield from _valued(element, (), place, node)
        case ast.Return(value=ast.expr() as value) | ast.Lambda(body=value):
            yield from _valued(value, (), None, node)


def _assigned(target: ast.expr, value: ast.expr, statement: ast.AST) -> Iterator[tuple[Range, Binding]]:
    match target, value:
        case ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple(elts=values) | ast.List(elts=values):
            if len(targets) == len(values) and not any(isinstance(part, ast.Starred) for part in (*targets, *values)):
                for one, its_value in zip(targets, values, strict=True):
                    yield from _assigned(one, its_value, statement)
        case ast.Tuple(elts=targets) | ast.List(elts=targets), _:
            if not any(isinstance(part, ast.Starred) for part in targets):
                yield from _valued(value, tuple(map(_name, targets)), None, statement)
        case _:
            yield from _valued(value, (_name(target),), None, statement)


def _valued(
    value: ast.expr, names: tuple[str, ...], element: int | None, statement: ast.AST
) -> Iterator[tuple[Range, Binding]]:
    """The ranges under which the value of an expression, or the start of its chain, can show up in a stack."""
    if isinstance(value, ast.IfExp):
        yield from _valued(value.body, names, element, statement)
        yield from _valued(value.orelse, names, element, statement)
        return
    exact = True
    for part in _chain(value):
        for where in _ranges(part):
            yield where, Binding(names, element, exact, _lines(statement))
        exact = False


def _chain(value: ast.expr) -> Iterator[ast.expr]:
    """``f(x).g().h()`` and what it is made of from its end: ``f(x).g()``, ``f(x)``."""
    while True:
        yield value
        match value:
            case ast.Call(func=ast.Attribute(value=before)) | ast.Attribute(value=before) | ast.Subscript(value=before):
                value = before
            case _:
                return


def _ranges(part: ast.expr) -> Iterator[Range]:
    yield _range(part)
    match part:
        case ast.Call(func=ast.Attribute(attr=attr, end_lineno=line, end_col_offset=end)) if line != part.lineno:
            # CPython moves the start of a call in a chain over several lines to the method's name.
            start = (end or 0) - len(attr.encode())
            yield line or 0, part.end_lineno or 0, start, part.end_col_offset or 0
            yield line or 0, part.end_lineno or 0, start, end or 0


def _range(node: ast.AST) -> Range:
    line, end_line, column, end_column = (
        getattr(node, name) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset")
    )
    return line, end_line, column, end_column


def _lines(node: ast.AST) -> tuple[int, int]:
    return _range(node)[:2]


def _name(target: ast.expr) -> str:
    """A target as its user writes it, or nothing if that is too long to be a name."""
    text = ast.unparse(target)
    return text if len(text) <= _LONGEST_NAME else ""
