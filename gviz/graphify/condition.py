"""A test of the program's as a tensor of booleans: what ``torch.where`` takes, and no bool of Python's."""

from __future__ import annotations

import ast
from copy import deepcopy
from functools import reduce

_BOOLEAN = frozenset({"all", "any", "isfinite", "isinf", "isnan"})
"""Methods that give booleans."""

_NO_TENSORS = (
    ast.List, ast.Tuple, ast.Dict, ast.Set, ast.JoinedStr, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp,
    ast.DictComp,
)  # fmt: skip

_OF_NUMBERS = frozenset({"all", "any", "max", "min", "round", "sorted", "tolist", "numpy"})
"""Functions and methods that take numbers out of tensors, and are not undone here."""


def condition(test: ast.expr) -> str:
    """The code of a test without ``and``, ``or``, ``not``, chained comparisons, ``in``, ``.item()`` and conversions.

    What cannot be told to be a tensor is said in words in the place of it: ``<flag, as a tensor of booleans>``.
    """
    return ast.unparse(_truth(test))


def in_words(node: ast.AST, what: str) -> ast.expr:
    """A part that is not known, in words where its code would stand."""
    return ast.Name(f"<{ast.unparse(node)}, as {what}>")


def tensors(node: ast.expr, *, read: bool = True) -> ast.expr:
    """An expression in which tensors stay tensors: without ``.item()``, ``float`` and ``int``.

    What is not `read` where the program stands may be a number as well.
    """
    tensor: ast.expr = _Tensors(read=read).visit(deepcopy(node))
    return tensor


def is_boolean(node: ast.expr) -> bool:
    """Whether an expression gives a boolean, so that ``and`` and ``or`` of it do, and none of its values."""
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
            return _joined([*map(_part, values)], ast.BitAnd() if isinstance(op, ast.And) else ast.BitOr())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _opposite(operand)
        case ast.Compare(left=left, ops=ops, comparators=others):
            operands = [left, *others]
            return _joined([*map(_compared, operands, ops, others)], ast.BitAnd())
        case ast.Call(func=ast.Name(id="bool"), args=[tensor]):
            return _truth(tensor)
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[]):
            return _truth(tensor)
        case ast.Call(func=ast.Attribute(attr=method)) if method in _BOOLEAN:
            return tensors(node)
    if isinstance(node, _NO_TENSORS):
        return in_words(node, "a tensor of booleans")
    return _unless_unknown(node, ast.Compare(tensors(node), [ast.NotEq()], [ast.Constant(0)]))


def _part(node: ast.expr) -> ast.expr:
    """One of several tests: what has no more than a name may as well be no tensor."""
    named = node.operand if isinstance(node, ast.UnaryOp) else node
    return in_words(node, "a tensor of booleans") if isinstance(named, ast.Name | ast.Attribute) else _truth(node)


def _opposite(node: ast.expr) -> ast.expr:
    told = _truth(node)
    match told:
        case ast.Constant(value=value):
            return ast.Constant(not value)
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[ast.Constant(value=0)]):
            return ast.Compare(left, [ast.Eq()], [ast.Constant(0)])
        case ast.Compare() if not any(isinstance(part, ast.Call | ast.Subscript) for part in ast.walk(told)):
            return ast.Compare(told, [ast.Eq()], [ast.Constant(0)])  # of a bool of Python's ~ is a number
    return ast.UnaryOp(ast.Invert(), told)


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    match op, right:
        case ast.In(), ast.Tuple(elts=[_, *_] as each) | ast.List(elts=[_, *_] as each) | ast.Set(elts=each):
            return _joined([_compared(left, ast.Eq(), one) for one in each], ast.BitOr())
        case ast.NotIn(), ast.Tuple(elts=[_, *_] as each) | ast.List(elts=[_, *_] as each) | ast.Set(elts=each):
            return _joined([_compared(left, ast.NotEq(), one) for one in each], ast.BitAnd())
    whole = ast.Compare(left, [op], [right])
    if isinstance(op, ast.In | ast.NotIn | ast.Is | ast.IsNot):
        return in_words(whole, "a tensor of booleans")
    return _unless_unknown(whole, ast.Compare(tensors(left), [op], [tensors(right)]))


def _unless_unknown(node: ast.expr, told: ast.expr) -> ast.expr:
    """What is told of a node, unless a function in it takes numbers out of tensors."""
    return told if is_told(told) else in_words(node, "a tensor of booleans")


def is_told(node: ast.expr) -> bool:
    """Whether no function in an expression takes numbers out of tensors."""
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


def _joined(parts: list[ast.expr], op: ast.operator) -> ast.expr:
    return reduce(lambda left, right: ast.BinOp(left, op, right), parts)
