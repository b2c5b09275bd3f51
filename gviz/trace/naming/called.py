"""Which operations an expression calls, as far as its text tells."""

from __future__ import annotations

import ast

_OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("add",), ast.Sub: ("sub",), ast.Mult: ("mul",), ast.Div: ("div",), ast.Pow: ("pow",), ast.USub: ("neg",),
    ast.MatMult: ("mm", "mv", "dot"),
}  # fmt: skip
_CALLED: dict[str, tuple[str, ...]] = {"matmul": _OPERATORS[ast.MatMult]} | dict.fromkeys(
    ("tensor", "as_tensor", "from_numpy", "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange",
     "linspace", "eye"),
    ("tensor",),
)  # fmt: skip
_GIVING = {"clip_grad_norm_": ("linalgvectornorm", "norm")}
"""Functions that go on computing with what they give: the operation that makes it."""

STORING = ("copyslices", "copy", "fill", "indexput", "setitem")
"""The operations by which ``b[0] = v`` writes."""

MOVING = ("data", "runningmean", "runningvar")
"""The operations by which a batch norm moves what it remembers, after it has made what it gives."""

_FOLDING = frozenset(("sum", "reduce", "accumulate", "fsum", "prod"))
"""Functions of Python by which many steps make one result."""


def operation_of(part: ast.expr | ast.AugAssign) -> tuple[str, ...]:
    """What the one operation of an expression is called."""
    match part:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return _CALLED.get(name.removesuffix("_like"), (plain(name),))
        case ast.Compare(ops=[_]):
            return ("gt", "ge", "lt", "le", "eq", "ne")
        case ast.BinOp(op=op) | ast.UnaryOp(op=op) | ast.AugAssign(op=op):
            return _OPERATORS.get(type(op), ())
        case ast.Attribute(attr=name):
            return (plain(name),)
        case ast.Subscript(slice=index) if not isinstance(index, ast.Tuple):
            return ("select", "slice", "index", "getitem")
    return ()


def folds(part: ast.expr) -> bool:
    """Whether it calls a function of Python by which many steps make one result."""
    match part:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id="functools"), attr=name)):
            return name in _FOLDING
    return False


def gives(part: ast.expr) -> tuple[str, ...]:
    """The operations of which the last makes what it gives, where it calls a function that goes on computing."""
    match part:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return _GIVING.get(name, ())
    return ()


def plain(name: str) -> str:
    """What a function and its operation are called alike: ``log_softmax``, ``LogSoftmax``, ``log_softmax_``."""
    return name.replace("_", "").lower()
