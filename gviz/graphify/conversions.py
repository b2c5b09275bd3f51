"""Conversions of a tensor to a Python value, and what to write instead: a number, an element, a slice."""

from __future__ import annotations

import ast
import builtins
from collections import Counter

from gviz.graphify.construct import Advice, Construct, code, operand
from gviz.graphify.tensor_code import (
    condition,
    has_numbers_only,
    in_words,
    is_boolean,
    is_list,
    is_number,
    keeps_tensors,
    tensors,
)

_KINDS = {"boolean": "a Python bool", "integer": "a Python int", "number": "a Python number",
          "array": "an array of numpy", "index": "an index of Python's"}  # fmt: skip
_READERS = frozenset({"item", "tolist", "numpy"})
"""Methods of a tensor that return its values."""

_OUTSIDE = frozenset({"math", "cmath", "numpy"})
"""Modules whose functions take numbers."""

_OF_ONE = ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil", "log2", "log10")
_MATH = {*((name, 1) for name in _OF_ONE), ("atan2", 2), ("hypot", 2)}
"""Functions of ``math`` that ``torch`` also has, with the number of arguments."""

_OF_SEVERAL = frozenset({"any", "all", "max", "min", "sorted", "sum"})


def conversion(construct: Construct, what: str) -> Advice:
    """Return the advice for a value that leaves the graph; `what` is how it was converted."""
    node = construct.node
    kind = _KINDS.get(what, f"a Python {what}")
    why = f"the value leaves the graph as {kind}, which a static graph keeps as a constant"
    if what in ("integer", "number", "index") and (part := sliced(construct, why)):
        return part
    if isinstance(node, ast.Subscript) and what == "index":
        return Advice(why, (_element(node, construct),))
    imported = _imported(construct)
    if isinstance(node, ast.Call) and _reads_internally(node, imported):
        outside = f"leave {code(node.func)} out of the graph: call it before the graph runs, or after it"
        return Advice(f"{code(node.func)} looks at a value, which a static graph keeps as a constant", (outside,))
    return Advice(why, (_as_tensors(node, imported) or _as_words(node, imported),))


def _as_tensors(node: ast.AST, imported: dict[str, str]) -> str:
    """Return the same computation on tensors; empty if unknown."""
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
        case ast.Call(func=function, args=[*arguments]):
            return _of_math(_origin(function, imported), arguments)
    return ""


def _element(node: ast.Subscript, construct: Construct) -> str:
    """Return code for an element at a tensor index; a 0-dimensional index is read, even if a tensor is indexed."""
    if not isinstance(node.ctx, ast.Load):
        return f"keep a tensor in place of {code(node.value)}, and a mask of the elements that change"
    if isinstance(node.slice, ast.Tuple):
        return "make the index a tensor of one dimension: <index>.reshape(1)"
    items = in_words(node.value, "a tensor")
    if has_numbers_only(node.value, construct.path[0]):
        items = ast.Call(ast.Attribute(ast.Name("torch"), "as_tensor"), [node.value], [])
    place = ast.Call(ast.Attribute(tensors(node.slice), "reshape"), [ast.Constant(1)], [])
    return code(ast.Subscript(ast.Subscript(items, place), ast.Constant(0)))


def _of_math(function: str, args: list[ast.expr]) -> str:
    """Return the ``torch`` function equivalent to one of ``math``; empty if there is none."""
    module, _, name = function.rpartition(".")
    if module != "math" or (name, len(args)) not in _MATH:
        return ""
    return f"torch.{name}({', '.join(f'torch.as_tensor({code(one)})' if args[1:] else code(one) for one in args)})"


def _stacked(values: ast.expr) -> str:
    """Return code that stacks the elements of a tensor or a list, possibly with numbers, into one tensor."""
    return f"torch.stack([torch.as_tensor(one) for one in {code(tensors(values))}])"


