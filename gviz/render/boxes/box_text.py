"""The lines of text in a box at one moment: the known values and gradients of a node.

There are three ways to write them. `node_rows` has one fact in each line. `brief_rows` has the value and the gradient
in a single line. `rows_with_comparison` adds the numbers of a what-if to either: ``9 → 25``. No row is wider than the
room that `box_size` has reserved: stepping changes texts and never moves a box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from msgspec.structs import replace as replace_struct

from gviz.explain.hook_effects import HookEffect
from gviz.explain.tracking import takes_shape, untracked_word
from gviz.explain.value_computation import saved_edge
from gviz.render.boxes.box_row import Row, Style
from gviz.render.boxes.box_size import (
    BRIEF_GAP,
    BRIEF_LENGTH,
    BRIEF_NORM,
    BRIEF_TENSOR,
    MAX_OUTPUTS,
    WIDEST_VALUE,
    Outline,
    cost_text,
    elements_room,
    thumbnail_lines,
    value_room,
)
from gviz.render.boxes.full_detail_rows import detail_rows
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.shown_moment import Now
from gviz.render.boxes.tensor_pictures import DIGITS, NO_SHADES, THUMBNAIL_LINES, grid, heat, histogram
from gviz.trace.graph_state import NodeInfo, NodeState, OutputState
from gviz.values.number_text import bytes_text, shape_text
from gviz.values.plain_text import clipped
from gviz.values.value import Value
from gviz.values.value_text import CUT, NO_VALUE, bad_text, grad, kind_text, norm_text, or_unknown, share

# ----------------------------------------------------------------------------------------------------------------------
# One fact in each line.


HOOK = "hook"
"""The word before the names of hooks that changed a gradient."""
LONGEST_HOOK = 24
"""The most characters of a hook's name."""


def hook_names(effects: Iterable[HookEffect]) -> tuple[str, ...]:
    """Return the names of some hooks, each once."""
    return tuple(dict.fromkeys(clipped(effect.ran.name, LONGEST_HOOK) for effect in effects))


def node_rows(place: Outline, info: NodeInfo, state: NodeState | None, now: Now, remark: str) -> tuple[Row, ...]:
    """Return the rows below the title of a node's own box, at most as many as the outline has room for."""
    if place.height == 1:
        return ()
    rows = list(_value_rows(place, info, state, now))
    if place.role in ("leaf", "parameter"):
        rows += _leaf_rows(place, info.created.first_value, state, now) if now.leaf_gradients else ()
    elif now.gradients and info.created.requires_grad and not info.created.untracked and place.role != "constant":
        rows += _grad_rows(place, info, state, now)
    if remark:
        rows.append(Row(remark, "muted"))
    if now.options.density == "full":
        rows += detail_rows(now.timeline, now.moment, info, state, now.options)
    return fitting_rows(rows, place, now)


def fitting_rows(rows: Sequence[Row], place: Outline, now: Now) -> tuple[Row, ...]:
    """Return the rows for which a box has room. The last one is what the box costs, if an overlay shows that."""
    text = cost_text(now.timeline, now.moment.n, now.options, place.node, place.group)
    cost = (Row(text, "saved", now.options.overlay or ""),) if text else ()
    return (*rows[: place.height - 1 - len(cost)], *cost)


def chip_rows(place: Outline, state: NodeState | None, now: Now) -> tuple[Row, ...]:
    """Return the contribution of this one use of a shared leaf and, if there is room, the total of all uses."""
    if state is None or place.height == 1:
        return ()
    output = state.outputs[0]
    part = now.contribution(place.node, 0, place.user, place.slot)
    rows = Row(now.nothing, "muted", "adds"), Row(now.nothing, "muted", "total")
    if part is not None and output.incoming is not None:
        adds, total = (share(value, place.width - len("total") - 1, DIGITS) for value in (part.value, output.incoming))
        rows = Row(adds, "sum", "adds"), Row(total, "grad", "total")
    return rows[: place.height - 1]


def saved_rows(place: Outline, info: NodeInfo, now: Now) -> tuple[Row, ...]:
    """Return the shape and size of a tensor that an operation saves, if it is one of its inputs or its result."""
    edge = saved_edge(now.timeline, info, info.op.saved[place.slot])
    outputs = now.timeline.info(edge[0]).created.outputs if edge is not None and edge[0] else ()
    value = outputs[edge[1]].value if edge is not None and edge[1] < len(outputs) else None
    return (Row(f"{kind_text(value)} {bytes_text(value.nbytes)}", "saved"),) if value is not None else ()


