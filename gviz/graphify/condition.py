"""A test of the program's as a tensor of booleans: what ``torch.where`` takes, and no bool of Python's."""

from __future__ import annotations

import ast
from copy import deepcopy
from functools import reduce


def condition(test: ast.expr) -> str:
    """The code of a test without ``and``, ``or``, ``not``, chained comparisons, ``.item()``, ``float`` and ``bool``."""
    return ast.unparse(_Tensors().visit(deepcopy(test)))


class _Tensors(ast.NodeTransformer):
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        return _joined(node.values, ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr())

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return ast.UnaryOp(ast.Invert(), node.operand) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        pairs = zip(operands, node.ops, operands[1:], strict=False)
        return _joined([ast.Compare(left, [op], [right]) for left, op, right in pairs], ast.BitAnd())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[]):
                return tensor
            case ast.Call(func=ast.Name(id="float" | "bool"), args=[tensor]):
                return tensor
        return node


def _joined(parts: list[ast.expr], op: ast.operator) -> ast.expr:
    return reduce(lambda left, right: ast.BinOp(left, op, right), parts)
