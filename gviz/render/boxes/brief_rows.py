"""The rows of a brief box: the value and the gradient of a node in a single line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec.structs import replace as replace_struct

from gviz.explain.tracking import untracked_word
from gviz.render.boxes.box_row import Row
from gviz.render.boxes.box_size import (
    BRIEF_GAP,
    BRIEF_LENGTH,
    BRIEF_NORM,
    BRIEF_TENSOR,
    WIDEST_VALUE,
    Outline,
    elements_room,
    value_room,
)
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.shown_moment import Now
from gviz.render.boxes.tensor_pictures import DIGITS
from gviz.trace.graph_state import NodeInfo, NodeState, OutputState
from gviz.values.number_text import shape_text
from gviz.values.value import Value
from gviz.values.value_text import CUT, NO_VALUE, bad_text, norm_text, share

NORM = "|g|"
"""The sign of the norm of a gradient."""
_GRADIENT_ROOMS = (BRIEF_TENSOR, 11, 9, 8, 7, 6, 5)
"""Characters for a gradient in a brief box: fewer of them leave more for the value."""


def brief_rows(place: Outline, info: NodeInfo, state: NodeState | None, now: Now) -> tuple[Row, ...]:
    """Return the rows of the line below the title of a brief box: the value and, if there may be one, the gradient."""
    if place.height == 1:
        return gradient_next_to_name(brief_rows(roomy(place), info, state, now)) if now.options.adds_gradients else ()
    if state is None or not state.outputs:
        return (Row(NO_VALUE, "muted"),)
    state = replace_struct(state, outputs=(now.own(info, state.outputs[0], 0), *state.outputs[1 : info.returned]))
    whole = _brief_value(state, value_room(state.outputs[0].value, now.options), now)
    rooms = gradient_rooms(info.created.first_value, now.options)
    gradients = [row for room in rooms if (row := _brief_gradient(place, info, state, room, now)) is not None]
    rights = (*gradients, *[replace(row, label="") for row in gradients])  # a long number takes the label's room
    if now.options.lists_elements or now.options.stacks:  # the box has room for both
        if now.options.stacks:
            return _brief_value(state, place.width, now), *map(below_value, gradients[:1])
        return whole, *gradients[:1]
    least = value_room(state.outputs[0].value, now.options)
    lines = [(_brief_value(state, room_beside(place, right, least, now.options), now), right) for right in rights]
    if not lines:
        return (_brief_value(state, place.width, now),)

    incoming = state.outputs[0].grad if gradients[0].label == ".grad" else state.outputs[0].incoming
    norm = norm_text(incoming) if incoming is not None else ""

    def losses(rows: tuple[Row, Row]) -> tuple[bool, ...]:
        """Return what a line lacks, the worst first. A norm keeps its digits, so that it is equal in all boxes."""
        (left, right), best = rows, gradients[0].text
        return (
            CUT in right.text,
            CUT in left.text,
            right.text.startswith("(") and right.text != best,  # only a shape, where elements or a norm are known
            NORM in right.text and right.text not in (best, norm),
            left.characters < whole.characters,
            not right.label,
            right.text != best,
        )

    return min(lines, key=losses)


def room_beside(place: Outline, gradient: Row, least: int, options: Options) -> int:
    """Return the characters of a value next to a gradient.

    In a picture, a value has more than the `least` room only if a norm of a usual length has room, too: so it keeps its
    text when the gradient arrives.
    """
    room = place.width - BRIEF_GAP - gradient.characters
    usual = place.width - BRIEF_GAP - len(".grad ") - BRIEF_LENGTH
    return max(min(room, least), min(room, usual)) if options.marks else room


def roomy(place: Outline) -> Outline:
    """Return the outline that a box with only a name would have if it also showed its value and its gradient."""
    return replace(place, height=2, width=WIDEST_VALUE)


def gradient_next_to_name(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the gradient of a brief box if it is known, for a box that has only a name."""
    return tuple(row for row in rows if row.shares_line and row.style in ("grad", "sum", "bad"))


