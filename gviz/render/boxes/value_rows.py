"""The lines of text in a box at one moment: the known values and gradients of a node.

`node_rows` writes one fact per line; `gviz.render.boxes.brief_rows` writes the value and the gradient in a single line,
and `gviz.render.boxes.comparison_rows` adds the numbers of a what-if to either. No row is wider than the room that
`box_size` has reserved: stepping changes texts and never moves a box.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gviz.explain.hook_effects import HookEffect
from gviz.explain.value_computation import saved_edge
from gviz.render.boxes.box_row import Row, Style
from gviz.render.boxes.box_size import MAX_OUTPUTS, Outline, cost_text, thumbnail_lines
from gviz.render.boxes.full_detail_rows import detail_rows
from gviz.render.boxes.shown_moment import Now
from gviz.render.boxes.tensor_pictures import DIGITS, NO_SHADES, THUMBNAIL_LINES, grid, heat, histogram
from gviz.trace.graph_state import NodeInfo, NodeState, OutputState
from gviz.values.number_text import bytes_text
from gviz.values.plain_text import clipped
from gviz.values.value import Value
from gviz.values.value_text import NO_VALUE, bad_text, grad, kind_text, share

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
        output = now.own(info, state.outputs[number], number) if state is not None else None
        row = Row(NO_VALUE, "muted", label) if output is None else _value_row(label, place, info, output, now)
        yield as_grid(row, output.value if output is not None else None, first_value, now)
        if thumbnail_lines(first_value, now.options):
            yield _thumbnail(first_value, output.value if output is not None else None, now)


def _value_row(label: str, place: Outline, info: NodeInfo, output: OutputState, now: Now) -> Row:
    if output.written_by and output.version:  # a replay writes without counting
        label = f"{label} v{output.version}"
    form, style = now.value_form(info.node, output)
    return Row(now.write(form, output.value, place.width - _label(place, label) - 1), style, label)


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
