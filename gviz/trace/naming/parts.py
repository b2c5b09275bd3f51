"""Which expressions make the parts of a value: the items of a list, what a generator gives one after another."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gviz.events import KeyEntry
from gviz.trace.naming.bindings import plain

TURN: KeyEntry = (-1, 0, "")
"""The step into what is given one after another, of which the text does not tell the place."""

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""What shows up as a whole in a stack where it only begins to take its items."""

_OF_TENSORS = ("Tensor", "Parameter", "Buffer", "Variable")
"""How the names of classes end whose objects are tensors."""

_GATHERING = frozenset(("list", "tuple", "iter"))
"""Functions of Python that give the very items of what they are given."""


def parts_of(value: ast.expr) -> Sequence[tuple[KeyEntry, ast.expr]]:
    """The expressions that make the parts of what an expression gives; none of what is made as a whole."""
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
    """The expressions that make fields of an object: ``Batch(x=..., y=...)``, which is read by the same names."""
    match value:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), keywords=items) if is_of_class(name):
            return [((place, len(items), item.arg), item.value) for place, item in enumerate(items) if item.arg]
    return ()


def is_of_class(name: str) -> bool:
    """Whether a function is called as classes are, ``OneHotCategorical``, but for those whose objects are tensors."""
    return name[:1].isupper() and not name.isupper() and not name.endswith(_OF_TENSORS)


def called_in_turns(value: ast.expr) -> tuple[str, ...]:
    """Which function it calls once for each item, if it does: ``f`` of ``map(f, xs)``, and of ``list(map(f, xs))``."""
    match value:
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id=name) | ast.Attribute(attr=name), _, *_]):
            return (plain(name),)
        case ast.Call(func=ast.Name(id="map"), args=[_, _, *_]):
            return ("<lambda>",)
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _GATHERING:
            return called_in_turns(inner)
    return ()


def put(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """What becomes an attribute by ``setattr(net, 'w', x)`` or ``net.register_buffer('w', x)``, and its name."""
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