def below_value(gradient: Row) -> Row:
    """Return a gradient in a line of its own, below the value: numbers need no label there."""
    is_known = gradient.style != "muted"
    return replace(gradient, label="" if is_known else gradient.label, shares_line=False, is_left=True)


def gradient_rooms(value: Value | None, options: Options) -> tuple[int, ...]:
    """Return the characters that a gradient may take in a brief box, the most first."""
    room = elements_room(value) if options.lists_elements else 0
    if options.stacks and not room and value is not None and value.size > 1:
        return (BRIEF_NORM,)
    return (*([room] if room > BRIEF_TENSOR else []), *_GRADIENT_ROOMS)


def _brief_value(state: NodeState, width: int, now: Now) -> Row:
    output = state.outputs[0]
    if len(state.outputs) > 1:
        return Row(f"{len(state.outputs)} outputs", "muted")
    form, style = now.value_form(state.node, output)
    version = f"v{output.version}" if output.written_by and output.version else ""
    room = width - len(f"{version} ") * bool(version) if now.options.marks else width
    least = value_room(output.value, now.options)
    room = max(room, min(width, least)) if now.options.marks else min(width, least)
    row = Row(form(output.value, room, DIGITS), style, version)
    return row if row.characters <= width else replace(row, label="")


def _brief_gradient(place: Outline, info: NodeInfo, state: NodeState, room: int, now: Now) -> Row | None:
    """Return the incoming gradient, ``1 += 3`` while it arrives.

    Once the pass has added to a leaf, return its ``.grad``.
    """
    leaf, output = place.role in ("leaf", "parameter") or info.created.kind != "op", state.outputs[0]
    if not (now.leaf_gradients if leaf else now.gradients):
        return None
    if info.created.untracked and not leaf:
        return Row(untracked_word(info.created.untracked), "muted", shares_line=True)
    if place.role == "constant" or not (leaf or info.created.requires_grad):
        return None
    word = "in" if leaf else "grad"
    sum_room = room + len("+= ") * now.options.lists_elements
    if flowing := now.flowing(info.node, sum_room):
        return Row(flowing, "sum", word, shares_line=True)
    if accumulating := now.accumulating(info.node, sum_room):
        return Row(accumulating, "sum", ".grad", shares_line=True)
    if len(state.outputs) > 1:
        return _of_several(state)
    if leaf and not _brief_arriving(state, output):
        return brief_gradient_row(output.grad, "None", ".grad", room, now.options)
    return brief_gradient_row(output.incoming, now.nothing, word, room, now.options)


def _brief_arriving(state: NodeState, output: OutputState) -> bool:
    """Return whether a leaf has an incoming gradient that is not yet added to its ``.grad``."""
    return output.incoming is not None and state.step in ("waiting", "running")


def _of_several(state: NodeState) -> Row:
    arrived = sum(output.incoming is not None for output in state.outputs)
    return Row(f"of {arrived}" if arrived else NO_VALUE, "grad" if arrived else "muted", "grad", shares_line=True)


def brief_gradient_row(value: Value | None, nothing: str, label: str, room: int, options: Options) -> Row:
    """Return a gradient at the right end of a brief box: its number, elements or norm.

    In a picture it is never only a shape, and the gradients of all tensors are norms unless each box lists its
    elements. The norm of an incoming gradient has no label in any box: some have no room for it.
    """
    if value is None:
        return Row(nothing, "muted", label, shares_line=True)
    text = share(value, room, DIGITS)
    norm = norm_text(value) if options.marks and value.size > 1 and not bad_text(value) else ""
    if norm and not options.lists_elements and len(norm) <= room:
        text = norm
    elif norm and text == shape_text(value.shape):
        text = CUT
    if options.marks and label == "grad" and text.startswith(NORM):
        label = ""
    return Row(text, "bad" if bad_text(value) else "grad", label, shares_line=True)
