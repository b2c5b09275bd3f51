"""Which expressions of a source text become variables: read from the text alone, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gviz.site import Frame

Range = tuple[int, int, int, int]
"""``(line, end_line, column, end_column)`` as in `Frame`: lines from 1, columns in UTF-8 bytes from 0."""

_OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("add",), ast.Sub: ("sub",), ast.Mult: ("mul",), ast.Div: ("div",), ast.Pow: ("pow",), ast.USub: ("neg",),
    ast.MatMult: ("mm", "mv", "dot"),
}  # fmt: skip
_CALLED: dict[str, tuple[str, ...]] = {"matmul": _OPERATORS[ast.MatMult]} | dict.fromkeys(
    ("tensor", "as_tensor", "from_numpy", "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange",
     "linspace", "eye"),
    ("tensor",),
)  # fmt: skip
_STORING = ("copyslices", "copy", "fill", "indexput")

LARGEST_SOURCE = 1 << 20
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the value of one expression goes.

    `names` are the targets of the assignment, several for ``a, b = f()``; empty if the expression is returned, so that
    the caller's statement decides, from its element `element` if it was one of a returned tuple. `exact` is False for
    the start of a chain of method calls whose end is assigned. `lines` are those of the statement. An operation that
    is called as `called` says is all that the expression makes; any other may be a step on the way.
    """

    names: tuple[str, ...]
    element: int | None
    exact: bool
    lines: tuple[int, int]
    called: tuple[str, ...] = ()


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
                yield _range(target), Binding((_name(target.value),), None, True, _lines(node), _STORING)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _assigned(target, value, node)
        case ast.AugAssign(target=target, op=op):
            yield _range(node), Binding((_name(target),), None, True, _lines(node), _OPERATORS.get(type(op), ()))
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
            yield where, Binding(names, element, exact, _lines(statement), _called(part))
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


def _called(part: ast.expr) -> tuple[str, ...]:
    """What the one operation of an expression is called, as far as its text tells."""
    match part:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return _CALLED.get(name.removesuffix("_like"), (plain(name),))
        case ast.Compare():
            return ("gt", "ge", "lt", "le", "eq", "ne")
        case ast.BinOp(op=op) | ast.UnaryOp(op=op):
            return _OPERATORS.get(type(op), ())
        case ast.Attribute(attr=name):
            return (plain(name),)
        case ast.Subscript(slice=index) if not isinstance(index, ast.Tuple):
            return ("select", "slice", "index", "getitem")
    return ()


def plain(name: str) -> str:
    """What a function and its operation are called alike: ``log_softmax``, ``LogSoftmax``, ``log_softmax_``."""
    return name.replace("_", "").lower()


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
