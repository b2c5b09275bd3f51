"""``gradcheck``: whether the gradients that a node sent on are what a small change of its inputs says."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gviz.driven import Driven, Far
from gviz.errors import GvizError
from gviz.explain.names import label
from gviz.numbers import number
from gviz.plain_text import shown
from gviz.trace.timeline import Timeline
from gviz.tui.language.command import Look
from gviz.tui.lines import Line, line, wrapped
from gviz.tui.session import Session

_SHOWN = 6
"""Elements that are written out of an input whose gradient is another."""


def gradcheck(session: Session, place: str) -> Driven[Look]:
    """``gradcheck [PLACE]``: the rule of a node; of a leaf the rules of all that use it."""
    timeline, cursor = session.timeline, session.cursor
    node = cursor.asker.last(place, cursor.position) if place else cursor.selected
    if not node:
        raise GvizError("no node is selected", hint="j and k select one", exit_code=2)
    nodes = _checkable(timeline, node)
    rows: list[str] = []
    for done, one in enumerate(nodes):
        yield Far("running again: node", done, len(nodes))
        rows += _told(session, one) if len(nodes) == 1 else _as_far_as_it_goes(session, one)
    return Look("Gradients by differences", partial(_lines, rows))


def _checkable(timeline: Timeline, node: int) -> list[int]:
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


def _as_far_as_it_goes(session: Session, node: int) -> Iterator[str]:
    """The same of one of several: where one cannot be checked that is said, and the next comes."""
    try:
        yield from list(_told(session, node))
    except GvizError as error:
        yield f"{label(session.timeline, node)}: {error.what}" + (f" ({error.hint})" if error.hint else "")


def _told(session: Session, node: int) -> Iterator[str]:
    from gviz.whatif.differences import checked  # it needs the engine, which a viewer otherwise does not

    timeline = session.timeline
    yield f"{label(timeline, node)}: what it sent to each input, and by central differences in float64"
    found = checked(timeline, node, session.cursor.position)
    if not found:
        yield "  it sent no gradient to any input"
    for one in found:
        some = "" if len(one.places) == one.size else f" ({len(one.places)} of {one.size} elements)"
        to = f"  {one.slot} = {label(timeline, one.node)}{some}: "
        if one.agrees.all():
            yield f"{to}agrees, the largest difference is {number(one.largest)}"
            continue
        yield f"{to}differs by up to {number(one.largest)}"
        for at in (~one.agrees).nonzero()[0][:_SHOWN].tolist():
            sent, expected = number(one.recorded[at]), number(one.differences[at])
            kink = ": a kink, where both are right" if one.at_kink[at] else ""
            yield f"    element {one.places[at]}: sent {sent}, by differences {expected}{kink}"
        if not (one.agrees | one.at_kink).all():
            yield "    the rule is wrong, or is meant to send something else, or a hook changed it"


def _lines(rows: list[str], width: int) -> Iterator[Line]:
    for row in rows:
        yield from wrapped(line(row), width, 4)
