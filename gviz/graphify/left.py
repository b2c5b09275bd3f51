"""A value that leaves the graph as a Python object: what to go on with instead."""

from __future__ import annotations

import ast
import builtins

from gviz.graphify.advice import Advice, code, operand
from gviz.graphify.condition import condition, in_words, is_boolean, tensors
from gviz.graphify.construct import Construct
from gviz.graphify.known import has_numbers_only
from gviz.graphify.windows import sliced

_KINDS = {"boolean": "a Python bool", "integer": "a Python int", "number": "a Python number",
          "array": "an array of numpy", "index": "an index of Python's"}  # fmt: skip
_READERS = frozenset({"item", "tolist", "numpy"})
"""Methods of a tensor that give its values."""

_OUTSIDE = frozenset({"math", "cmath", "numpy"})
"""Modules whose functions take numbers."""

_OF_ONE = ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil", "log2", "log10")
_MATH = {*((name, 1) for name in _OF_ONE), ("atan2", 2), ("hypot", 2)}
"""Functions of ``math`` that ``torch`` has, each with how many numbers it takes."""

_OF_SEVERAL = frozenset({"any", "all", "max", "min", "sorted", "sum"})


def left(found: Construct, what: str) -> Advice:
    """The advice where a value leaves the graph; `what` is how it was read."""
    node = found.node
    kind = _KINDS.get(what, f"a Python {what}")
    why = f"the value leaves the graph as {kind}, which a static graph keeps as a constant"
    if what in ("integer", "number", "index") and (part := sliced(found, why)):
        return part
    if isinstance(node, ast.Subscript) and what == "index":
        return Advice(why, (_element(node, found),))
    imported = _imported(found)
    if isinstance(node, ast.Call) and _reads_within(node, imported):
        outside = f"leave {code(node.func)} out of the graph: call it before the graph runs, or after it"
        return Advice(f"{code(node.func)} looks at a value, which a static graph keeps as a constant", (outside,))
    return Advice(why, (_in_tensors(node, imported) or _in_words(node, imported),))


def _in_tensors(node: ast.AST, imported: dict[str, str]) -> str:
    """The same computation on tensors; empty where it is not known."""
    match node:
        case ast.Call(
            func=ast.Name(id="any" | "all" as name),
            args=[ast.GeneratorExp(elt=each, generators=[ast.comprehension(target=one, iter=values, ifs=[])])],
        ):
            return f"torch.stack([torch.as_tensor({condition(each)}) for {code(one)} in {code(values)}]).{name}()"
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[a, b], keywords=[]):
            a, b, sign = tensors(a), tensors(b), ast.Gt() if name == "max" else ast.Lt()
            return f"torch.where({code(ast.Compare(b, [sign], [a]))}, {code(b)}, {code(a)})"
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[values], keywords=[]):
            return f"{_stacked(values)}.{name}()"
        case ast.Call(func=ast.Name(id="sorted"), args=[values], keywords=[]):
            return f"torch.sort({_stacked(values)}).values"
        case ast.Call(func=function, args=[*given]):
            return _of_math(_origin(function, imported), given)
    return ""


def _element(node: ast.Subscript, found: Construct) -> str:
    """An element at an index that is a tensor; one of no dimension is read, also where a tensor is indexed."""
    if not isinstance(node.ctx, ast.Load):
        return f"keep a tensor in place of {code(node.value)}, and a mask of the elements that change"
    if isinstance(node.slice, ast.Tuple):
        return "make the index a tensor of one dimension: <index>.reshape(1)"
    items = in_words(node.value, "a tensor")
    if has_numbers_only(node.value, found.path[0]):
        items = ast.Call(ast.Attribute(ast.Name("torch"), "as_tensor"), [node.value], [])
    place = ast.Call(ast.Attribute(tensors(node.slice), "reshape"), [ast.Constant(1)], [])
    return code(ast.Subscript(ast.Subscript(items, place), ast.Constant(0)))


def _of_math(function: str, given: list[ast.expr]) -> str:
    """The function of ``torch`` that is one of ``math``; empty where there is none."""
    module, _, name = function.rpartition(".")
    if module != "math" or (name, len(given)) not in _MATH:
        return ""
    return f"torch.{name}({', '.join(f'torch.as_tensor({code(one)})' if given[1:] else code(one) for one in given)})"


def _stacked(values: ast.expr) -> str:
    """The elements of a tensor or a list, among which there may be numbers, as one tensor."""
    return f"torch.stack([torch.as_tensor(one) for one in {code(tensors(values))}])"


def _in_words(node: ast.AST, imported: dict[str, str]) -> str:
    """What to do with the tensor, where nothing is known that gives the same."""
    match node:
        case ast.JoinedStr() | ast.FormattedValue():
            return "return the tensor, and write it out after the graph has run"
        case ast.Call(func=ast.Name(id=name)) if name in _OF_SEVERAL:
            return "make one tensor of the values, and compute it of that with functions of torch"
        case ast.BoolOp(op=op, values=[first, *_]) if not is_boolean(node):
            sides = ("<the others>", "<it>") if isinstance(op, ast.And) else ("<it>", "<the others>")
            return f"choose one of the values, each as a tensor: torch.where({condition(first)}, {', '.join(sides)})"
    return f"go on with the tensor {_tensor(node, imported)}; return it, and read it after the graph has run"


def _reads_within(call: ast.Call, imported: dict[str, str]) -> bool:
    """Whether what is called reads the value while it works, as ``optimizer.step()`` does and ``clip_grad_norm_(…)``;
    ``x.item()``, ``float(x)`` and ``np.asarray(x)`` are there to read it."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name)) if name in imported:
            return False
        case ast.Attribute(attr=name):
            return name not in _READERS
        case ast.Name(id=name):
            return not hasattr(builtins, name) and _origin(call.func, imported).partition(".")[0] not in _OUTSIDE
    return False


def _tensor(node: ast.AST, imported: dict[str, str]) -> str:
    match node:
        case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return condition(node)
        case ast.BinOp(left=ast.List() | ast.Tuple() | ast.Constant(), right=count):
            return code(count)
        case ast.BinOp(left=count, right=ast.List() | ast.Tuple() | ast.Constant(value=str())):
            return code(count)
    return code(operand(node, frozenset(imported)))


def _imported(found: Construct) -> dict[str, str]:
    """The names that the program has imported, each with what it stands for: ``sqrt`` for ``math.sqrt``."""
    names: dict[str, str] = {}
    for part in ast.walk(found.path[0]):
        match part:
            case ast.Import(names=modules):
                names.update((one.asname or one.name, one.name) for one in modules)
            case ast.ImportFrom(module=str(module), names=things):
                names.update((one.asname or one.name, f"{module}.{one.name}") for one in things)
    return names


def _origin(function: ast.expr, imported: dict[str, str]) -> str:
    """Where a function that is called comes from, as ``math.sqrt``; empty if it is not imported."""
    match function:
        case ast.Name(id=name):
            return imported.get(name, "")
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in imported:
            return f"{imported[name]}.{attr}"
    return ""
