"""A value that leaves the graph as a Python object: what to go on with instead."""

from __future__ import annotations

import ast
import builtins
from copy import deepcopy

from gviz.graphify.advice import Advice, code, operand
from gviz.graphify.condition import condition
from gviz.graphify.construct import Construct
from gviz.graphify.windows import sliced

_KINDS = {"boolean": "a Python bool", "integer": "a Python int", "number": "a Python number",
          "array": "an array of numpy", "index": "an index of Python's"}  # fmt: skip
_READERS = frozenset({"item", "tolist", "numpy"})
"""Methods of a tensor that give its values."""

_MATH = frozenset({"sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil", "log2", "log10"})
_OF_TWO = frozenset({"atan2", "hypot"})
_ELEMENTWISE = (
    ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Name, ast.Constant,
    ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip


def left(found: Construct, what: str) -> Advice:
    """The advice where a value leaves the graph; `what` is how it was read."""
    node = found.node
    kind = _KINDS.get(what, f"a Python {what}")
    why = f"the value leaves the graph as {kind}, which a static graph keeps as a constant"
    if what in ("integer", "number", "index") and (part := sliced(found, why)):
        return part
    if isinstance(node, ast.Call) and _reads_within(node, _modules(found)):
        outside = f"leave {code(node.func)} out of the graph: call it before the graph runs, or after it"
        return Advice(f"{code(node.func)} looks at a value, which a static graph keeps as a constant", (outside,))
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
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[a, b], keywords=[]):
            sign = ">" if name == "max" else "<"
            return f"torch.where({code(ast.Compare(b, [_SIGNS[sign]], [a]))}, {code(b)}, {code(a)})"
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[values], keywords=[]):
            return f"{stacked}.{name}()" if (stacked := _stacked(values)) else ""
        case ast.Call(func=ast.Name(id="sorted"), args=[values], keywords=[]):
            return f"torch.sort({stacked}).values" if (stacked := _stacked(values)) else ""
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=function), args=[x]) if name in modules:
            return f"torch.{function}({code(x)})" if function in _MATH else ""
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=function), args=[x, y]) if name in modules:
            given = f"torch.as_tensor({code(x)}), torch.as_tensor({code(y)})"
            return f"torch.{function}({given})" if function in _OF_TWO else ""
        case ast.Subscript(value=ast.Name() as items, slice=place):
            return f"torch.as_tensor({code(items)})[{code(place)}]   # a tensor in place of the list, of numbers"
    return ""


_SIGNS: dict[str, ast.cmpop] = {">": ast.Gt(), "<": ast.Lt()}


def _stacked(values: ast.expr) -> str:
    """A tensor, or a list of tensors, as one tensor; empty for what has numbers among them, or is not known."""
    match values:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) if any(
            isinstance(one, ast.Constant | ast.Starred) for one in elements
        ):
            return ""
        case ast.List() | ast.Tuple() | ast.ListComp():
            return f"torch.stack({code(values)})"
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return f"torch.stack(tuple({code(values)}))"
    return ""


def _vectorized(each: ast.GeneratorExp) -> str:
    """What a generator says of each element, said of all at once: ``v < 0`` for v in x is ``x < 0``."""
    match each.generators:
        case [ast.comprehension(target=ast.Name(id=name), iter=values, ifs=[])] if stacked := _stacked(values):
            if all(isinstance(part, _ELEMENTWISE) for part in ast.walk(each.elt)):
                by = ast.parse(stacked, mode="eval").body
                return condition(_Renamed(name, by).visit(deepcopy(each.elt)))
    return ""


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, by: ast.expr) -> None:
        self._name, self._by = name, by

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._by if node.id == self._name else node


def _reads_within(call: ast.Call, modules: frozenset[str]) -> bool:
    """Whether what is called reads the value while it works, as ``optimizer.step()`` does and ``clip_grad_norm_(…)``;
    ``x.item()``, ``float(x)`` and ``np.asarray(x)`` are there to read it."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name)) if name in modules:
            return False
        case ast.Attribute(attr=name):
            return name not in _READERS
        case ast.Name(id=name):
            return not hasattr(builtins, name)
    return False


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