def _value_rows(place: Outline, info: NodeInfo, state: NodeState | None, now: Now) -> Iterator[Row]:
    count = info.returned
    for number in range(min(count, MAX_OUTPUTS)):
        label = "value" if count == 1 else f"value {number}"
        first_value = info.created.outputs[number].value
        if count > MAX_OUTPUTS and number == MAX_OUTPUTS - 1:
            yield Row(f"and {count - number} more outputs", "muted")
            continue
        current = state.outputs[number] if state is not None else None
        output = now.own(info, current, number) if current is not None else None
        if output is None or current is None:
            row = Row(NO_VALUE, "muted", label)
        else:
            row = _value_row(f"{label} {version_text(output, current)}".rstrip(), place, info, output, now)
        yield as_grid(row, output.value if output is not None else None, first_value, now)
        if thumbnail_lines(first_value, now.options):
            yield _thumbnail(first_value, output.value if output is not None else None, now)


def _value_row(label: str, place: Outline, info: NodeInfo, output: OutputState, now: Now) -> Row:
    form, style = now.value_form(info.node, output)
    return Row(now.write(form, output.value, place.width - _label(place, label) - 1), style, label)


def version_text(output: OutputState, current: OutputState) -> str:
    """Return the version of an output that a box shows, ``v1``; "" for an output that was never written in place.

    The output before a write is ``v0`` from then on: the tooltip, the panels and later boxes show the `current` one.
    """
    is_written = output.written_by and output.version  # a replay writes without counting
    return f"v{output.version}" if is_written or output.version < current.version else ""


_LEAF_LABEL = len("incoming")


def _label(place: Outline, label: str) -> int:
    """Return the length of the longest label in a box, so that equal numbers have equal room."""
    return max(len(label), _LEAF_LABEL if place.incoming else 0)


def as_grid(row: Row, value: Value | None, first_value: Value | None, now: Now) -> Row:
    """Return the row with the elements of a small matrix. `first_value` defines the shape even while there is no value.

    If the tensor was given data of another shape, the row keeps its text.
    """
    shape = now.options.grid(first_value.shape) if first_value is not None else None
    if first_value is not None and value is not None and value.shape != first_value.shape:
        return row
    if value is None and not now.options.numbered:  # dots in a grid look like decimal points
        return row
    return replace(row, grid=grid(value, shape)) if shape else row


def _thumbnail(first_value: Value | None, value: Value | None, now: Now) -> Row:
    """Return a picture of the value, in the room of the thumbnail of `first_value`, or the reason why there is none."""
    array = now.timeline.array(value) if value is not None else None
    if thumbnail_lines(first_value, now.options) < THUMBNAIL_LINES:
        return Row("elements not stored" if array is None else "elements not stored at first", "muted")
    if array is None:
        return Row("elements not stored" if value is not None else "", "muted", shades=NO_SHADES)
    if now.options.form == "heat":
        return Row("", "value", shades=heat(array))
    shades, text = histogram(array)
    return Row(text, "value", shades=shades)


def _grad_rows(place: Outline, info: NodeInfo, state: NodeState | None, now: Now) -> Iterator[Row]:
    count = info.returned
    for number in range(min(count, MAX_OUTPUTS)):
        label = "grad" if count == 1 else f"grad {number}"
        row = Row(now.nothing, "muted", label) if state is None else _arriving(label, place.width, state, number, now)
        incoming = state.outputs[number].incoming if state is not None else None
        yield as_grid(row, incoming, info.created.outputs[number].value, now)


def _arriving(label: str, width: int, state: NodeState, output_nr: int, now: Now) -> Row:
    """Return the sum so far at an output; while a contribution arrives, ``1 += 3``."""
    output = state.outputs[output_nr]
    room = width - len(label) - 1
    if flowing := now.flowing(state.node, room, output_nr):
        return Row(flowing, "sum", label)
    style: Style = "bad" if bad_text(output.incoming) else "grad" if output.incoming is not None else "muted"
    text = now.write(grad, output.incoming, room) if output.incoming is not None else now.nothing
    return Row(text, style, label)


def _leaf_rows(place: Outline, first_value: Value | None, state: NodeState | None, now: Now) -> Iterator[Row]:
    """Yield the incoming gradient of a leaf in this pass, and its ``.grad``.

    The ``.grad`` changes only when the pass accumulates.
    """
    output = state.outputs[0] if state is not None else None
    if place.incoming:
        row = _incoming(place.width, state, now) if state is not None else Row(now.nothing, "muted", "incoming")
        yield as_grid(row, output.incoming if output is not None else None, first_value, now)
    row = _leaf_grad(place.width, state, now) if state is not None else Row("None", "muted", ".grad")
    accumulated = output.grad if output is not None else None
    yield as_grid(row, accumulated, first_value, now) if accumulated is not None else row


def _incoming(width: int, state: NodeState, now: Now) -> Row:
    output = state.outputs[0]
    row = _arriving("incoming", width, state, 0, now)
    arrived = f"{row.text} ({len(output.parts)} of {output.expected})"
    if output.expected < 2 or not output.parts or len(arrived) + len(row.label) + 3 > width:
        return row
    return Row(arrived, row.style, row.label)


