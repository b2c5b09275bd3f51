"""The recorded source of the program: its lines, expressions and variables. It is read as text and never run."""

from __future__ import annotations

import ast
import symtable
import tokenize
from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from inspect import cleandoc
from io import StringIO
from textwrap import dedent

from gviz.source import syntax
from gviz.source.site import Frame, source_lines
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped


def line_text(timeline: Timeline, at: Frame | None) -> str:
    """Return a line of the program as it was recorded; empty if it is unknown."""
    text = timeline.source(at.path) if at is not None else None
    rows = source_lines(text) if text else []
    return rows[at.line - 1] if at is not None and 0 < at.line <= len(rows) else ""


def underlined(timeline: Timeline, at: Frame | None) -> list[str]:
    """Return a line of the program, and below it a row that marks the expression at the frame; empty if it is unknown.

    Of an expression on several lines, the part on the first is marked. A line begins with its number.
    """
    row = line_text(timeline, at)
    if at is None or not row.strip():
        return []
    written, number = row.expandtabs(1), f"{at.line} | "
    margin = len(written) - len(written.lstrip())
    rows = [f"{number}{written.strip()}"]
    if at.column >= 0:
        whole = row.encode()
        end = at.end_column if at.end_line == at.line else len(whole.rstrip())
        start, length = (
            len(whole[: at.column].decode(errors="replace")),
            len(whole[at.column : end].decode(errors="replace")),
        )
        if length and start >= margin:
            rows.append(f"{' ' * (len(number) - 2)}| {' ' * (start - margin)}{'^' * length}")
    return [clipped(one, MOST_SOURCE) for one in rows]


MOST_SOURCE = 120
"""Characters of a line of the program below a finding."""

_BLANK = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE)


def about(timeline: Timeline) -> str:
    """Return the docstring of the file in which the program began, as it was when it ran; empty if there is none."""
    frames = timeline.info(int(timeline.nodes[0])).frames if len(timeline.nodes) else ()
    return docstring(timeline.source(frames[-1].path) or "") if frames else ""


def docstring(text: str) -> str:
    """Return the string with which a Python text begins. Only this token is read."""
    try:
        tokens = tokenize.generate_tokens(StringIO(text).readline)
        first = next((token for token in tokens if token.type not in _BLANK), None)
        constant = ast.literal_eval(first.string) if first is not None and first.type == tokenize.STRING else ""
    except (tokenize.TokenError, SyntaxError, ValueError):
        return ""  # it does not begin with a docstring
    return cleandoc(constant) if isinstance(constant, str) else ""


# The expression that was running when something happened


def expression(timeline: Timeline, at: Frame | None) -> ast.AST | None:
    """Return the expression that ran at a frame, or its whole lines if columns are unknown; None if there is none."""
    text = timeline.source(at.path) if at is not None else None
    if at is None or not text:
        return None
    rows = [row.encode() for row in source_lines(text)[at.line - 1 : at.end_line]]
    if rows and at.column >= 0:
        rows[-1] = rows[-1][: at.end_column]
        rows[0] = rows[0][at.column :]
    running = b"\n".join(rows).decode(errors="replace")
    try:
        return syntax.program(f"({running})" if at.column >= 0 else dedent(running))
    except (SyntaxError, ValueError):  # the file has changed since, or these lines are a part of a statement
        return None


def called_function(timeline: Timeline, at: Frame | None) -> str:
    """Return the last name of the function in the outermost call at a frame; empty if unknown."""
    running = expression(timeline, at)
    calls = (node for node in ast.walk(running) if isinstance(node, ast.Call)) if running is not None else ()
    return next(map(called_name, calls), "")


def called_name(call: ast.Call) -> str:
    """Return the last name of the called function: ``item`` for ``x.sum().item()``."""
    match call.func:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def names_in(part: ast.AST) -> set[str]:
    """Return the variables that a part of an expression reads."""
    return {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}


def update_in_place(text: str, name: str) -> str:
    """Return ``w -= lr * w.grad`` for a line ``w = w - lr * w.grad``; empty for any other line.

    The name may also be an attribute or an item, as ``params[name]``.
    """
    try:
        (statement,) = syntax.program(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    match statement:
        case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right)) if (
            ast.unparse(target) == ast.unparse(left) == name
        ):
            return f"{name} {'+' if isinstance(op, ast.Add) else '-'}= {ast.unparse(right)}"
    return ""


# The function that owns each variable, as Python resolves names

MODULE = "<module>"

