"""Whose variables the names of a program are, as Python resolves them; nothing of it is run."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator, Mapping
from functools import lru_cache

from gviz import syntax

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
"""The syntax without a name that has variables of its own, and what Python calls it."""


@lru_cache(64)
def owners(text: str) -> Mapping[Variable, str]:
    """By a name and the function that uses it, whose variable it is; empty for a text that is no Python."""
    try:
        with syntax.unwarned():
            table = symtable.symtable(text, MODULE, "exec")
        return dict(_owned(table, MODULE, ()))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def variables_read(text: str, attribute: str) -> set[Variable]:
    """The variables of a program that an attribute is read of."""
    try:
        return set(_read(syntax.program(text), attribute, (MODULE,), owners(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()


def _owned(
    table: symtable.SymbolTable, function: str, around: tuple[tuple[str, symtable.SymbolTable], ...]
) -> Iterator[tuple[Variable, str]]:
    """What a scope and those within it use; `around` are the functions around it from the innermost on."""
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
        named = child.get_type() in ("function", "class")  # else type parameters, which are in no qualified name
        of_class = table.get_type() == "class"
        yield from _owned(child, _within(function, child.get_name(), of_class=of_class) if named else function, around)


def _read(
    node: ast.AST, attribute: str, scopes: tuple[str, ...], known: Mapping[Variable, str], *, of_class: bool = False
) -> Iterator[Variable]:
    """The reads below a node; `scopes` are those around it from the innermost on."""
    match node:
        case ast.Attribute(attr=attr, ctx=ast.Load(), value=ast.Name(id=name)) if attr == attribute:
            yield name, next((known[name, scope] for scope in scopes if (name, scope) in known), MODULE)
    scope = _NAMELESS.get(type(node), getattr(node, "name", ""))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *_NAMELESS)):
        scopes = (_within(scopes[0], scope, of_class=of_class), *scopes)
        of_class = isinstance(node, ast.ClassDef)
    for inner in ast.iter_child_nodes(node):
        yield from _read(inner, attribute, scopes, known, of_class=of_class)


def _within(outer: str, name: str, *, of_class: bool) -> str:
    """The qualified name of what has a name within a function, class or module, as Python writes it."""
    called = f"<{name}>" if name in _NAMELESS.values() else name
    return called if outer == MODULE else f"{outer}.{called}" if of_class else f"{outer}.<locals>.{called}"
