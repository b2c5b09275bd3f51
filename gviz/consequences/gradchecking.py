"""What is said of the gradients that a node sent on, beside what small changes of its inputs say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gviz.errors import GvizError
from gviz.explain.names import label
from gviz.numbers import number
from gviz.plain_text import shown
from gviz.trace.timeline import Timeline
from gviz.whatif.differences import Checked, checked
from gviz.whatif.pattern import patterns

_SHOWN = 6
"""Elements that are written out of an input whose gradient is another."""


def checkable(timeline: Timeline, node: int) -> list[int]:
    """The node itself, or what uses a leaf and sends gradients to it; GvizError that says what to check instead."""
    if timeline.info(node).created.kind == "op":
        return [node]
    name, users = shown(label(timeline, node)), timeline.nodes.users(node)
    if not timeline.info(node).created.requires_grad:
        hint = "gradcheck PLACE of what was computed checks its rule"
        raise GvizError(f"{name} requires no gradient: none was sent to it", hint=hint, exit_code=2)
    if not users:
        raise GvizError(f"nothing uses {name}", hint="check says which leaves get no gradient", exit_code=2)
    return list(dict.fromkeys(user for user in users if timeline.info(user).created.requires_grad)) or [users[0]]


def as_far_as_it_goes(timeline: Timeline, node: int, n: int) -> Iterator[str]:
    """The same as `told` of one of several: where one cannot be checked that is said, and the next comes."""
    try:
        yield from list(told(timeline, node, n))
    except GvizError as error:
        yield f"{label(timeline, node)}: {error.what}" + (f" ({error.hint})" if error.hint else "")


def told(timeline: Timeline, node: int, n: int) -> Iterator[str]:
    """The rule of a node in rows, as it ran in the last pass up to moment `n`; GvizError where it cannot be checked."""
    yield from rows(timeline, node, checked(timeline, node, n))


def rows(timeline: Timeline, node: int, found: Sequence[Checked]) -> Iterator[str]:
    """What was found, in rows that are indented by what they belong to."""
    yield f"{label(timeline, node)}: what it sent to each input, and by central differences in float64"
    if not found:
        yield "  it sent no gradient to any input"
    for one in found:
        yield f"  {one.slot} = {label(timeline, one.node)}{_how_many(one)}: {_verdict(one)}"
        if not one.agrees.all():
            yield from (f"    {row}" for row in _elements(one))
        if one.differs.any():
            yield from (f"    {sentence}" for sentence in patterns(one))
            yield "    the rule is wrong, or is meant to send something else, or a hook changed it"


def _how_many(one: Checked) -> str:
    return "" if len(one.places) == one.size else f" ({len(one.places)} of {one.size:,} elements)"


def _verdict(one: Checked) -> str:
    if one.size and not len(one.places):
        return "small changes of it give no numbers"
    if one.agrees.all():
        return f"agrees, the largest difference is {number(one.largest)}"
    if not one.differs.any():
        return "agrees, but for kinks"
    return f"{one.differs.sum()} of {len(one.places)} differ, by up to {number(one.largest)}"


def _elements(one: Checked) -> Iterator[str]:
    """The first elements that differ, and then those at kinks."""
    order = [*one.differs.nonzero()[0].tolist(), *one.at_kink.nonzero()[0].tolist()]
    for at in order[:_SHOWN]:
        sent, expected = number(one.recorded[at]), number(one.differences[at])
        kink = ": a kink, where both are right" if one.at_kink[at] else ""
        yield f"{element(one, at)}: sent {sent}, by differences {expected}{kink}"
    if len(order) > _SHOWN:
        yield f"and {len(order) - _SHOWN} more"


def element(one: Checked, at: int) -> str:
    """An element that was tried, by its index, and what it holds: ``[3, 9] = 2.31``."""
    index = ", ".join(map(str, np.unravel_index(one.places[at], one.shape)))
    return f"[{index}] = {number(one.numbers[at])}" if one.shape else f"at {number(one.numbers[at])}"
