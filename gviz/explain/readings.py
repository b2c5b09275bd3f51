"""How the formula and rules of an operation read for what a node's call was given."""

from __future__ import annotations

from collections.abc import Mapping

from gviz.events import Reading
from gviz.explain.substitute import with_numbers
from gviz.plain_text import shown
from gviz.trace.state import NodeInfo


def formula(info: NodeInfo) -> str:
    """The value of the node as text, in the names of its operation; empty where the call itself says what it is."""
    return shown(_reading(info).formula)


def rule(info: NodeInfo, slot: int) -> str:
    """The gradient of an input of the node as text, in the same names; empty where there is none."""
    rules = info.op.rules
    text = rules[min(slot, len(rules) - 1)] if rules else ""
    return with_numbers(shown(text), {name: shown(word) for name, word in _reading(info).words})


def _reading(info: NodeInfo) -> Reading:
    op = info.op
    return next((reading for reading in op.readings if _fits(reading, info)), Reading((), op.formula))


def _fits(reading: Reading, info: NodeInfo) -> bool:
    given: Mapping[str, object] = dict(info.created.attrs)
    there = [slot for slot, (node, _) in zip(info.op.slots, info.created.inputs, strict=False) if node]
    return all(name in given and str(given[name]) == word for name, word in reading.given) and all(
        slot in there for slot in reading.beside
    )
