"""What the program itself says a name stands for: a number, or a list and what is in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.JoinedStr)


def is_number(node: ast.AST, tree: ast.AST) -> bool:
    """Whether an expression of the program `tree` is a whole number of Python's, whatever the data are."""
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=one):
            return is_number(one, tree)
        case ast.BinOp(left=one, op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), right=other):
            return is_number(one, tree) and is_number(other, tree)
        case ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Name(id=name):
            given = _given(name, tree)
            return bool(given) and all(
                not isinstance(one, ast.Name | ast.BinOp) and is_number(one, tree) for one in given
            )
    return False


def is_list(node: ast.expr, tree: ast.AST) -> bool:
    """Whether an expression is plainly a list, a tuple or a text, and no tensor."""
    match node:
        case ast.Name(id=name):
            given = _given(name, tree)
            return bool(given) and all(not isinstance(one, ast.Name) and is_list(one, tree) for one in given)
        case ast.Constant(value=value):
            return isinstance(value, str)
    return isinstance(node, _LISTS)


def has_numbers_only(node: ast.expr, tree: ast.AST) -> bool:
    """Whether an expression is a list of numbers that stays as it was written."""
    if isinstance(node, ast.Name):
        given = _given(node.id, tree)
        return len(given) == 1 and not _changed(node.id, tree) and has_numbers_only(given[0], ast.Module([], []))
    if not isinstance(node, ast.List | ast.Tuple):
        return False
    return all(isinstance(one, ast.Constant) and type(one.value) in (int, float) for one in node.elts)


def _given(name: str, tree: ast.AST) -> list[ast.expr]:
    """Every value that the program gives a name; none if it gets one in a way that is not known, too."""
    found: dict[int, ast.expr] = {}
    for part in ast.walk(tree):
        match part:
            case ast.Assign(targets=targets, value=value):
                found.update((id(one), of) for target in targets for one, of in _pairs(target, value))
            case (
                ast.For(target=target, iter=ast.Call(func=ast.Name(id="range")))
                | ast.comprehension(target=target, iter=ast.Call(func=ast.Name(id="range")))
            ):
                found[id(target)] = ast.Constant(0)
    set_here = [
        part
        for part in ast.walk(tree)
        if (isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store))
        or (isinstance(part, ast.arg) and part.arg == name)
    ]
    return [found[id(one)] for one in set_here] if all(id(one) in found for one in set_here) else []


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match target, value:
        case (ast.Tuple(elts=targets), ast.Tuple(elts=values)) if len(targets) == len(values):
            yield from zip(targets, values, strict=True)
        case _:
            yield target, value


def _changed(name: str, tree: ast.AST) -> bool:
    """Whether anything in a list is set or deleted, or a method of it is called."""
    for part in ast.walk(tree):
        match part:
            case ast.Attribute(value=ast.Name(id=of)) if of == name:
                return True
            case ast.Subscript(value=ast.Name(id=of), ctx=ast.Store() | ast.Del()) if of == name:
                return True
    return False
