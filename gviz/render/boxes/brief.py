"""What a box says in one line: its value at the left, its gradient at the right."""

from __future__ import annotations

from dataclasses import replace

from gviz.explain.names import untracked_word
from gviz.render.boxes.brief_room import GAP, TENSOR, value_room
from gviz.render.boxes.room import Outline
from gviz.render.boxes.row import Row, Style
from gviz.render.boxes.rows import Now
from gviz.render.boxes.tensors import DIGITS
from gviz.trace.state import NodeInfo, NodeState, OutputState
from gviz.value_text import CUT, NO_VALUE, bad_text, share, short
from gviz.values import Value

ROOMS = (TENSOR, 11, 9, 8, 7, 6, 5)
"""Characters for a gradient: the fewer, the more is left for the value."""


def brief_rows(place: Outline, info: NodeInfo, state: NodeState | None, now: Now) -> tuple[Row, ...]:
    """The line below the title: a row for the value and, where there may be a gradient, one beside it."""
    if place.height == 1:
        return ()
    if state is None or not state.outputs:
        return (Row(NO_VALUE, "muted"),)
    whole = _value(state, TENSOR)
    found = [row for room in ROOMS if (row := _gradient(place, info, state, room, now)) is not None]
    rights = (*found, *[replace(row, label="") for row in found])  # the place tells, if a long number leaves no room
    lines = [(_value(state, place.width - GAP - right.characters), right) for right in rights]
    if not lines:
        return (_value(state, place.width),)
    return min(lines, key=lambda rows: (CUT in rows[1].text, CUT in rows[0].text, rows[0] != whole))


def _value(state: NodeState, width: int) -> Row:
    output = state.outputs[0]
    if len(state.outputs) > 1:
        return Row(f"{len(state.outputs)} outputs", "muted")
    style: Style = "bad" if bad_text(output.value) else "value"
    room = min(width, value_room(output.value))
    row = Row(
        short(output.value, room, DIGITS), style, f"v{output.version}" if output.written_by and output.version else ""
    )
    return row if row.characters <= width else replace(row, label="")


def _gradient(place: Outline, info: NodeInfo, state: NodeState, room: int, now: Now) -> Row | None:
    """What has arrived, while it arrives ``1 += 3``; of a leaf, once it has been added, its ``.grad``."""
    if info.created.untracked and info.created.kind == "op":
        return Row(untracked_word(info.created.untracked), "muted", beside=True)
    if not info.created.requires_grad or place.role == "constant":
        return None
    leaf, output = info.created.kind != "op", state.outputs[0]
    word = "in" if leaf else "grad"
    if flowing := now.flowing(info.node, room):
        return Row(flowing, "sum", word, beside=True)
    if accumulating := now.accumulating(info.node, room):
        return Row(accumulating, "sum", ".grad", beside=True)
    if len(state.outputs) > 1:
        return _of_several(state)
    if leaf and not _arriving(state, output):
        return _written(output.grad, "None", ".grad", room)
    return _written(output.incoming, NO_VALUE, word, room)


def _arriving(state: NodeState, output: OutputState) -> bool:
    """Whether something has arrived for a leaf that is not yet added to its ``.grad``."""
    return output.incoming is not None and state.step in ("waiting", "running")


def _of_several(state: NodeState) -> Row:
    arrived = sum(output.incoming is not None for output in state.outputs)
    return Row(f"of {arrived}" if arrived else NO_VALUE, "grad" if arrived else "muted", "grad", beside=True)


def _written(value: Value | None, nothing: str, label: str, room: int) -> Row:
    if value is None:
        return Row(nothing, "muted", label, beside=True)
    return Row(share(value, room, DIGITS), "bad" if bad_text(value) else "grad", label, beside=True)