def _as_words(node: ast.AST, imported: dict[str, str]) -> str:
    """Return what to do with the tensor, in words, if no equivalent code is known."""
    match node:
        case ast.JoinedStr() | ast.FormattedValue():
            return "return the tensor, and write it out after the graph has run"
        case ast.Call(func=ast.Name(id=name)) if name in _OF_SEVERAL:
            return "make one tensor of the values, and compute it of that with functions of torch"
        case ast.BoolOp(op=op, values=[first, *_]) if not is_boolean(node):
            sides = ("<the others>", "<it>") if isinstance(op, ast.And) else ("<it>", "<the others>")
            return f"choose one of the values, each as a tensor: torch.where({condition(first)}, {', '.join(sides)})"
    return f"continue with the tensor {_tensor(node, imported)}; return it, and read it after the graph has run"


def _reads_internally(call: ast.Call, imported: dict[str, str]) -> bool:
    """Return whether the called function reads the value while it works, as ``optimizer.step()`` and
    ``clip_grad_norm_(…)`` do.

    ``x.item()``, ``float(x)`` and ``np.asarray(x)`` only convert it.
    """
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


def _imported(construct: Construct) -> dict[str, str]:
    """Return the imported names of the program and their meaning: ``sqrt`` for ``math.sqrt``."""
    names: dict[str, str] = {}
    for part in ast.walk(construct.path[0]):
        match part:
            case ast.Import(names=modules):
                names.update((one.asname or one.name, one.name) for one in modules)
            case ast.ImportFrom(module=str(module), names=things):
                names.update((one.asname or one.name, f"{module}.{one.name}") for one in things)
    return names


def _origin(function: ast.expr, imported: dict[str, str]) -> str:
    """Return the origin of a called function, such as ``math.sqrt``; empty if it is not imported."""
    match function:
        case ast.Name(id=name):
            return imported.get(name, "")
        case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in imported:
            return f"{imported[name]}.{attr}"
    return ""


# Slices whose ends depend on the data: an index of fixed length if possible, otherwise a mask

_SIZE = "the number of elements depends on the data, and every size in a static graph is fixed"
_ALL = ast.Slice()


def sliced(construct: Construct, why: str) -> Advice | None:
    """Return the advice for a slice with data-dependent ends, None if it is not one.

    `why` is the reason for a value that leaves the graph.
    """
    part, tree = _subscript(construct), construct.path[0]
    if part is None:
        return None
    index = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    moving = {n: one for n, one in enumerate(index) if isinstance(one, ast.Slice) and not _is_fixed(one, tree)}
    if not moving:
        return None
    if is_list(part.value, tree):
        return Advice(why, ("use a tensor in place of the list, and a mask of its elements in place of the slice",))
    windows = {n: window for n, one in moving.items() if (window := _window(one))}
    instead = _window_code(part.value, index, windows, tree) if len(windows) == len(moving) else ""
    if instead and all(is_number(length, tree) for _, length in windows.values()):
        return Advice(why, (f"{instead}   # which must be within the tensor",))
    unsure = [length for _, length in windows.values() if not is_number(length, tree)]
    numbers = " and ".join(dict.fromkeys(map(code, unsure)))
    return Advice(
        _SIZE, (_mask_code(part.value, index, moving), *([f"or, if {numbers} is fixed: {instead}"] if instead else []))
    )


def _subscript(construct: Construct) -> ast.Subscript | None:
    """Return the subscript that was read, or whose slice contains what was read."""
    if isinstance(construct.node, ast.Subscript):
        return construct.node
    bound = construct.holder(ast.Slice)
    subscripts = [part for part in construct.path if isinstance(part, ast.Subscript)]
    for part in subscripts:
        if part.slice is bound or (isinstance(part.slice, ast.Tuple) and bound in part.slice.elts):
            return part
    return None


def _is_fixed(bound: ast.Slice, tree: ast.AST) -> bool:
    return all(one is None or is_number(one, tree) for one in (bound.lower, bound.upper, bound.step))


def _window(bound: ast.Slice) -> tuple[ast.expr, ast.expr] | None:
    """Return start and length of a slice if its end is the start plus something.

    Past the end of a tensor, a slice is shorter, but an index is an error.
    """
    if bound.step or not bound.lower or not bound.upper or not keeps_tensors(bound.lower):
        return None
    lower = tensors(bound.lower)
    length, start = _terms(tensors(bound.upper)), _terms(lower)
    if isinstance(lower, ast.UnaryOp) or not start.keys() <= {*length, ""}:
        return None
    length.subtract(start)
    constant = length.pop("", 0)
    terms = "+".join(f"({one})" for one in length.elements())
    if any(times < 0 for times in length.values()) or (constant < 0 and not terms):
        return None
    many = f"{terms}{constant:+}" if terms and constant else terms or str(constant)
    return lower, ast.parse(many, mode="eval").body


