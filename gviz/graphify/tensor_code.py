"""Writes expressions of the program as code on tensors.

`condition` turns a test into a boolean tensor, which ``torch.where`` takes: it turns ``a > 0 and not b`` into
``(a > 0) & (b == 0)``. `tensors` removes conversions to numbers: ``x.item() + 1`` becomes ``x + 1``. What may not be a
tensor is described in words instead: ``<flag, as a tensor of booleans>``.

The program is read as a syntax tree and never run, so `is_number` and `is_list` answer only what the tree shows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from functools import reduce

_BOOLEAN = frozenset({"all", "any", "isfinite", "isinf", "isnan"})
"""Methods that return booleans."""

_NO_TENSORS = (
    ast.List, ast.Tuple, ast.Dict, ast.Set, ast.JoinedStr, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp,
    ast.DictComp,
)  # fmt: skip

_OF_NUMBERS = frozenset({"all", "any", "max", "min", "round", "sorted", "tolist", "numpy"})
"""Functions and methods that take numbers out of tensors, and are not undone here."""


def condition(test: ast.expr) -> str:
    """Return a test as code without ``and``, ``or``, ``not``, chained comparisons, ``in``, ``.item()`` and conversions.

    What may not be a tensor is described in words instead: ``<flag, as a tensor of booleans>``.
    """
    return ast.unparse(_truth(test))


def in_words(node: ast.AST, what: str) -> ast.expr:
    """Return a placeholder that describes an unknown part in words."""
    return ast.Name(f"<{ast.unparse(node)}, as {what}>")


def tensors(node: ast.expr, *, read: bool = True) -> ast.expr:
    """Return an expression in which tensors stay tensors: without ``.item()``, ``float`` and ``int``.

    If it was not `read` there, it may also be a number.
    """
    tensor: ast.expr = _Tensors(read=read).visit(deepcopy(node))
    return tensor


def is_boolean(node: ast.expr) -> bool:
    """Return whether an expression returns a boolean, so that ``and`` and ``or`` of it do too."""
    match node:
        case ast.BoolOp(values=values):
            return all(map(is_boolean, values))
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in ("bool", "any", "all", "isinstance")
        case ast.Call(func=ast.Attribute(value=tensor, attr=method)):
            return method in _BOOLEAN or (method == "item" and is_boolean(tensor))
    return False


def _truth(node: ast.expr) -> ast.expr:
    match node:
        case ast.Constant(value=value):
            return ast.Constant(bool(value))
        case ast.BoolOp(op=op, values=values):
            return _combined([*map(_truth_of_part, values)], ast.BitAnd() if isinstance(op, ast.And) else ast.BitOr())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _opposite(operand)
        case ast.Compare(left=left, ops=ops, comparators=others):
            operands = [left, *others]
            return _combined([*map(_comparison, operands, ops, others)], ast.BitAnd())
        case ast.Call(func=ast.Name(id="bool"), args=[tensor]):
            return _truth(tensor)
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[]):
            return _truth(tensor)
        case ast.Call(func=ast.Attribute(attr=method)) if method in _BOOLEAN:
            return tensors(node)
    if isinstance(node, _NO_TENSORS):
        return in_words(node, "a tensor of booleans")
    return _or_words(node, ast.Compare(tensors(node), [ast.NotEq()], [ast.Constant(0)]))


def _truth_of_part(node: ast.expr) -> ast.expr:
    """Return one of several tests as a tensor; a bare name may not be a tensor and is described in words."""
    named = node.operand if isinstance(node, ast.UnaryOp) else node
    return in_words(node, "a tensor of booleans") if isinstance(named, ast.Name | ast.Attribute) else _truth(node)


def _opposite(node: ast.expr) -> ast.expr:
    truth = _truth(node)
    match truth:
        case ast.Constant(value=value):
            return ast.Constant(not value)
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[ast.Constant(value=0)]):
            return ast.Compare(left, [ast.Eq()], [ast.Constant(0)])
        case ast.Compare() if not any(isinstance(part, ast.Call | ast.Subscript) for part in ast.walk(truth)):
            return ast.Compare(truth, [ast.Eq()], [ast.Constant(0)])  # ~ of a Python bool is a number
    return ast.UnaryOp(ast.Invert(), truth)


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    match op, right:
        case ast.In(), ast.Tuple(elts=[_, *_] as each) | ast.List(elts=[_, *_] as each) | ast.Set(elts=each):
            return _combined([_comparison(left, ast.Eq(), one) for one in each], ast.BitOr())
        case ast.NotIn(), ast.Tuple(elts=[_, *_] as each) | ast.List(elts=[_, *_] as each) | ast.Set(elts=each):
            return _combined([_comparison(left, ast.NotEq(), one) for one in each], ast.BitAnd())
    whole = ast.Compare(left, [op], [right])
    if isinstance(op, ast.In | ast.NotIn | ast.Is | ast.IsNot):
        return in_words(whole, "a tensor of booleans")
    return _or_words(whole, ast.Compare(tensors(left), [op], [tensors(right)]))


def _or_words(node: ast.expr, rewritten: ast.expr) -> ast.expr:
    """Return `rewritten`, or the node in words if a function in it takes numbers out of tensors."""
    return rewritten if keeps_tensors(rewritten) else in_words(node, "a tensor of booleans")


def keeps_tensors(node: ast.expr) -> bool:
    """Return whether no function in an expression takes numbers out of tensors."""
    for part in ast.walk(node):
        match part:
            case ast.Call(func=ast.Name(id=name), args=[_, *_]) if name in _OF_NUMBERS:
                return False
            case ast.Call(func=ast.Attribute(attr="tolist" | "numpy")):
                return False
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math" | "np" | "numpy"))):
                return False
    return True


class _Tensors(ast.NodeTransformer):
    def __init__(self, *, read: bool) -> None:
        self._read = read

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[]):
                return tensor
            case ast.Call(func=ast.Name(id="float" | "int"), args=[ast.Constant() | ast.Call(func=ast.Name(id="len"))]):
                return node
            case ast.Call(func=ast.Name(id="float"), args=[tensor]):
                return tensor
            case ast.Call(func=ast.Name(id="int"), args=[tensor]):
                if not self._read:
                    tensor = ast.Call(ast.Attribute(ast.Name("torch"), "as_tensor"), [tensor], [])
                return ast.Call(ast.Attribute(tensor, "long"), [], [])
        return node


def _combined(parts: list[ast.expr], op: ast.operator) -> ast.expr:
    return reduce(lambda left, right: ast.BinOp(left, op, right), parts)


# What the program itself shows about a name: a number, or a list and its contents

_LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.JoinedStr)


def is_number(node: ast.AST, tree: ast.AST) -> bool:
    """Return whether an expression of the program `tree` is a Python integer, whatever the data are."""
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
            values = _assigned_values(name, tree)
            return bool(values) and all(
                not isinstance(one, ast.Name | ast.BinOp) and is_number(one, tree) for one in values
            )
    return False


def is_list(node: ast.expr, tree: ast.AST) -> bool:
    """Return whether an expression is clearly a list, a tuple or a text, and not a tensor."""
    match node:
        case ast.Name(id=name):
            values = _assigned_values(name, tree)
            return bool(values) and all(not isinstance(one, ast.Name) and is_list(one, tree) for one in values)
        case ast.Constant(value=value):
            return isinstance(value, str)
    return isinstance(node, _LISTS)


def has_numbers_only(node: ast.expr, tree: ast.AST) -> bool:
    """Return whether an expression is a list of numbers that never changes."""
    if isinstance(node, ast.Name):
        values = _assigned_values(node.id, tree)
        return len(values) == 1 and not _is_changed(node.id, tree) and has_numbers_only(values[0], ast.Module([], []))
    if not isinstance(node, ast.List | ast.Tuple):
        return False
    return all(isinstance(one, ast.Constant) and type(one.value) in (int, float) for one in node.elts)


def _assigned_values(name: str, tree: ast.AST) -> list[ast.expr]:
    """Return all values that the program assigns to a name; empty if one of its assignments is not understood."""
    values: dict[int, ast.expr] = {}
    for part in ast.walk(tree):
        match part:
            case ast.Assign(targets=targets, value=value):
                values.update((id(one), of) for target in targets for one, of in _targets_and_values(target, value))
            case (
                ast.For(target=target, iter=ast.Call(func=ast.Name(id="range")))
                | ast.comprehension(target=target, iter=ast.Call(func=ast.Name(id="range")))
            ):
                values[id(target)] = ast.Constant(0)
    set_here = [
        part
        for part in ast.walk(tree)
        if (isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store))
        or (isinstance(part, ast.arg) and part.arg == name)
    ]
    return [values[id(one)] for one in set_here] if all(id(one) in values for one in set_here) else []


def _targets_and_values(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match target, value:
        case (ast.Tuple(elts=targets), ast.Tuple(elts=values)) if len(targets) == len(values):
            yield from zip(targets, values, strict=True)
        case _:
            yield target, value


def _is_changed(name: str, tree: ast.AST) -> bool:
    """Return whether anything in a list is set or deleted, or a method of it is called."""
    for part in ast.walk(tree):
        match part:
            case ast.Attribute(value=ast.Name(id=of)) if of == name:
                return True
            case ast.Subscript(value=ast.Name(id=of), ctx=ast.Store() | ast.Del()) if of == name:
                return True
    return False
