"""What is said of the gradients that a node sent on, beside what small changes of its inputs say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Tried:
    """A node, and what was found of each input that its rule sent a gradient to, or why that cannot be tried."""

    node: int
    found: Sequence[Checked] = ()
    refusal: GvizError | None = None

    @property
    def differs(self) -> bool:
        """Whether something else was sent than differences say."""
        return any(one.differs.any() for one in self.found)


def tried(timeline: Timeline, node: int, n: int) -> Tried:
    """The rule of a node as it ran in the last pass up to moment `n`, else in the first later one."""
    try:
        return Tried(node, checked(timeline, node, n))
    except GvizError as refusal:
        return Tried(node, refusal=refusal)


def rows(timeline: Timeline, tried: Tried) -> Iterator[str]:
    """What was found, in rows that are indented by what they belong to."""
    name = label(timeline, tried.node)
    if (refusal := tried.refusal) is not None:
        yield f"{name}: {refusal.what}" + (f" ({refusal.hint})" if refusal.hint else "")
        return
    yield f"{name}: what it sent to each input, and by central differences in float64"
    if not tried.found:
        yield "  it sent no gradient to any input"
    for one in tried.found:
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
    index = ", ".join(map(str, one.indices[at]))
    return f"[{index}] = {number(one.numbers[at])}" if one.shape else f"at {number(one.numbers[at])}"