def _terms(end: ast.expr) -> Counter[str]:
    """Return the terms of a sum with their counts; integers are added up under the key ""."""
    match end:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            terms = _terms(left)
            terms.update(_terms(right))
            return terms
        case ast.Constant(value=int(number)):
            return Counter({"": number})
    return Counter({code(end): 1})


def _window_code(
    x: ast.expr, index: list[ast.expr], windows: dict[int, tuple[ast.expr, ast.expr]], tree: ast.AST
) -> str:
    """Return code for the part of a tensor in these windows; empty if their dimensions are unknown."""
    places = {n: _places(*window) for n, window in windows.items()}
    others = [one for n, one in enumerate(index) if n not in places]
    if len(places) == 1 and (all(map(_is_basic, others)) or all(is_number(one, tree) for one in others)):
        return code(_part(x, [places.get(n, one) for n, one in enumerate(index)]))
    for n, place in places.items():  # two tensors in one index would be combined elementwise
        before, after = index[:n], index[n + 1 :]
        if any(map(_is_ellipsis, before)):
            before, counted = [ast.Constant(...)], after
            after = [_ALL] * len(after)
        else:
            before, counted, after = [_ALL] * n, before, []
        if not all(_is_basic(one) or is_number(one, tree) for one in counted):
            return ""
        x = _part(x, [*before, place, *after])
    rest = [_ALL if n in places else one for n, one in enumerate(index)]
    return code(x if all(code(one) in (":", "...") for one in rest) else _part(x, rest))


def _places(start: ast.expr, length: ast.expr) -> ast.expr:
    return ast.BinOp(start, ast.Add(), _arange(length))


def _part(x: ast.expr, index: list[ast.expr]) -> ast.expr:
    return ast.Subscript(x, index[0] if len(index) == 1 else ast.Tuple(index))


def _is_basic(one: ast.expr) -> bool:
    return isinstance(one, ast.Slice) or _is_ellipsis(one)


def _is_ellipsis(one: ast.expr) -> bool:
    return isinstance(one, ast.Constant) and one.value is ...


def _mask_code(x: ast.expr, index: list[ast.expr], moving: dict[int, ast.Slice]) -> str:
    """Return advice for a mask of the sliced dimension, as code if it is known what to compare."""
    (n, bound), *more = moving.items()
    ends = [end for end in (bound.lower, bound.upper) if end is not None]
    if more or bound.step or not all(map(keeps_tensors, ends)):
        return (
            "keep the size, and use a mask of what the slice takes in each dimension: torch.where(<mask>, <tensor>, 0)"
        )
    which = n - len(index) if any(map(_is_ellipsis, index[:n])) else n
    plain = all(isinstance(one, ast.Slice) or _is_ellipsis(one) for one in index)
    if which and not plain:
        return "keep the size, and use a mask of what the slice takes: torch.where(<mask>, <tensor>, 0)"
    shape = ast.Subscript(ast.Attribute(x, "shape"), ast.Constant(which))
    size = shape if which else ast.Call(ast.Name("len"), [x], [])
    tests = [
        f"({code(ast.Compare(_arange(size), [sign], [_from_front(tensors(end), size)]))})"
        for sign, end in ((ast.GtE(), bound.lower), (ast.Lt(), bound.upper))
        if end is not None
    ]
    named = {0: "the first dimension", -1: "the last dimension"}.get(which, f"dimension {which}")
    return f"keep the size and use a mask of {named}: {' & '.join(tests)}"


def _arange(length: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name("torch"), "arange"), [length], [])


def _from_front(end: ast.expr, size: ast.expr) -> ast.expr:
    """Return the end of a slice, counted from the front; negative ends count from the back."""
    match end:
        case ast.Constant():
            return end
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(back))) if back:
            return ast.BinOp(size, ast.Sub(), ast.Constant(back))
    below = ast.Compare(end, [ast.Lt()], [ast.Constant(0)])
    return ast.BinOp(end, ast.Add(), ast.BinOp(size, ast.Mult(), below))
