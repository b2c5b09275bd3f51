"""Parses changes as users write them: ``x = 5``, ``w[0, 1:] = 0``, ``grad z = 2``, ``x = -3..3``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from types import EllipsisType

import numpy as np

from gviz.errors import GvizError
from gviz.events import Edge
from gviz.source import parsing
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped
from gviz.values.value import Array

_FORM = re.compile(r"(?P<target>[^=]*[^=\s])\s*=\s*(?P<value>[^=].*)")
_GRAD = re.compile(r"grad\s+")
_INDEX = re.compile(r"\s*\[[^\[\]]*\]$")
_HINT = 'write "x = 5", "w[0, 1] = 0" or "grad z = 2"'
_RANGE_HINT = "a range has two finite numbers, and nothing else: x = -3..3"

Part = int | slice | EllipsisType
Number = bool | int | float
Numbers = Number | list["Numbers"]


@dataclass(frozen=True, slots=True)
class Change:
    """Sets an output's value, or its incoming gradient, to `numbers`; with `index`, only those elements."""

    node: int
    numbers: Numbers
    index: tuple[Part, ...] = ()
    of_gradient: bool = False
    output_nr: int = 0

    def applied(self, array: Array) -> Array:
        """Return a copy of `array` with the change. Raises GvizError if it does not fit."""
        changed = np.array(array)
        try:
            changed[self.index or ...] = _cast(self.numbers, array.dtype)
        except (ValueError, IndexError) as error:
            why = f"the tensor has shape {array.shape}: {error}"
            raise GvizError("this value does not fit", why=why, exit_code=2) from None
        return changed


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes of one array, in order."""

    each: tuple[Change, ...]

    def applied(self, array: Array) -> Array:
        """Return a copy of `array` with all changes. Raises GvizError if one does not fit."""
        for change in self.each:
            array = change.applied(array)
        return array


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a change as written: ``w`` at ``[0, 1]``, its value or its incoming gradient."""

    place: str
    index: str
    of_gradient: bool


def by_node(changes: Iterable[Change]) -> dict[int, dict[int, Changes]]:
    """Return the changes of each node, by output number."""
    changes_by_node: dict[int, dict[int, Changes]] = {}
    for change in changes:
        outputs = changes_by_node.setdefault(change.node, {})
        before = outputs.get(change.output_nr, Changes(()))
        outputs[change.output_nr] = Changes((*before.each, change))
    return changes_by_node


def parse_target(text: str, is_name: Callable[[str], bool]) -> Target:
    """Parse the text before the ``=`` of a change; `is_name` returns whether ``parts[1]`` is a tensor itself."""
    text = text.strip()
    after_grad = _GRAD.match(text)
    place = text[after_grad.end() :] if after_grad else text
    index = None if is_name(place.removesuffix(".grad")) else _INDEX.search(place)
    place = place[: index.start()] if index else place
    of_gradient = after_grad is not None or place.endswith(".grad")
    return Target(place.removesuffix(".grad"), index.group().strip() if index else "", of_gradient)


