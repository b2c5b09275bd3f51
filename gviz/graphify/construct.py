"""The construct in the source where a tensor became a Python value: the test of an ``if``, a loop bound, an index."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gviz.source.call_stack import Frame

Kind = Literal["if", "while", "for", "match", "assert", "filter", "index", "sizes", "value"]
"""``filter`` is the condition of a comprehension, ``index`` indexing with a mask, ``sizes`` a function whose result
size depends on the data, ``value`` any other conversion to a number.
"""

_TESTS: tuple[tuple[type[ast.AST], str, Kind], ...] = (
    (ast.If, "test", "if"),
    (ast.IfExp, "test", "if"),
    (ast.While, "test", "while"),
    (ast.Assert, "test", "assert"),
    (ast.For, "iter", "for"),
    (ast.comprehension, "iter", "for"),
    (ast.Match, "subject", "match"),
    (ast.match_case, "guard", "match"),
)


@dataclass(frozen=True, slots=True)
class Construct:
    """The part of the program that prevents a static graph: `node`, with the `path` from the module down to it."""

    kind: Kind
    node: ast.AST
    path: tuple[ast.AST, ...]

    def holder(self, *kinds: type[ast.AST]) -> ast.AST | None:
        """Return the innermost part around it that is one of these kinds, None if there is none."""
        return next((part for part in reversed(self.path) if isinstance(part, kinds)), None)


def construct(tree: ast.Module, frame: Frame, what: str) -> Construct | None:
    """Return the construct at the place of a frame, None if unknown; `what` is the conversion, or the operation."""
    path = _path_to(tree, frame)
    if path is None:
        return None
    if what.startswith("mask "):
        return Construct("index", path[-1], path)
    for kind, _, name in _TESTS:
        if isinstance(path[-1], kind):  # a test that is read only by its jump
            return Construct(name, path[-1], path[:-1])
    for outer, inner in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
        for kind, field, name in _TESTS:
            if isinstance(outer, kind) and getattr(outer, field) is inner:
                return Construct(name, outer, path[: path.index(outer)])
        if isinstance(outer, ast.comprehension) and inner in outer.ifs:
            return Construct("filter", inner, path[: path.index(outer)])
    if what in _READINGS:
        return Construct("value", path[-1], path)
    return Construct("sizes", path[-1], path)


_READINGS = frozenset({"boolean", "integer", "float", "complex", "number", "index", "list", "array"})


def _path_to(tree: ast.Module, frame: Frame) -> tuple[ast.AST, ...] | None:
    """Return the parts of the program from the module down to the smallest that covers a frame's expression."""
    best: tuple[ast.AST, ...] | None = None
    start, end = (frame.line, frame.column), (frame.end_line, frame.end_column)
    low, high = (0, 0), (1 << 60, 0)
    for path in _paths(tree, ()):
        part = path[-1]
        if not isinstance(part, ast.expr | ast.stmt):
            continue
        first, last = _extent(part)
        if low <= first <= start and end <= last <= high:  # the format of an f-string claims the whole range
            best, low, high = path, first, last
    return best


def _extent(part: ast.expr | ast.stmt) -> tuple[tuple[int, int], tuple[int, int]]:
    return (part.lineno, part.col_offset), (part.end_lineno or part.lineno, part.end_col_offset or part.col_offset)


def _paths(node: ast.AST, above: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, ...]]:
    """Yield every part with its outer parts, outer ones first."""
    path = (*above, node)
    yield path
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.FormattedValue) and child is node.format_spec):  # ":.3f" claims the whole range
            yield from _paths(child, path)


# Advice


@dataclass(frozen=True, slots=True)
class Advice:
    """Why it cannot be in a static graph, and lines of code (or words) that can."""

    why: str
    instead: tuple[str, ...]


def code(node: ast.AST) -> str:
    """Return a part of the program as source code."""
    return ast.unparse(node)


def operand(node: ast.AST, modules: frozenset[str] = frozenset({"torch"})) -> ast.AST:
    """Return the tensor of a call: ``x`` in ``x.item()``, ``float(x)`` and, for known `modules`,
    ``torch.nonzero(x)``.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[first, *_]) if name in modules:
            return first
        case ast.Call(func=ast.Attribute(value=value)):
            return value
        case ast.Call(args=[first, *_]):
            return first
    return node
