"""Where the value of an expression changes: ``break change norm(w.grad) * 2``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain
from math import inf

import numpy as np

from gviz.errors import GvizError, NotStored
from gviz.plain_text import clipped, told
from gviz.trace.stops import STRETCH, Hit, Hits
from gviz.trace.timeline import Timeline
from gviz.values import Array
from gviz.where import guarded
from gviz.where.budget import Budget
from gviz.where.condition import holds
from gviz.where.of_tensors import FACTS, METHODS
from gviz.where.operations import TYPES
from gviz.where.place import Aspect, place, split_aspect
from gviz.where.spelling import node_of
from gviz.where.stop import AtChange, Computed, Stop
from gviz.words.expressions import called_with, dotted, evaluated, parsed
from gviz.words.names import NamedNodes


def hits_of(timeline: Timeline, stop: Stop) -> Hits:
    """The moments at which a stop that is no finding fits; GvizError for what is no expression."""
    return Changes(timeline, stop, stop.at) if isinstance(stop.at, Computed) else Hits(timeline, stop)


class Changes(Hits):
    """The moments at which an expression is another value than at the moment before, or, if it is to hold, is true.

    Only what changes one of its tensors can change it, so that it is evaluated there alone. GvizError for an expression
    that is none, or names no tensor.
    """

    def __init__(self, timeline: Timeline, stop: Stop, asked: Computed) -> None:
        super().__init__(timeline, stop)
        self._names = NamedNodes(timeline)
        self._asked = asked
        stops = [Stop(stop.head, AtChange(aspect, place(name))) for name, aspect in _named(asked.expression)]
        self._parts = [Hits(timeline, one) for one in stops]

    def _forget(self) -> None:
        super()._forget()
        self._untold: set[int] = set()

    def untold(self, n: float = inf) -> int:
        """At how many moments by `n`, of those that were looked at, numbers were needed that were not stored."""
        return sum(1 for moment in self._untold if moment <= n)

    def missing(self) -> str:
        """What it needs and was not stored, where all that it names is there for the first time."""
        there = max(next(part.after(0), Hit(0)).n for part in self._parts)
        try:
            self._value(there)
        except NotStored as error:
            return error.what
        return ""

    def nowhere(self) -> str:
        """The first of its names that no node has: then it is nothing anywhere."""
        return next(filter(None, (part.nowhere() for part in self._parts)), "")

    def means(self, node: int) -> bool:
        """No node: an expression has no place."""
        return False

    def _search(self, start: int, end: int) -> Iterator[Hit]:
        stretch = range(start // STRETCH * STRETCH, end)
        moments = {hit.n for hit in chain.from_iterable(part.within(stretch) for part in self._parts)}
        for n in sorted(moments):
            if start <= n < end and self._is_met(n):
                hit = self._tested(n, self._timeline.at(n).node, self._timeline.event(n))
                if hit is not None:
                    yield hit

    def _is_met(self, n: int) -> bool:
        try:
            if not self._asked.holds:
                return not _same(self._value(n - 1), self._value(n))
            value = self._value(n)
        except NotStored:
            self._untold.add(n)
            return False
        return value is not None and holds(value)

    def _value(self, n: int) -> Array | None:
        """What the expression is at a moment; None where it is nothing there, NotStored where it cannot be told."""
        try:
            result = evaluated(self._timeline, self._names, n, self._asked.expression)
            holds_texts = isinstance(result, list | tuple | dict | set) and Budget({}).extent(result).bulky
            return np.asarray(told(result) if holds_texts else result)
        except NotStored:
            raise
        except GvizError:
            return None


def _same(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    numbers = one.dtype.kind in "fc" and other.dtype.kind in "fc"
    return np.array_equal(one, other, equal_nan=numbers)


def _named(text: str) -> Iterable[tuple[str, Aspect]]:
    """The tensors of an expression, as places, and what of each it reads; GvizError where there are none."""
    tree = parsed(text)
    tensors = _Tensors(guarded.bound_names(tree))
    try:
        guarded.compiled(tensors.visit(tree))
    except guarded.Refused as refusal:
        raise GvizError(f"{clipped(text, 40)} is no expression", why=str(refusal), exit_code=2) from None
    if not tensors.named:
        raise GvizError(f"{clipped(text, 40)} names no tensor, and never changes", exit_code=2)
    return tensors.named


class _Tensors(ast.NodeTransformer):
    """Collects what an expression names, as places, and puts plain names there; some may be no tensors."""

    def __init__(self, bound: frozenset[str]) -> None:
        self.named: dict[tuple[str, Aspect], None] = {}
        self._known = bound | {"np"}

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """``net.fc1.weight.grad.max``: what is left of the path without methods, and without ``.grad``."""
        path = dotted(node)
        if not path or path[0] in self._known:
            return self.generic_visit(node)  # type: ignore[return-value]  # an attribute stays one
        end = len(path)
        while end > 1 and path[end - 1] in METHODS | FACTS:
            end -= 1
        name, aspect = split_aspect(".".join(path[:end]))
        read = self._met(name, aspect or "value")
        for attribute in path[end:]:
            read = ast.Attribute(read, attribute, ast.Load())
        return read

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A tensor's value, unless the expression binds the name itself, or it is a type."""
        return node if node.id in self._known | TYPES else self._met(node.id, "value")

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """What is called is a function, whatever is called so."""
        return called_with(self, node)

    def _met(self, name: str, aspect: Aspect) -> ast.expr:
        numbered = node_of(name)
        self.named[f"#{numbered}" if numbered else name, aspect] = None
        return ast.Name("tensor", ast.Load())
