"""The names under which the forward of a custom `autograd.Function` saves tensors.

`ctx.save_for_backward(x, exp, y)` saves its arguments without names; only the source has them. For example, with

    def forward(ctx, x):
        exp = x.exp()
        y = exp + 1
        ctx.save_for_backward(x, exp, y)
        return y

the names are ``x``, which is a parameter, ``exp``, and ``result`` for what the forward returns. In a `setup_context`,
``result`` is its third argument.

A variable that is assigned after the save no longer names the saved tensor, which is then ``tensor N`` for its place N.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from gviz.source import parsing

RESULT = "result"
"""The name for the value of the operation, as in its gradient rules."""

_Known = WeakKeyDictionary[CodeType, tuple[str, ...]]
_names_in_forward: _Known = WeakKeyDictionary()
_names_in_setup: _Known = WeakKeyDictionary()
"""The names by code. A function would keep the tensors of its closure alive, and a loop can make many from one code."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def saved_names(function: Callable[..., Any], *, is_setup: bool = False) -> tuple[str, ...]:
    """Return the names in the order of saving; empty if the source is unknown, or does not name each tensor once.

    The function is a `forward`, or a `setup_context` (`is_setup`), which gets the result as its third argument.
    """
    try:
        function = inspect.unwrap(function)
    except ValueError:  # it wraps itself
        return ()
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return ()
    known = _names_in_setup if is_setup else _names_in_forward
    names = known.get(code)
    if names is None:
        names = known[code] = _names_in_source(function, is_setup=is_setup)
    return names


def _names_in_source(function: Callable[..., Any], *, is_setup: bool) -> tuple[str, ...]:
    try:
        tree = parsing.program(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return ()
    if not isinstance(tree, ast.FunctionDef):
        return ()
    nodes = [*_own_nodes(tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and _is_save(node)]
    if len(calls) != 1:
        return ()
    call = calls[0]
    arguments = [argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args)]
    parameters = {*arguments}
    stored = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    assigned = {node.id for node in stored}
    saving = _start_of_saving(nodes, call)
    later = {node.id for node in stored if _position(node) > saving}
    results = {*arguments[2:3]} if is_setup else _returned(nodes, saving) - parameters
    names: list[str] = []
    for at, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            return ()
        name = argument.id if isinstance(argument, ast.Name) else ""
        if not name or name in later or name in parameters & assigned:
            name = f"tensor {at}"  # an expression, or a variable that also holds another tensor
        elif name in results:
            name = RESULT
        names.append(name)
    return tuple(names) if len({*names}) == len(names) else ()


def _own_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, without the bodies of functions and classes in it."""
    for child in ast.iter_child_nodes(tree):
        yield child
        if not isinstance(child, _SCOPES):
            yield from _own_nodes(child)


def _is_save(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "save_for_backward"


def _start_of_saving(nodes: list[ast.AST], call: ast.Call) -> tuple[int, int]:
    """Return where the save begins, or the outermost loop around it, whose earlier lines can run after the save."""
    loops = (node for node in nodes if isinstance(node, _LOOPS) and any(inner is call for inner in ast.walk(node)))
    return min(map(_position, (call, *loops)))


def _returned(nodes: list[ast.AST], saving: tuple[int, int]) -> set[str]:
    """Return the name that is returned after the save, as the only result; none if the returns differ."""
    values = [node.value for node in nodes if isinstance(node, ast.Return) and _position(node) > saving]
    names = {value.id if isinstance(value, ast.Name) else "" for value in values}
    return names - {""} if len(names) == 1 else set()


def _position(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset
