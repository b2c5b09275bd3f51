"""A value that leaves the graph as a Python object: what to go on with instead."""

from __future__ import annotations

import ast
from copy import deepcopy

from gviz.graphify.advice import Advice, code, operand
from gviz.graphify.condition import condition
from gviz.graphify.construct import Construct

_KINDS = {"boolean": "a Python bool", "integer": "a Python int", "number": "a Python number",
          "array": "an array of numpy", "index": "an index of Python's"}  # fmt: skip
_FUNCTIONS = {
    ("max", 1): "{}.max()", ("max", 2): "torch.maximum({}, {})",
    ("min", 1): "{}.min()", ("min", 2): "torch.minimum({}, {})",
    ("sorted", 1): "torch.sort({}).values",
}  # fmt: skip
"""What builtin functions of so many arguments are on tensors."""
_MATH = frozenset(
    {"sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil", "log2", "log10", "atan2", "hypot"}
)


def left(found: Construct, what: str) -> Advice:
    """The advice where a value leaves the graph; `what` is how it was read."""
    node, bound = found.node, found.holder(ast.Slice)
    if isinstance(bound, ast.Slice) and what in ("integer", "number", "index"):
        return _sliced(bound, found)
    kind = _KINDS.get(what, f"a Python {what}")
    why = f"the value leaves the graph as {kind}, which a static graph keeps as a constant"
    if isinstance(node, ast.JoinedStr | ast.FormattedValue):
        return Advice(why, ("return the tensor, and write it out after the graph has run",))
    if code_instead := _in_tensors(node, _modules(found)):
        return Advice(why, (code_instead,))
    return Advice(
        why, (f"go on with the tensor {_tensor(node, found)}; return it, and read it after the graph has run",)
    )


def _in_tensors(node: ast.AST, modules: frozenset[str]) -> str:
    """The same computation on tensors; empty where it is not known."""
    match node:
        case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.GeneratorExp() as each]):
            return f"({test}).{name}()" if (test := _vectorized(each)) else ""
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if (name, len(args)) in _FUNCTIONS:
            return _FUNCTIONS[name, len(args)].format(*map(_as_tensor, args))
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=function), args=args) if name in modules:
            return f"torch.{function}({', '.join(map(code, args))})" if function in _MATH else ""
        case ast.Subscript(value=ast.Name() as items, slice=place):
            return f"torch.as_tensor({code(items)})[{code(place)}]   # a tensor in place of the list"
    return ""


def _as_tensor(node: ast.expr) -> str:
    return f"torch.tensor({code(node)})" if isinstance(node, ast.Constant) else code(node)


def _vectorized(each: ast.GeneratorExp) -> str:
    """What a generator says of each element, said of all at once: ``v < 0`` for v in x is ``x < 0``."""
    match each.generators:
        case [ast.comprehension(target=ast.Name(id=name), iter=all_of_them, ifs=[])]:
            return condition(_Renamed(name, all_of_them).visit(deepcopy(each.elt)))
    return ""


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, by: ast.expr) -> None:
        self._name, self._by = name, by

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._by if node.id == self._name else node


def _sliced(bound: ast.Slice, found: Construct) -> Advice:
    part = found.holder(ast.Subscript)
    x = code(part.value) if isinstance(part, ast.Subscript) else "x"
    tests = [
        f"(torch.arange(len({x})) {sign} {code(operand(end))})"
        for sign, end in ((">=", bound.lower), ("<", bound.upper))
        if end is not None
    ]
    return Advice(
        "the number of elements depends on the data, and every size in a static graph is fixed",
        (f"keep the size and use a mask of the first dimension: {' & '.join(tests) or 'mask'}",),
    )


def _tensor(node: ast.AST, found: Construct) -> str:
    match node:
        case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return condition(node)
        case ast.BinOp(left=ast.List() | ast.Tuple() | ast.Constant(), right=count):
            return code(count)
        case ast.BinOp(left=count, right=ast.List() | ast.Tuple() | ast.Constant(value=str())):
            return code(count)
    return code(operand(node, _modules(found)))


def _modules(found: Construct) -> frozenset[str]:
    """The names under which the program has imported modules."""
    imports = [part for part in ast.walk(found.path[0]) if isinstance(part, ast.Import)]
    return frozenset(alias.asname or alias.name for part in imports for alias in part.names)