Variable = tuple[str, str]
"""A name, and the qualified name of the function whose variable it is: ``("h", "Net.forward")``."""

_NAMELESS = {
    ast.Lambda: "lambda",
    ast.ListComp: "listcomp",
    ast.SetComp: "setcomp",
    ast.DictComp: "dictcomp",
    ast.GeneratorExp: "genexpr",
}
"""Syntax without a name that has variables of its own -> its name in Python."""


@lru_cache(64)
def variable_owners(text: str) -> Mapping[Variable, str]:
    """Return the owner of each variable, by its name and the function that uses it; empty for invalid Python."""
    try:
        with syntax.unwarned():
            table = symtable.symtable(text, MODULE, "exec")
        return dict(_owners(table, MODULE, ()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


@lru_cache(64)
def variables_read(text: str, attribute: str) -> frozenset[Variable]:
    """Return the variables of a program whose attribute is read."""
    try:
        return frozenset(_attribute_reads(syntax.program(text), attribute, (MODULE,), variable_owners(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()


def _owners(
    table: symtable.SymbolTable, function: str, around: tuple[tuple[str, symtable.SymbolTable], ...]
) -> Iterator[tuple[Variable, str]]:
    """Yield the variables that a scope and its inner scopes use. `around` are the outer functions, innermost first."""
    for symbol in table.get_symbols():
        name = symbol.get_name()
        holders = (
            outer for outer, names in around if name in names.get_identifiers() and names.lookup(name).is_local()
        )
        owner = next(holders, MODULE) if symbol.is_free() else function if symbol.is_local() else MODULE
        yield (name, function), owner
    if table.get_type() == "function":
        around = ((function, table), *around)
    for child in table.get_children():
        named = child.get_type() in ("function", "class")  # type parameters are in no qualified name
        of_class = table.get_type() == "class"
        yield from _owners(
            child, _qualified_name(function, child.get_name(), of_class=of_class) if named else function, around
        )


def _attribute_reads(
    node: ast.AST, attribute: str, scopes: tuple[str, ...], known: Mapping[Variable, str], *, of_class: bool = False
) -> Iterator[Variable]:
    """Yield the reads below a node; `scopes` are the scopes around it, the innermost first."""
    match node:
        case ast.Attribute(attr=attr, ctx=ast.Load(), value=ast.Name(id=name)) if attr == attribute:
            yield name, next((known[name, scope] for scope in scopes if (name, scope) in known), MODULE)
    scope = _NAMELESS.get(type(node), getattr(node, "name", ""))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *_NAMELESS)):
        scopes = (_qualified_name(scopes[0], scope, of_class=of_class), *scopes)
        of_class = isinstance(node, ast.ClassDef)
    for inner in ast.iter_child_nodes(node):
        yield from _attribute_reads(inner, attribute, scopes, known, of_class=of_class)


def _qualified_name(outer: str, name: str, *, of_class: bool) -> str:
    """Return the qualified name of an object within a function, class or module, as Python writes it."""
    called = f"<{name}>" if name in _NAMELESS.values() else name
    return called if outer == MODULE else f"{outer}.{called}" if of_class else f"{outer}.<locals>.{called}"


# Where the program takes numbers out of tensors, or branches by a tensor

_METHODS = frozenset({"argmax", "argmin", "argsort", "item", "numpy", "tolist"})
_FUNCTIONS = frozenset({"asarray", "bool", "float", "index", "int"})


def reads_tensors(source: str, names: Container[str]) -> bool:
    """Return whether it may: by ``.item()``, ``float``, ``if loss:``, ``range(n)``; `names` are those of tensors.

    A branch by a comparison is an operation, and needs no guess. True for a text that is not valid Python.
    """
    try:
        tree = syntax.program(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    return any(_takes_out(node) or _is_read(node, names) for node in ast.walk(tree))


def numbers_taken(text: str) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield each call that takes numbers out of a value, with that value: ``scale.item()``, ``float(self.scale)``.

    A text that is not valid Python has none.
    """
    try:
        tree = syntax.program(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="item" | "numpy" | "tolist")):
                yield node, value
            case ast.Call(func=ast.Name(id="float" | "int"), args=[value]):
                yield node, value


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
    """Yield the expressions whose truth a program tests, or up to which it counts."""
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
    """Return whether a test that is no comparison is of one of the tensors."""
    match test:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value):
            return _names_one(value, names)
        case ast.BinOp(left=left, right=right):
            return _names_one(left, names) or _names_one(right, names)
    return False
