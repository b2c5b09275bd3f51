"""The lines of text in a box at one moment: what is known of a node's values and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite

from gviz.events import GradAccumulated, GradFlowed
from gviz.numbers import bytes_text
from gviz.render.boxes.details import detail_rows
from gviz.render.boxes.options import Options
from gviz.render.boxes.room import MAX_OUTPUTS, Outline, thumbnail_lines
from gviz.render.boxes.row import Row, Style
from gviz.render.boxes.tensors import DIGITS, NO_SHADES, THUMBNAIL_LINES, grid, heat, histogram
from gviz.trace.moment import Moment
from gviz.trace.state import Contribution, NodeInfo, NodeState, OutputState
from gviz.trace.timeline import Timeline
from gviz.value_text import NO_VALUE, added, bad_text, grad, kind_text, share, short
from gviz.values import Value


@dataclass(frozen=True, slots=True)
class Now:
    """A moment and the one before it, which tells what the event has changed.

    `first_bad` is the node in which the first nan or inf has appeared by now, or 0; `other` are the states in another
    course of events, if there is one (see `beside`).
    """

    timeline: Timeline
    moment: Moment
    before: Moment
    states: Mapping[int, NodeState | None]
    first_bad: int
    options: Options = field(default_factory=Options)
    other: Mapping[int, NodeState | None] | None = None
    _uses: dict[tuple[int, int], dict[tuple[int, int], Contribution]] = field(default_factory=dict)

    def contribution(self, node: int, output_nr: int, user: int, slot: int) -> Contribution | None:
        """What one use of an output has sent back, found at once also where thousands use it."""
        uses = self._uses.get((node, output_nr))
        if uses is None:
            state = self.states[node]
            parts = state.outputs[output_nr].parts if state is not None else ()
            # Backwards, so that of two for one use the first stays.
            uses = self._uses[node, output_nr] = {(part.source, part.slot): part for part in tuple(parts)[::-1]}
        return uses.get((user, slot))

    def receives(self, node: int) -> bool:
        """Whether this event brings a gradient to a node."""
        return isinstance(self.moment.event, GradFlowed) and self.moment.event.node == node

    def write(self, form: Callable[[Value | None, int, int], str], value: Value | None, width: int) -> str:
        """A value in the form of `gviz.value_text`, but a plain number with the decimals that were asked for."""
        array = value.array() if value is not None and value.size == 1 else None
        if self.options.decimals is not None and array is not None and array.dtype.kind in "fiu":
            number = float(array.reshape(())[()])
            text = f"{number:.{self.options.decimals}f}"
            if isfinite(number) and len(text) <= width and (number == 0 or float(text) != 0):
                return text
        return form(value, width, DIGITS)

    def flowing(self, node: int, width: int, output_nr: int | None = None) -> str:
        """``1 += 3``: what this event adds to what had arrived at an output, at any without a number; else empty."""
        event = self.moment.event
        if not isinstance(event, GradFlowed) or event.node != node or output_nr not in (None, event.output_nr):
            return ""
        before = self.before.state(node) if event.total else None
        return _addition(before.outputs[event.output_nr].incoming if before is not None else None, event.part, width)

    def accumulating(self, node: int, width: int) -> str:
        """``1 += 3``: what this event adds to the ``.grad`` that a leaf had; else empty."""
        event = self.moment.event
        if not isinstance(event, GradAccumulated) or event.node != node or event.value is None:
            return ""
        before = self.before.state(node)
        return _addition(before.outputs[0].grad if before is not None else None, event.part, width)


def node_rows(place: Outline, info: NodeInfo, state: NodeState | None, now: Now, remark: str) -> tuple[Row, ...]:
    """The rows below the title of a node's own box, never more than the place has room for."""
    if place.height == 1:
        return ()
    rows = list(_value_rows(place, info, state, now))
    if place.role in ("leaf", "parameter"):
        rows += _leaf_rows(place, info.created.first_value, state, now)
    elif info.created.requires_grad and not info.created.untracked and place.role != "constant":
        rows += _grad_rows(place, info, state, now)
    if remark:
        rows.append(Row(remark, "muted"))
    if now.options.density == "full":
        rows += detail_rows(now.timeline, now.moment, info, state, now.options)
    return tuple(rows[: place.height - 1])


def chip_rows(place: Outline, state: NodeState | None, now: Now) -> tuple[Row, ...]:
    """What this one use of a shared leaf has contributed and, where there is room, the total of all uses."""
    if state is None or place.height == 1:
        return ()
    output = state.outputs[0]
    part = now.contribution(place.node, 0, place.user, place.slot)
    rows = Row(NO_VALUE, "muted", "adds"), Row(NO_VALUE, "muted", "total")
    if part is not None and output.incoming is not None:
        adds, total = (share(value, place.width - len("total") - 1, DIGITS) for value in (part.value, output.incoming))
        rows = Row(adds, "sum", "adds"), Row(total, "grad", "total")
    return rows[: place.height - 1]


