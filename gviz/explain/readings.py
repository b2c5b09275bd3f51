"""How the formula and rules of an operation read for what a node's call was given."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gviz.events import Reading
from gviz.explain.substitute import with_numbers
from gviz.plain_text import shown
from gviz.trace.state import NodeInfo

_GRADIENT = re.compile(r"\bg\b")


def formula(info: NodeInfo) -> str:
    """The value of the node as text, in the names of its operation; empty where the call itself says what it is."""
    return shown(_reading(info).formula)


def rule(info: NodeInfo, slot: int) -> str:
    """The gradient of an input of the node as text, in the same names; empty where there is none."""
    rules = info.op.rules
    text = rules[min(slot, len(rules) - 1)] if rules else ""
    text = with_numbers(shown(text), {name: shown(word) for name, word in _reading(info).words})
    return _of_a_part(text, slot) if text and info.op.grad_fn == "CopySlices" else text


def _of_a_part(rule: str, slot: int) -> str:
    """The rule of a write through a view, told of the whole that the view looks into."""
    if not slot:
        return f"g, its part now {rule}"
    return "its part of g" if rule == "g" else _GRADIENT.sub("(its part of g)", rule)


def _reading(info: NodeInfo) -> Reading:
    op = info.op
    return next((reading for reading in op.readings if _fits(reading, info)), Reading((), op.formula))


def _fits(reading: Reading, info: NodeInfo) -> bool:
    given: Mapping[str, object] = dict(info.created.attrs)
    there = [slot for slot, (node, _) in zip(info.op.slots, info.created.inputs, strict=False) if node]
    return all(name in given and str(given[name]) == word for name, word in reading.given) and all(
        slot in there for slot in reading.beside
    )
