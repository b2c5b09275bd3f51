"""Which expressions of a source text become variables, and what each expression calls. Read from text, never run.

Example: in ``loss, acc = f(model(x)), 0`` the expression ``f(model(x))`` is bound to ``loss``. An expression that
creates several values, such as a list display or a comprehension, binds its parts one by one (`parts_of`).

Limits: statements are read one at a time; what a variable holds later is not tracked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gviz.events import KeyEntry, KeyPath
from gviz.result_tensors import as_taken
from gviz.source import parsing
from gviz.source.call_stack import Frame

Key = int | str | KeyEntry
"""How a program takes a part of a value: by position (negative: from the end), by name, or `TURN`."""

Range = tuple[int, int, int, int]
"""``(line, end_line, column, end_column)`` as in `Frame`: lines from 1, columns in UTF-8 bytes from 0."""

_STILL_ITSELF = frozenset((
    "to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "short", "bool", "cpu", "cuda",
    "contiguous", "flatten", "ravel", "reshape", "view", "expand", "expand_as", "conj", "positive", "coalesce",
    "sum_to_size", "detach", "requires_grad_", "retain_grad", "item", "tolist", "numpy", "eval", "train",
))  # fmt: skip
"""Methods that may return their own object, or exactly its numbers, without an operation."""

_RESHAPING = frozenset((
    "t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "resize_", "resize_as_", "as_strided_",
))  # fmt: skip
"""In-place methods that change a tensor's shape: the result keeps its name."""

_CHOOSING = frozenset((
    "max", "min", "sorted", "iter", "any", "all", "reversed", "map", "filter", "zip", "enumerate", "list",
    "tuple", "set", "frozenset", "dict",
))  # fmt: skip
"""Python functions that compute with their arguments and return something else."""

LARGEST_SOURCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the value of one expression goes.

    `target` is the target of an assignment. It is None if the expression is returned: then the caller's statement
    decides, and `element` is the part of the return value. `exact` is False for the start of a chain whose end is
    assigned; `taken` is then the part of it that is assigned, with None for steps that the text does not show. `lines`
    are those of the statement.

    An operation with a name in `called` is all that the expression creates. Any other operation may be an intermediate
    step; where the expression `folds` a sequence, all but the last are. `gives` names operations of a call that
    continues to compute after its result; the last of these creates the result. `stored` is the range of the target's
    text, or of what it is part of, if that is an item of something.
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
    """Return all expressions of a source text that become variables; none if it is too large or not valid Python."""
    if len(text) > LARGEST_SOURCE:
        return {}
    try:
        by_range: dict[Range, Binding] = {}
        for node in ast.walk(parsing.program(text)):
            for where, binding in _of_node(node):
                by_range.setdefault(where, binding)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return by_range


def range_of(frame: Frame) -> Range:
    """Return the range of the expression that a frame was running."""
    return frame.line, frame.end_line, frame.column, frame.end_column


def _of_node(node: ast.AST) -> Iterator[tuple[Range, Binding]]:
    match node:
        case ast.Assign(targets=[target, *_], value=value):
            yield from _assigned(target, value, node)
            yield from _written(target, node)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _assigned(target, value, node)
        case ast.AugAssign(target=target):
            operation = operation_of(node)
            yield (
                where_stands(node),
                Binding(name_of(target), (), (), True, _lines(node), operation, stored=_item(target)),
            )
            yield from _written(target, node)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr=name)) as value) if name in _RESHAPING:
            yield from (
                (where, Binding(name_of(target), (), (), True, _lines(node), operation_of(value)))
                for where in _ranges(value)
            )
        case ast.Return(value=ast.expr() as value) | ast.Lambda(body=value):
            yield from _value_bindings(value, None, (), node)
        case ast.Yield(value=ast.expr() as value):
            yield from _value_bindings(value, None, (TURN,), node)
        case ast.Expr(value=ast.Call() as call):
            for name, value in put(call):
                yield from _value_bindings(value, name, (), node)
        case ast.For(target=target, iter=value):
            yield from _taken_one_by_one(target, value, node)
        case ast.ListComp(generators=loops) | ast.SetComp(generators=loops) | ast.GeneratorExp(generators=loops):
            yield from _comprehended(loops, node)
        case ast.DictComp(generators=loops):
            yield from _comprehended(loops, node)


