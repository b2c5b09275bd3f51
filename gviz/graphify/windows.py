"""A slice whose ends depend on the data: as an index of fixed length where it has one, else as a mask."""

from __future__ import annotations

import ast
from collections import Counter

from gviz.graphify.advice import Advice, code
from gviz.graphify.condition import is_told, tensors
from gviz.graphify.construct import Construct
from gviz.graphify.known import is_list, is_number

_SIZE = "the number of elements depends on the data, and every size in a static graph is fixed"
_ALL = ast.Slice()


def sliced(found: Construct, why: str) -> Advice | None:
    """The advice where a slice is read; `why` is that of a value that leaves the graph. None where there is none."""
    part, tree = _subscript(found), found.path[0]
    if part is None:
        return None
    index = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
    moving = {n: one for n, one in enumerate(index) if isinstance(one, ast.Slice) and not _is_fixed(one, tree)}
    if not moving:
        return None
    if is_list(part.value, tree):
        return Advice(why, ("use a tensor in place of the list, and a mask of its elements in place of the slice",))
    windows = {n: window for n, one in moving.items() if (window := _window(one))}
    instead = _taken(part.value, index, windows, tree) if len(windows) == len(moving) else ""
    if instead and all(is_number(length, tree) for _, length in windows.values()):
        return Advice(why, (f"{instead}   # which must be within the tensor",))
    unsure = [length for _, length in windows.values() if not is_number(length, tree)]
    numbers = " and ".join(dict.fromkeys(map(code, unsure)))
    return Advice(
        _SIZE, (_masked(part.value, index, moving), *([f"or, if {numbers} is fixed: {instead}"] if instead else []))
    )


def _subscript(found: Construct) -> ast.Subscript | None:
    """What is sliced: the part itself that was read, or that in whose slice it is."""
    if isinstance(found.node, ast.Subscript):
        return found.node
    bound = found.holder(ast.Slice)
    within = [part for part in found.path if isinstance(part, ast.Subscript)]
    for part in within:
        if part.slice is bound or (isinstance(part.slice, ast.Tuple) and bound in part.slice.elts):
            return part
    return None


def _is_fixed(bound: ast.Slice, tree: ast.AST) -> bool:
    return all(one is None or is_number(one, tree) for one in (bound.lower, bound.upper, bound.step))


def _window(bound: ast.Slice) -> tuple[ast.expr, ast.expr] | None:
    """Where a part begins, and how long it is, if the end is the beginning and something more.

    Past the end a slice is shorter, and an index an error.
    """
    if bound.step or not bound.lower or not bound.upper or not is_told(bound.lower):
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
    """What is added up in an expression, and how often each; whole numbers as one under no name."""
    match end:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            terms = _terms(left)
            terms.update(_terms(right))
            return terms
        case ast.Constant(value=int(number)):
            return Counter({"": number})
    return Counter({code(end): 1})


def _taken(x: ast.expr, index: list[ast.expr], windows: dict[int, tuple[ast.expr, ast.expr]], tree: ast.AST) -> str:
    """The part of a tensor that has these windows; empty where it is not known which dimensions they are of."""
    places = {n: _places(*window) for n, window in windows.items()}
    others = [one for n, one in enumerate(index) if n not in places]
    if len(places) == 1 and (all(map(_is_basic, others)) or all(is_number(one, tree) for one in others)):
        return code(_part(x, [places.get(n, one) for n, one in enumerate(index)]))
    for n, place in places.items():  # two tensors in one index would be taken together, element by element
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


def _masked(x: ast.expr, index: list[ast.expr], moving: dict[int, ast.Slice]) -> str:
    """A mask of the dimension in which the slice is, in code where it is known what to compare."""
    (n, bound), *more = moving.items()
    ends = [end for end in (bound.lower, bound.upper) if end is not None]
    if more or bound.step or not all(map(is_told, ends)):
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
    """Where a slice ends, counted from the front: one below zero counts from the back."""
    match end:
        case ast.Constant():
            return end
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(back))) if back:
            return ast.BinOp(size, ast.Sub(), ast.Constant(back))
    below = ast.Compare(end, [ast.Lt()], [ast.Constant(0)])
    return ast.BinOp(end, ast.Add(), ast.BinOp(size, ast.Mult(), below))
