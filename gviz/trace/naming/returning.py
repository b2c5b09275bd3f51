"""Which variables the functions of a source text return, as which part: ``return x, {"h": h}``, ``Out(loss=loss)``."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from gviz import syntax
from gviz.events import KeyPath
from gviz.site import Frame
from gviz.trace.naming.bindings import COMPREHENSIONS, fields_of, name_of, parts_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OF_THEIR_OWN = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
"""What has a body whose ``return`` is another function's."""


@dataclass(frozen=True, slots=True)
class _Function:
    """The lines of a function, and which part of what it returns each variable is that it always returns."""

    name: str
    first: int
    last: int
    given: dict[str, KeyPath]


def returned_as(text: str, frame: Frame, name: str) -> KeyPath | None:
    """Which part of what a frame's function returns a variable of it is; None if it is not always returned as the same.

    A pure function of the text, which must be one that can be parsed.
    """
    own = frame.function.rpartition(".")[2]
    around = [one for one in _functions(text) if one.name == own and one.first <= frame.line <= one.last]
    return max(around, key=lambda one: one.first).given.get(name) if around else None


@lru_cache(maxsize=64)
def _functions(text: str) -> tuple[_Function, ...]:
    """The functions of a source that return variables."""
    return tuple(
        _Function(node.name, node.lineno, node.end_lineno or node.lineno, given)
        for node in ast.walk(syntax.program(text))
        if isinstance(node, _FUNCTIONS) and (given := _given(node))
    )


def _given(function: ast.AST) -> dict[str, KeyPath]:
    """What is returned as the same part wherever anything is: the text does not tell which ``return`` is run."""
    ways = [dict(_told_once(_variables(value, ()))) for value in _returns(function)]
    first, *others = ways or [{}]
    return {name: path for name, path in first.items() if all(other.get(name) == path for other in others)}


def _told_once(named: Iterable[tuple[str, KeyPath]]) -> Iterator[tuple[str, KeyPath]]:
    parts = [*named]
    counts = Counter(name for name, _ in parts)
    return ((name, path) for name, path in parts if counts[name] == 1)


def _returns(part: ast.AST) -> Iterator[ast.expr]:
    """What a function returns, but for constants, without the functions in it."""
    for inner in ast.iter_child_nodes(part):
        if isinstance(inner, ast.Return):
            if inner.value is not None and not isinstance(inner.value, ast.Constant):
                yield inner.value
        elif not isinstance(inner, _OF_THEIR_OWN):
            yield from _returns(inner)


def _variables(value: ast.expr, path: KeyPath) -> Iterator[tuple[str, KeyPath]]:
    """The variables that an expression gives as they are, each with the part that it is."""
    match value:
        case ast.Name() | ast.Attribute():
            yield name_of(value), path
        case ast.IfExp(body=body, orelse=other):
            yield from _variables(body, path)
            yield from _variables(other, path)
        case _ if not isinstance(value, COMPREHENSIONS):
            for step, part in (*parts_of(value), *fields_of(value)):
                yield from _variables(part, (*path, step))
