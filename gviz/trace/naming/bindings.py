"""Which expressions of a source text become variables: read from the text alone, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from gviz import syntax
from gviz.events import KeyPath
from gviz.site import Frame
from gviz.trace.naming.targets import Each, Target, name_of, target_of

Key = int | str
"""What a program takes a part of a value by: its place, from the end if negative, or its name."""

Range = tuple[int, int, int, int]
"""``(line, end_line, column, end_column)`` as in `Frame`: lines from 1, columns in UTF-8 bytes from 0."""

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

_STILL_ITSELF = frozenset((
    "to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "short", "bool", "cpu", "cuda",
    "contiguous", "flatten", "ravel", "reshape", "view", "expand", "expand_as", "conj", "positive", "coalesce",
    "sum_to_size", "detach", "requires_grad_", "retain_grad", "item", "tolist", "numpy", "eval", "train",
))  # fmt: skip
"""Methods that may give what they are called on, or its very numbers, without any operation."""

_RESHAPING = frozenset((
    "t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "resize_", "resize_as_", "as_strided_",
))  # fmt: skip
"""Methods after which a tensor has another shape: what it is from there on has its name."""

_CHOOSING = frozenset((
    "max", "min", "sorted", "next", "iter", "any", "all", "reversed", "map", "filter", "zip", "enumerate", "list",
    "tuple", "set", "frozenset", "dict",
))  # fmt: skip
"""Functions of Python that compute with what they are given, and give back something else."""

_FOLDING = frozenset(("sum", "reduce", "accumulate", "fsum", "prod"))
"""Functions of Python by which many steps make one result."""

_MAKING_THEIR_OWN = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""What shows up as a whole in a stack where it only begins to take its items."""