def _leaf_grad(width: int, state: NodeState, now: Now) -> Row:
    if accumulating := now.accumulating(state.node, width - 6):
        return Row(accumulating, "sum", ".grad")
    value = state.outputs[0].grad
    if value is None:
        return Row("None", "muted", ".grad")
    return Row(now.write(grad, value, width - _LEAF_LABEL - 1), "bad" if bad_text(value) else "grad", ".grad")


# ----------------------------------------------------------------------------------------------------------------------
# A brief box: the value and the gradient of a node in a single line.


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
    version = version_text(own := now.own(info, state.outputs[0], 0), state.outputs[0])
    state = replace_struct(state, outputs=(own, *state.outputs[1 : info.returned]))
    whole = _brief_value(state, version, value_room(state.outputs[0].value, now.options), now)
    rooms = gradient_rooms(info.created.first_value, now.options)
    gradients = [row for room in rooms if (row := _brief_gradient(place, info, state, room, now)) is not None]
    rights = (*gradients, *[replace(row, label="") for row in gradients])  # a long number takes the label's room
    if now.options.lists_elements or now.options.stacks:  # the box has room for both
        if now.options.stacks:
            room = stacked_room(place, state.outputs[0].value, now.options)
            return _brief_value(state, version, room, now), *map(below_value, gradients[:1])
        return whole, *gradients[:1]
    least = value_room(state.outputs[0].value, now.options)
    lines = [
        (_brief_value(state, version, room_beside(place, right, least, now.options), now), right) for right in rights
    ]
    if not lines:
        return (_brief_value(state, version, place.width, now),)

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


def stacked_room(place: Outline, value: Value | None, options: Options) -> int:
    """Return the characters of a value above its gradient: where elements are listed, a box has room for what is drawn,
    which is narrower than its usual characters.
    """
    return max(place.width, value_room(value, options)) if options.lists_elements else place.width


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


def _brief_value(state: NodeState, version: str, width: int, now: Now) -> Row:
    output = state.outputs[0]
    if len(state.outputs) > 1:
        return Row(f"{len(state.outputs)} outputs", "muted")
    form, style = now.value_form(state.node, output)
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
        return Row(untracked_word("inputs" if takes_shape(info) else info.created.untracked), "muted", shares_line=True)
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


# ----------------------------------------------------------------------------------------------------------------------
# The numbers of a what-if next to those of the recording: ``9 → 25``.


Rows = Callable[[Outline, Now], tuple[Row, ...]]

_LABEL = 5
"""Characters of a usual label."""
_WIDE = 80
"""Characters in which every number, and the text for an unknown one, can be written out."""


def rows_with_comparison(rows: Rows, place: Outline, now: Now) -> tuple[Row, ...]:
    """Return the rows of a box, with the other number next to the number where a what-if has another one."""
    if now.other is None:
        return rows(place, now)
    sums = replace(now, moment=replace(now.moment, event=None), other=None)  # sums instead of additions
    there = replace(sums, states=now.other)
    narrow = replace(place, width=(place.width + _LABEL - 2) // 2)
    wide = replace(place, width=_WIDE)
    forms = [(rows(room, sums), rows(room, there)) for room in (place, narrow)]
    pairs = zip(*[zip(old, new, strict=False) for old, new in forms], strict=False)
    return tuple(_fitting([_forms(*each) for each in zip(pairs, rows(wide, there), strict=False)], place.width))


def _forms(pairs: tuple[tuple[Row, Row], ...], whole: Row) -> tuple[Row, ...]:
    """Return one row in all its forms, the wider first. `whole` is the what-if's row with unlimited room."""
    old, new = pairs[0]
    if new.text == old.text:
        return (old,)
    after = [or_unknown(there.text, whole.text) for _, there in pairs]
    both = [f"{here.text} → {text}" for (here, _), text in zip(pairs, after, strict=True)]
    texts = [*[text for text in both if CUT not in text], f"→ {after[-1]}", CUT]
    return tuple(replace(old, text=text, style="bad" if new.style == "bad" else "sum") for text in texts)


def _fitting(rows: Sequence[tuple[Row, ...]], width: int) -> Iterator[Row]:
    """Yield each row in the first of its forms that has room, together with the row next to it."""
    at = 0
    while at < len(rows):
        line = rows[at : at + 1 + any(forms[0].shares_line for forms in rows[at + 1 : at + 2])]
        choices = list(product(*line))
        fits = (
            choice
            for choice in choices
            if sum(row.characters for row in choice) + BRIEF_GAP * (len(choice) - 1) <= width
        )
        yield from next(fits, choices[-1])
        at += len(line)