def _comprehended(loops: list[ast.comprehension], whole: ast.expr) -> Iterator[tuple[Range, Binding]]:
    for loop in loops:  # with several loops it is unknown which of them takes its items at the range of the whole
        yield from _taken_one_by_one(loop.target, loop.iter, whole if len(loops) == 1 else loop.iter)


def _taken_one_by_one(target: ast.expr, value: ast.expr, loop: ast.AST) -> Iterator[tuple[Range, Binding]]:
    """Yield what a loop takes items of. CPython reports it at the range of the loop, from 3.13 on at that of
    the value.
    """
    each = Each(target_of(target))
    match target, value:
        case ast.Tuple(elts=[_, one]), ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            yield from _taken_one_by_one(one, inner, value)
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=values) if len(targets) == len(values):
            for one, inner in zip(targets, values, strict=True):  # all start at the range of the `zip` call
                yield from _valued(inner, Each(target_of(one)), (), inner)
        case _, ast.Call(func=ast.Name(id="reversed" | "list" | "tuple" | "iter"), args=[inner]):
            yield from _taken_one_by_one(target, inner, value)
        case _ if functions := mapped_function(value):
            for where in (where_stands(loop), where_stands(value)):
                yield where, Binding(each, (TURN,), (), True, _lines(loop), functions)
        case _:
            yield where_stands(loop), Binding(each, (), (), True, _lines(loop))
            yield from _value_bindings(value, each, (), loop)
    if isinstance(target, ast.Tuple | ast.List):  # an item is unpacked when it is stored
        yield where_stands(target), Binding(target_of(target), (), (), True, _lines(loop))


def _written(target: ast.expr, statement: ast.AST) -> Iterator[tuple[Range, Binding]]:
    """Yield item assignments: they write to the variable itself, if it is a tensor."""
    for one in target.elts if isinstance(target, ast.Tuple | ast.List) else (target,):
        if isinstance(one, ast.Subscript):
            item = _item(one.value)
            yield (
                where_stands(one),
                Binding(name_of(one.value), (), (), True, _lines(statement), STORING, stored=item),
            )


def _item(target: ast.expr) -> Range | None:
    """Return the range of an item expression; None for any other expression."""
    return where_stands(target) if isinstance(target, ast.Subscript) else None


def _assigned(target: ast.expr, value: ast.expr, statement: ast.AST) -> Iterator[tuple[Range, Binding]]:
    match target, value:
        case ast.Tuple(elts=targets) | ast.List(elts=targets), ast.Tuple(elts=values) | ast.List(elts=values):
            if len(targets) == len(values) and not any(isinstance(part, ast.Starred) for part in (*targets, *values)):
                for one, its_value in zip(targets, values, strict=True):
                    yield from _assigned(one, its_value, statement)
        case _:
            yield from _value_bindings(value, target_of(target), (), statement, _item(target))
            if isinstance(target, ast.Tuple | ast.List):  # a tensor is unpacked when it is stored
                functions = mapped_function(value)
                element = (TURN,) if functions else ()
                yield where_stands(target), Binding(target_of(target), element, (), True, _lines(statement), functions)


def _value_bindings(
    value: ast.expr, target: Target | None, element: KeyPath, statement: ast.AST, stored: Range | None = None
) -> Iterator[tuple[Range, Binding]]:
    """Yield what the target (or caller) gets as its part `element`: one value, or one created part by part."""
    if isinstance(value, ast.IfExp):
        yield from _value_bindings(value.body, target, element, statement, stored)
        yield from _value_bindings(value.orelse, target, element, statement, stored)
    elif parts := parts_of(value):
        for step, part in parts:
            yield from _value_bindings(part, target, (*element, step), statement, stored)
    elif functions := mapped_function(value):
        yield where_stands(value), Binding(target, (*element, TURN), (), True, _lines(statement), functions)
    else:
        for step, part in fields_of(value):
            yield from _value_bindings(part, target, (*element, step), statement, stored)
        yield from _valued(value, target, element, statement, stored)