def parse_change(text: str, output_of: Callable[[str], Edge], is_name: Callable[[str], bool]) -> Change:
    """Parse a change; `output_of` resolves a place. Raises GvizError if the text is not a change."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise GvizError(f"{clipped(text, 40) or 'an empty text'} changes nothing", hint=_HINT, exit_code=2)
    of = parse_target(match["target"], is_name)
    index = _index(of.index) if of.index else ()
    node, nr = output_of(of.place)
    return Change(node, _numbers(match["value"].strip()), index, of.of_gradient, nr)


def _cast(numbers: Numbers, dtype: np.dtype[np.generic]) -> Array:
    """Return numbers as an array of this dtype. Raises GvizError if it cannot hold them, such as a fraction in
    integers.
    """
    array = np.array(numbers)
    try:
        with np.errstate(all="ignore"):
            cast = array.astype(dtype)
    except OverflowError:
        cast = None
    if cast is None or (dtype.kind in "biu" and not np.array_equal(cast, array)):
        raise GvizError("this value does not fit", why=f"the tensor holds {dtype.name}", exit_code=2)
    return cast


def _numbers(text: str) -> Numbers:
    try:
        numbers = _number(_tree(text))
        np.array(numbers)  # rows of different lengths
    except ValueError:
        what = clipped(text, 40) or "nothing"
        hint = _RANGE_HINT if ".." in text else _HINT
        raise GvizError(f"{what} is not a number or a list of numbers", hint=hint, exit_code=2) from None
    return numbers


def _index(text: str) -> tuple[Part, ...]:
    try:
        match _tree(f"x{text}"):
            case ast.Subscript(slice=ast.Tuple(elts=parts)):
                return tuple(map(_part, parts))
            case ast.Subscript(slice=part):
                return (_part(part),)
        raise ValueError(text)
    except ValueError:
        raise GvizError(f"{clipped(text, 40)} is not an index", hint=_HINT, exit_code=2) from None


def _tree(text: str) -> ast.expr:
    """Parse a text as a Python expression, without evaluating it. Raises ValueError if it is not one."""
    try:
        return parsing.expression(text).body
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError(text) from None


def _number(node: ast.expr) -> Numbers:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.Name(id="nan" | "inf" as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant() | ast.Name() as operand):
            size = _number(operand)
            assert not isinstance(size, list)
            return -size if isinstance(sign, ast.USub) else size
        case ast.List(elts=parts):
            return [_number(part) for part in parts]
    raise ValueError(ast.dump(node))


def _part(node: ast.expr) -> Part:
    match node:
        case ast.Constant(value=EllipsisType()):
            return ...
        case ast.Slice(lower, upper, step):
            return slice(*[None if bound is None else _place(bound) for bound in (lower, upper, step)])
    return _place(node)


def _place(node: ast.expr) -> int:
    number = _number(node)
    if type(number) is not int:
        raise ValueError(ast.dump(node))
    return number


# The changes of one run, and which of them were reached


class RequestedChanges:
    """The changes of values and of incoming gradients, by node and output."""

    def __init__(self, changes: Iterable[Change]) -> None:
        changes = tuple(changes)
        self.values = by_node(change for change in changes if not change.of_gradient)
        self.gradients = by_node(change for change in changes if change.of_gradient)
        self._reached: set[int] = set()
        self._arrived: set[int] = set()

    def note_reached(self, node: int) -> None:
        """Note that the branch has come to a node, and has applied the change of its value if there is one."""
        self._reached.add(node)

    def arrived(self, node: int) -> None:
        """Note that a changed gradient has arrived at a node."""
        self._arrived.add(node)

    def refuse_unused(
        self, timeline: Timeline, nodes: Container[int], created: Container[int], *, stopped: bool
    ) -> None:
        """Raise `GvizError` if a requested change was not applied although the branch never stopped before it.

        `nodes` are those of the iteration, `created` those that the branch has created; `stopped` is whether it
        stopped.
        """
        for node in sorted(self.values.keys() - self._reached):
            if not stopped or node not in nodes or node in created:
                why = "a pass makes it" if node in created else "no operation in it uses that"
                name = f"#{node} {clipped(timeline.info(node).title, 40)}"
                raise GvizError(f"{name} cannot be changed in this iteration", why=why, exit_code=2)
        for node in sorted(self.gradients.keys() - self._arrived):
            if not stopped or node not in nodes:
                name = clipped(timeline.info(node).name or f"node #{node}", 40)
                raise GvizError(f"no gradient arrives at {name} in this iteration", exit_code=2)


# One number over a range

_NUMBER = r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"(?P<what>[^=]+=)\s*(?P<low>{_NUMBER}?)\s*\.\.\s*(?P<high>{_NUMBER})\s*")


def sweep(text: str, points: int) -> Iterator[tuple[float, str]]:
    """Yield each value of a range, ends included, with the change to it as text; nothing if the text has no range.

    Raises GvizError for an empty or infinite range, and for fewer than two points.
    """
    match = _RANGE.fullmatch(text.replace("..", " .. "))
    if match is None:
        return
    if points < 2:
        raise GvizError(f"a range has two ends: {points} points do not show it", exit_code=2)
    low, high = float(match["low"]), float(match["high"])
    if not low < high or not isfinite(high - low):
        raise GvizError(f"{clipped(text, 40)} has no extent that can be counted", hint='write "x = -3..3"', exit_code=2)
    for point in range(points):
        x = low + (high - low) * point / (points - 1)
        yield x, f"{match['what']} {x!r}"
