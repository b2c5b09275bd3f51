"""The names under which the forward of a custom `autograd.Function` saves tensors.

`ctx.save_for_backward(x, exp, y)` saves its arguments without names; only the source has them. For example, with

    def forward(ctx, x):
        exp = x.exp()
        y = exp + 1
        ctx.save_for_backward(x, exp, y)
        return y

the names are ``x``, which is a parameter, ``exp``, and ``result`` for what the forward returns.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from gviz.source import syntax

RESULT = "result"
"""The name for the value of the operation, as in its gradient rules."""
FUNCTIONS = 1000
"""How many functions are cached."""


@lru_cache(FUNCTIONS)
def saved_names(forward: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names in the order of saving; empty if the source is unknown, or does not name each tensor once."""
    try:
        tree = syntax.program(textwrap.dedent(inspect.getsource(inspect.unwrap(forward)))).body[0]
    except (OSError, TypeError, SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return ()
    if not isinstance(tree, ast.FunctionDef):
        return ()
    calls = [*_calls(tree)]
    if len(calls) != 1 or calls[0].keywords:
        return ()
    returned = {*_returned(tree)}
    parameters = {argument.arg for argument in (*tree.args.posonlyargs, *tree.args.args)}
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names: list[str] = []
    for at, argument in enumerate(calls[0].args):
        if isinstance(argument, ast.Starred):
            return ()
        name = argument.id if isinstance(argument, ast.Name) else f"tensor {at}"
        if name in parameters & assigned:
            name = f"tensor {at}"  # not the argument that was passed
        elif name in returned - parameters:
            name = RESULT
        names.append(name)
    return tuple(names) if len({*names}) == len(names) else ()


def _calls(tree: ast.FunctionDef) -> Iterator[ast.Call]:
    """Yield the calls of `save_for_backward`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="save_for_backward")):
                yield node


def _returned(tree: ast.FunctionDef) -> Iterator[str]:
    """Yield the names that are returned as the only result."""
    for node in ast.walk(tree):
        match node:
            case ast.Return(value=ast.Name(id=name)):
                yield name