def saved_rows(place: Outline, info: NodeInfo, now: Now) -> tuple[Row, ...]:
    """The shape and size of a tensor that an operation keeps, where it is one of its inputs or its result."""
    name = info.op.saved[place.slot]
    edge = dict(zip(info.op.slots, info.created.inputs, strict=False)).get(name)
    if name == "result":
        edge = (info.node, 0)
    outputs = now.timeline.info(edge[0]).created.outputs if edge is not None and edge[0] else ()
    value = outputs[edge[1]].value if edge is not None and edge[1] < len(outputs) else None
    return (Row(f"{kind_text(value)} {bytes_text(value.nbytes)}", "saved"),) if value is not None else ()


def _value_rows(place: Outline, info: NodeInfo, state: NodeState | None, now: Now) -> Iterator[Row]:
    count = len(info.created.outputs)
    for number in range(min(count, MAX_OUTPUTS)):
        label = "value" if count == 1 else f"value {number}"
        made = info.created.outputs[number].value
        if count > MAX_OUTPUTS and number == MAX_OUTPUTS - 1:
            yield Row(f"and {count - number} more outputs", "muted")
            continue
        row = Row(NO_VALUE, "muted", label) if state is None else _value_row(label, place, state.outputs[number], now)
        yield as_grid(row, state.outputs[number].value if state is not None else None, made, now)
        if thumbnail_lines(made, now.options):
            yield _thumbnail(made, state.outputs[number].value if state is not None else None, now)


def _value_row(label: str, place: Outline, output: OutputState, now: Now) -> Row:
    if output.written_by and output.version:  # a replay writes without counting
        label = f"{label} v{output.version}"
    text = now.write(short, output.value, place.width - _label(place, label) - 1)
    return Row(text, "bad" if bad_text(output.value) else "value", label)


_LEAF_LABEL = len("incoming")


def _label(place: Outline, label: str) -> int:
    """The characters of the longest label of a box, so that equal numbers have equal room."""
    return max(len(label), _LEAF_LABEL if place.incoming else 0)


def as_grid(row: Row, value: Value | None, made: Value | None, now: Now) -> Row:
    """The row with the elements of a small matrix; `made` has the shape also while there is no value.

    A value of another shape, of a tensor that was given other data, stays the text of the row.
    """
    shape = now.options.grid(made.shape) if made is not None else None
    if made is not None and value is not None and value.shape != made.shape:
        return row
    return replace(row, grid=grid(value, shape)) if shape else row


def _thumbnail(made: Value | None, value: Value | None, now: Now) -> Row:
    """A picture of the value in the room kept for that of the one `made`, or why there is none."""
    array = now.timeline.array(value) if value is not None else None
    if thumbnail_lines(made, now.options) < THUMBNAIL_LINES:
        return Row("elements not stored" if array is None else "elements not stored at first", "muted")
    if array is None:
        return Row("elements not stored" if value is not None else "", "muted", shades=NO_SHADES)
    if now.options.form == "heat":
        return Row("", "value", shades=heat(array))
    shades, text = histogram(array)
    return Row(text, "value", shades=shades)


def _grad_rows(place: Outline, info: NodeInfo, state: NodeState | None, now: Now) -> Iterator[Row]:
    count = len(info.created.outputs)
    for number in range(min(count, MAX_OUTPUTS)):
        label = "grad" if count == 1 else f"grad {number}"
        row = Row(NO_VALUE, "muted", label) if state is None else _arriving(label, place.width, state, number, now)
        incoming = state.outputs[number].incoming if state is not None else None
        yield as_grid(row, incoming, info.created.outputs[number].value, now)


def _arriving(label: str, width: int, state: NodeState, output_nr: int, now: Now) -> Row:
    """The sum so far at an output; while a contribution arrives ``1 += 3``."""
    output = state.outputs[output_nr]
    room = width - len(label) - 1
    if flowing := now.flowing(state.node, room, output_nr):
        return Row(flowing, "sum", label)
    style: Style = "bad" if bad_text(output.incoming) else "grad" if output.incoming is not None else "muted"
    return Row(now.write(grad, output.incoming, room), style, label)


def _leaf_rows(place: Outline, made: Value | None, state: NodeState | None, now: Now) -> Iterator[Row]:
    """What has arrived for a leaf in this pass, and its ``.grad``, which changes only when the pass accumulates."""
    output = state.outputs[0] if state is not None else None
    if place.incoming:
        row = _incoming(place.width, state, now) if state is not None else Row(NO_VALUE, "muted", "incoming")
        yield as_grid(row, output.incoming if output is not None else None, made, now)
    row = _leaf_grad(place.width, state, now) if state is not None else Row("None", "muted", ".grad")
    held = output.grad if output is not None else None
    yield as_grid(row, held, made, now) if held is not None else row


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


def _addition(old: Value | None, part: Value, width: int) -> str:
    """``1 += 3``, with as many digits as there is room for; ``+= 3`` for the first contribution."""
    return f"+= {share(part, max(width - 3, 1), DIGITS)}" if old is None else added(old, part, None, width, DIGITS)