def _valued(
    value: ast.expr,
    target: Target | None,
    element: KeyPath,
    statement: ast.AST,
    stored: Range | None = None,
) -> Iterator[tuple[Range, Binding]]:
    """Yield the ranges at which the value of an expression, or the start of its chain, can appear in a stack."""
    exact = True
    for part, taken in _chain(value):
        for where in _ranges(part):
            traits = operation_of(part), folds(part), gives(part)
            yield where, Binding(target, element, taken, exact, _lines(statement), *traits, stored)
        exact = False


def _chain(value: ast.expr) -> Iterator[tuple[ast.expr, tuple[Key | None, ...]]]:
    """Yield ``f(x).g()[0]`` and the expressions it is built from, end first, each with the part that is taken."""
    taken: tuple[Key | None, ...] = ()
    while not isinstance(value, COMPREHENSIONS):
        match value:
            case ast.Call(func=ast.Name(id="next")):
                taken = (TURN, *taken)
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


def _ranges(part: ast.expr) -> Iterator[Range]:
    yield where_stands(part)
    match part:
        case ast.Call(func=ast.Attribute(attr=attr, end_lineno=line, end_col_offset=end)) if line != part.lineno:
            # CPython moves the start of a call in a multi-line chain to the method's name.
            start = (end or 0) - len(attr.encode())
            yield line or 0, part.end_lineno or 0, start, part.end_col_offset or 0
            yield line or 0, part.end_lineno or 0, start, end or 0


def where_stands(node: ast.AST) -> Range:
    """Return the range of an expression."""
    line, end_line, column, end_column = (
        getattr(node, name) for name in ("lineno", "end_lineno", "col_offset", "end_col_offset")
    )
    return line, end_line, column, end_column


def _lines(node: ast.AST) -> tuple[int, int]:
    return where_stands(node)[:2]


_LONGEST_NAME, _LONGEST_TARGET = 80, 40
"""The most characters of a variable, and of another target such as ``self.cache["x"]``, that count as a name."""


@dataclass(frozen=True, slots=True)
class Each:
    """What a loop assigns the items of a value to, one after another."""

    target: Target | None


Target = str | tuple["Target | None", ...] | Each
"""What a value is assigned to: a name ("" for a target without one), or several with None for ``*rest``."""


def target_of(target: ast.expr) -> Target:
    """Return what the text of a target assigns to."""
    match target:
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            return tuple(None if isinstance(one, ast.Starred) else target_of(one) for one in targets)
    return name_of(target)


def name_of(target: ast.expr) -> str:
    """Return a target as it is written, or "" if that is too long for a name."""
    text = ast.unparse(target)
    return text if len(text) <= (_LONGEST_NAME if isinstance(target, ast.Name) else _LONGEST_TARGET) else ""


def name_at(target: Target | None, path: KeyPath) -> str:
    """Return the name of the part of a value at `path`: its own variable, or ``r.values``, ``r[0]`` of an outer one."""
    named, rest = _reached(target, path)
    if not isinstance(named, str) or not named or TURN in rest:
        return ""
    name = f"{named}{as_taken(rest)}"
    return name if not rest or len(name) <= _LONGEST_NAME else ""


def unpacked_count_at(target: Target | None, path: KeyPath) -> int:
    """Return how many variables take the values that are created one after another at `path`; 0 for none."""
    reached, rest = _reached(target, path)
    alike = isinstance(reached, tuple) and None not in reached and rest[:1] == (TURN,)
    return len(reached) if alike and isinstance(reached, tuple) else 0


def _reached(target: Target | None, path: KeyPath) -> tuple[Target | None, KeyPath]:
    """Return the target of the part at `path`, and the rest of the path there."""
    for depth, (place, count, _) in enumerate(path):
        match target:
            case Each(target=one):
                target = one
            case tuple() if path[depth] != TURN:
                target = _of_targets(target, place, count)
            case _:
                return target, path[depth:]
    return target, ()


def names_in(target: Target | None) -> Iterator[str]:
    """Yield all names of a target."""
    match target:
        case Each(target=one):
            yield from names_in(one)
        case tuple():
            for one in target:
                yield from names_in(one)
        case str() if target:
            yield target