LARGEST_SOURCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the value of one expression goes.

    That is the `target` of an assignment; it is None if the expression is returned, so that the caller's statement
    decides, as the part `element` of what it returns. `exact` is False for the start of a chain whose end is assigned:
    then `taken` is the part of it that is, in which None is one that the text does not tell. `lines` are those of the
    statement. An operation that is called as `called` says is all that the expression makes; any other may be a step
    on the way, and all but the last are where it `folds` a sequence; `gives` are the operations of which the last makes
    the value of a call that goes on computing after that, none of any other. A target, or what it is a part of, that is
    an item of something is `stored` where its text stands.
    """

    target: Target | None
    element: KeyPath
    taken: tuple[Key | None, ...]
    exact: bool
    lines: tuple[int, int]
    called: tuple[str, ...] = ()
    folds: bool = False
    gives: tuple[str, ...] = ()
    stored: Range | None = None


@lru_cache(maxsize=64)
def bindings(text: str) -> dict[Range, Binding]:
    """All expressions of a source that become variables; none if it cannot be parsed or is larger than any program."""
    if len(text) > LARGEST_SOURCE:
        return {}
    try:
        found: dict[Range, Binding] = {}
        for node in ast.walk(syntax.program(text)):
            for where, binding in _of_node(node):
                found.setdefault(where, binding)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return found


def range_of(frame: Frame) -> Range:
    """The expression a frame was running."""
    return frame.line, frame.end_line, frame.column, frame.end_column


def _of_node(node: ast.AST) -> Iterator[tuple[Range, Binding]]:
    match node:
        case ast.Assign(targets=[target, *_], value=value):
            yield from _assigned(target, value, node)
            yield from _written(target, node)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _assigned(target, value, node)
        case ast.AugAssign(target=target, op=op):
            called = _OPERATORS.get(type(op), ())
            yield where_stands(node), Binding(name_of(target), (), (), True, _lines(node), called, stored=_item(target))
            yield from _written(target, node)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=name)) as value) if name in _RESHAPING:
            yield from (
                (where, Binding(name_of(target), (), (), True, _lines(node), _called(value)))
                for where in _ranges(value)
            )
        case ast.Return(value=ast.expr() as value) | ast.Lambda(body=value):
            yield from _returned(value, (), node)
        case ast.For(target=target, iter=value):
            yield from _taken_one_by_one(target, value, node)
        case ast.ListComp(generators=loops) | ast.SetComp(generators=loops) | ast.GeneratorExp(generators=loops):
            yield from _comprehended(loops, node)
        case ast.DictComp(generators=loops):
            yield from _comprehended(loops, node)


def _comprehended(loops: list[ast.comprehension], whole: ast.expr) -> Iterator[tuple[Range, Binding]]:
    for loop in loops:  # which of several takes its items where the whole shows up is not told
        yield from _taken_one_by_one(loop.target, loop.iter, whole if len(loops) == 1 else loop.iter)


def _taken_one_by_one(target: ast.expr, value: ast.expr, loop: ast.AST) -> Iterator[tuple[Range, Binding]]:
    """What a loop takes the items of: CPython begins that where the loop stands as a whole, from 3.13 on its value."""
    each = Each(target_of(target))
    match target, value:
        case ast.Tuple(elts=[_, one]), ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            yield from _taken_one_by_one(one, inner, value)
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=values) if len(targets) == len(values):
            for one, inner in zip(targets, values, strict=True):  # all begin where the call of `zip` stands
                yield from _valued(inner, Each(target_of(one)), (), inner)
        case _, ast.Call(func=ast.Name(id="reversed" | "list" | "tuple" | "iter"), args=[inner]):
            yield from _taken_one_by_one(target, inner, value)
        case _:
            yield where_stands(loop), Binding(each, (), (), True, _lines(loop))
            yield from _valued(value, each, (), loop)
    if isinstance(target, ast.Tuple | ast.List):  # an item is taken apart as it is stored
        yield where_stands(target), Binding(target_of(target), (), (), True, _lines(loop))


def _written(target: ast.expr, statement: ast.AST) -> Iterator[tuple[Range, Binding]]:
    """Storing an item is a write into the variable itself, if that is a tensor."""
    for one in target.elts if isinstance(target, ast.Tuple | ast.List) else (target,):
        if isinstance(one, ast.Subscript):
            within = _item(one.value)
            yield (
                where_stands(one),
                Binding(name_of(one.value), (), (), True, _lines(statement), STORING, stored=within),
            )


def _item(target: ast.expr) -> Range | None:
    """Where the text of an item of something stands; None for what is none."""
    return where_stands(target) if isinstance(target, ast.Subscript) else None


def _assigned(target: ast.expr, value: ast.expr, statement: ast.AST) -> Iterator[tuple[Range, Binding]]:
    match target, value:
        case ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple(elts=values) | ast.List(elts=values):
            if len(targets) == len(values) and not any(isinstance(part, ast.Starred) for part in (*targets, *values)):
                for one, its_value in zip(targets, values, strict=True):
                    yield from _assigned(one, its_value, statement)
        case _:
            yield from _valued(value, target_of(target), (), statement, _item(target))
            if isinstance(target, ast.Tuple | ast.List):  # a tensor is taken apart as it is stored
                yield where_stands(target), Binding(target_of(target), (), (), True, _lines(statement))


def _returned(value: ast.expr, element: KeyPath, statement: ast.AST) -> Iterator[tuple[Range, Binding]]:
    """What an expression that is returned, or an item of one, binds: the place of each item is known."""
    match value:
        case ast.Tuple(elts=items) | ast.List(elts=items) if not any(isinstance(one, ast.Starred) for one in items):
            for place, item in enumerate(items):
                yield from _returned(item, (*element, (place, len(items), "")), statement)
        case _:
            yield from _valued(value, None, element, statement)


def _valued(
    value: ast.expr,
    target: Target | None,
    element: KeyPath,
    statement: ast.AST,
    stored: Range | None = None,
) -> Iterator[tuple[Range, Binding]]:
    """The ranges under which the value of an expression, or the start of its chain, can show up in a stack."""
    if isinstance(value, ast.IfExp):
        yield from _valued(value.body, target, element, statement, stored)
        yield from _valued(value.orelse, target, element, statement, stored)
        return
    exact = True
    for part, taken in _chain(value):
        for where in _ranges(part):
            called, folds, gives = _called(part), _folds(part), _gives(part)
            yield where, Binding(target, element, taken, exact, _lines(statement), called, folds, gives, stored)
        exact = False


def _chain(value: ast.expr) -> Iterator[tuple[ast.expr, tuple[Key | None, ...]]]:
    """``f(x).g()[0]`` and what it is made of from its end, with what is taken of each: of ``f(x).g()`` part 0."""
    taken: tuple[Key | None, ...] = ()
    while not isinstance(value, _MAKING_THEIR_OWN):
        match value:
            case ast.Call(func=ast.Name(id=name)) if name in _CHOOSING:
                taken = (None, *taken)
        yield value, taken
        match value:
            case ast.Call(func=ast.Attribute(value=before, attr=name)):
                value = before
                taken = taken if name in _STILL_ITSELF else (None, *taken)
            case ast.Attribute(value=before, attr=name):
                value, taken = before, (name, *taken)
            case ast.Subscript(value=before, slice=index):
                value, taken = before, (_key(index), *taken)
            case _:
                return


def _key(index: ast.expr) -> Key | None:
    match index:
        case ast.Constant(value=int() | str() as key) if not isinstance(key, bool):
            return key
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as place)):
            return -place
    return None


def _called(part: ast.expr) -> tuple[str, ...]:
    """What the one operation of an expression is called, as far as its text tells."""
    match part:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return _CALLED.get(name.removesuffix("_like"), (plain(name),))
        case ast.Compare(ops=[_]):
            return ("gt", "ge", "lt", "le", "eq", "ne")
        case ast.BinOp(op=op) | ast.UnaryOp(op=op):
            return _OPERATORS.get(type(op), ())
        case ast.Attribute(attr=name):
            return (plain(name),)
        case ast.Subscript(slice=index) if not isinstance(index, ast.Tuple):
            return ("select", "slice", "index", "getitem")
    return ()


def _folds(part: ast.expr) -> bool:
    match part:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id="functools"), attr=name)):
            return name in _FOLDING
    return False


def _gives(part: ast.expr) -> tuple[str, ...]:
    match part:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return _GIVING.get(name, ())
    return ()


def plain(name: str) -> str:
    """What a function and its operation are called alike: ``log_softmax``, ``LogSoftmax``, ``log_softmax_``."""
    return name.replace("_", "").lower()


def _ranges(part: ast.expr) -> Iterator[Range]:
    yield where_stands(part)
    match part:
        case ast.Call(func=ast.Attribute(attr=attr, end_lineno=line, end_col_offset=end)) if line != part.lineno:
            # CPython moves the start of a call in a chain over several lines to the method's name.
            start = (end or 0) - len(attr.encode())
            yield line or 0, part.end_lineno or 0, start, part.end_col_offset or 0
            yield line or 0, part.end_lineno or 0, start, end or 0


def where_stands(node: ast.AST) -> Range:
    """Where an expression stands."""
    line, end_line, column, end_column = (
        getattr(node, name) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset")
    )
    return line, end_line, column, end_column


def _lines(node: ast.AST) -> tuple[int, int]:
    return where_stands(node)[:2]
