"""At which element a nan or inf came up, and what the others were there: ``at [17], where #612 is 0``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from gviz.explain.computation import Computation, computation
from gviz.explain.contributions import arrived, sent_by
from gviz.explain.names import symbol
from gviz.explain.operations import BY_ELEMENT
from gviz.explain.substitute import is_small
from gviz.numbers import number, shape_text
from gviz.trace.state import Contribution, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.value_text import short
from gviz.values import Array, Value

Named = tuple[str, Value | None]
"""A name in a formula or rule, and what it stands for."""


def made_at_element(timeline: Timeline, info: NodeInfo) -> str:
    """Where an operation made the first bad element, and of what; empty where that is not known, or to be seen."""
    computed = computation(timeline, info.node)
    if not _is_by_element(info) or (not computed.shapes and _is_to_be_seen(computed.result)):
        return ""
    return _at(timeline, computed.result, [(operand.name, operand.value) for operand in computed.operands])


def sent_at_element(timeline: Timeline, part: Contribution) -> str:
    """Where a backward rule made the first bad element, and of what; empty where that is not known."""
    info, sent = timeline.info(part.source), sent_by(timeline, part)
    if not _is_by_element(info) or sent.reduced or not sent.rule:
        return ""
    computed = computation(timeline, info.node)
    known = {operand.name: operand.value for operand in computed.operands}
    known |= {symbol(timeline, info.node, 0): computed.result, "g": arrived(timeline, part)}
    return _at(timeline, part.value, [(name, known[name]) for name in _words(sent.rule) if name in known])


def made_of(timeline: Timeline, node: int) -> str:
    """The formula of a node, what it gave, and of arrays that have only their name there what is known of them."""
    computed = computation(timeline, node)
    large = ", ".join(dict.fromkeys(f"{name} {short(value)}" for name, value in _in_shapes(computed)))
    return f"{computed.without_shapes}{', with ' * bool(large)}{large}"


def _is_to_be_seen(value: Value | None) -> bool:
    """Whether a value can be seen where it stands, or is not known at all."""
    return value is None or is_small(value)


def _in_shapes(computed: Computation) -> Iterator[tuple[str, Value]]:
    for operand in computed.operands:
        value = operand.value
        if value is not None and f"{operand.name} {shape_text(value.shape)}" in computed.shapes:
            yield operand.name, value


def _is_by_element(info: NodeInfo) -> bool:
    return info.op.base_name.removesuffix("_") in BY_ELEMENT


def _words(rule: str) -> Sequence[str]:
    return tuple(dict.fromkeys(re.findall(r"#\d+|[A-Za-z_][\w.]*", rule)))


def _at(timeline: Timeline, bad: Value | None, given: Iterable[Named]) -> str:
    """The first bad element, and what each of the others has there."""
    array = timeline.array(bad) if bad is not None else None
    if array is None or array.size < 2 or array.dtype.kind != "f":
        return ""
    place = _first_bad(array)
    met = [(name, _held(timeline, value, array, place)) for name, value in given]
    told = [f"{name} is {number(held)}" for name, held in met if held is not None]
    if place is None or not told:
        return ""
    which = "at" if np.count_nonzero(~np.isfinite(array)) == 1 else "the first at"
    return f"{which} [{', '.join(map(str, place))}], where {' and '.join(told)}"


def _first_bad(array: Array) -> tuple[int, ...] | None:
    """The index of the first nan, else of the first infinity."""
    for bad in (np.isnan(array), np.isinf(array)):
        if bad.any():
            return tuple(int(at) for at in np.unravel_index(int(np.argmax(bad)), array.shape))
    return None


def _held(timeline: Timeline, value: Value | None, like: Array, place: tuple[int, ...] | None) -> object:
    """The element of another array that met this one; None where that is not known."""
    array = timeline.array(value) if value is not None else None
    if array is None or place is None:
        return None
    try:
        return np.broadcast_to(array, like.shape)[place].item()
    except ValueError:  # of another shape
        return None