def _of_targets(targets: tuple[Target | None, ...], place: int, count: int) -> Target | None:
    """Return the target of one of `count` parts; None for the parts that ``*rest`` takes."""
    if None not in targets:
        return targets[place] if count == len(targets) else None
    star = targets.index(None)
    after = place - count + len(targets)
    return targets[place] if place < star else targets[after] if star < after < len(targets) else None


TURN: KeyEntry = (-1, 0, "")
"""The step into values that are created one after another; the text does not show the position."""

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Expressions that appear in a stack with their whole range when they start to take items."""

_OF_TENSORS = ("Tensor", "Parameter", "Buffer", "Variable")
"""Suffixes of the names of tensor classes."""

_GATHERING = frozenset(("list", "tuple", "iter"))
"""Python functions that return the same items as their argument."""


def parts_of(value: ast.expr) -> Sequence[tuple[KeyEntry, ast.expr]]:
    """Return the expressions that create the parts of an expression's value; none if it is created as a whole."""
    match value:
        case ast.Tuple(elts=items) | ast.List(elts=items) if not any(isinstance(one, ast.Starred) for one in items):
            return [((place, len(items), ""), item) for place, item in enumerate(items)]
        case ast.Dict(keys=keys, values=values):
            return [
                ((0, 0, key.value), item)
                for key, item in zip(keys, values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=items):
            return [((0, 0, item.arg), item.value) for item in items if item.arg]
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
            return [(TURN, item)]
        case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() | ast.ListComp() as inner]) if (
            name in _GATHERING
        ):
            return parts_of(inner)
    return ()


def fields_of(value: ast.expr) -> Sequence[tuple[KeyEntry, ast.expr]]:
    """Return the expressions that become fields of an object: ``Batch(x=..., y=...)``, later read by the same names."""
    match value:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), keywords=items) if is_of_class(name):
            return [((place, len(items), item.arg), item.value) for place, item in enumerate(items) if item.arg]
    return ()


def is_of_class(name: str) -> bool:
    """Return whether a name looks like a class, ``OneHotCategorical``, but not like a tensor class."""
    return name[:1].isupper() and not name.isupper() and not name.endswith(_OF_TENSORS)


def mapped_function(value: ast.expr) -> tuple[str, ...]:
    """Return the function that is called once per item: ``f`` in ``map(f, xs)`` and in ``list(map(f, xs))``."""
    match value:
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id=name) | ast.Attribute(attr=name), _, *_]):
            return (plain(name),)
        case ast.Call(func=ast.Name(id="map"), args=[_, _, *_]):
            return ("<lambda>",)
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _GATHERING:
            return mapped_function(inner)
    return ()


def put(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield what becomes an attribute by ``setattr(net, 'w', x)`` or ``net.register_buffer('w', x)``, with its name."""
    match call:
        case (
            ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str() as name), value])
            | ast.Call(func=ast.Attribute(attr="__setattr__"), args=[owner, ast.Constant(value=str() as name), value])
            | ast.Call(
                func=ast.Attribute(value=owner, attr="register_buffer" | "register_parameter"),
                args=[ast.Constant(value=str() as name), value, *_],
            )
        ):
            yield f"{ast.unparse(owner)}.{name}", value


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
"""Functions that continue to compute after their result: the operation that creates the result."""

STORING = ("copyslices", "copy", "fill", "indexput", "setitem")
"""The operations with which ``b[0] = v`` writes."""

MOVING = ("data", "runningmean", "runningvar")
"""The operations with which a batch norm updates its running statistics, after its result."""

_FOLDING = frozenset(("sum", "reduce", "accumulate", "fsum", "prod"))
"""Python functions that produce one result in many steps."""


def operation_of(part: ast.expr | ast.AugAssign) -> tuple[str, ...]:
    """Return the possible names of the single operation of an expression."""
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
    """Return whether it calls a Python function that produces one result in many steps."""
    match part:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id="functools"), attr=name)):
            return name in _FOLDING
    return False


def gives(part: ast.expr) -> tuple[str, ...]:
    """Return the operations whose last one creates the result of a function that continues to compute."""
    match part:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return _GIVING.get(name, ())
    return ()


def plain(name: str) -> str:
    """Return the common name of a function and its operation: ``log_softmax``, ``LogSoftmax``, ``log_softmax_``."""
    return name.replace("_", "").lower()
