"""The tape: one row per node, in order of creation, and one more for each further output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from rich.cells import cell_len

from gviz.events import GradAccumulated, GradFlowed, StepStarted
from gviz.explain.display_names import called, constant_value, output_called
from gviz.explain.grad_history import accumulation
from gviz.explain.tracking import as_at, untracked_word
from gviz.render.boxes.node_states import arrived, has_failed, is_collected
from gviz.trace.graph_state import NodeInfo, NodeState
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.glyphs import Glyphs, glyphs, wants_ascii
from gviz.tui.styled_lines import Line, fitted, line, plain
from gviz.values.number_text import shape_text
from gviz.values.plain_text import abridged_label, without_beginning
from gviz.values.value import Value
from gviz.values.value_text import added, bad_text, fitting, grad, or_unknown, share, short


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of the columns for one width of the tape; all but the first end with a blank.

    A wide tape has a column of its own for ``.grad``. In a narrow one (0), the column of gradients shows ``.grad`` of a
    leaf, and the incoming gradient of everything else.
    """

    number: int
    node: int
    inputs: int
    value: int
    grad: int
    accumulated: int
    note: int


_WHOLE = 80
"""The most characters of a number, or of the mark that it is unknown."""
_NUMBER = 6
"""The fewest characters of a value or gradient in a row: ``|g| 2`` and a blank."""


_WIDE = 88
"""The fewest characters, without numbers and inputs, for a column of ``.grad``."""


@lru_cache(64)
def columns_for(width: int, largest_node: int, longest_title: int = 0, longest_shape: int = 0) -> Columns:
    """Divide a width among the columns; narrow tapes drop the inputs first.

    Titles get the room they need. The column of values has room for whole shapes, if less is left for titles.
    """
    number = max(2, len(str(largest_node))) + 1
    room = max(width - 2 - number, 10)
    inputs = 0 if room < 34 else 6 if room < 60 else 9
    room -= inputs
    note = min(max(room * 22 // 100, 8), 26) if room >= 30 else 0
    node = min(max(room * 34 // 100, 4), 40)
    least = max(min(longest_shape + 1, room * 35 // 100), _NUMBER)
    if longest_title:
        node = max(min(longest_title + 1, room * 45 // 100, room - note - least - _NUMBER), 5)
    rest = room - node - note
    accumulated = rest * 3 // 10 if room >= _WIDE else 0
    value = max((rest - accumulated + 1) // 2, min(least, rest - accumulated - _NUMBER))
    return Columns(number, node, inputs, value, rest - accumulated - value, accumulated, note)


def heading(columns: Columns) -> Line:
    """Return the row above the nodes."""
    words = (
        ("node", columns.node), ("in", columns.inputs), ("value", columns.value), ("grad", columns.grad),
        (".grad", columns.accumulated),
    )  # fmt: skip
    number = f"{'#':>{columns.number - 1}} "
    return line(
        ("  " + number + "".join(fitted(word, width) for word, width in words) + fitted("note", columns.note), "muted")
    )


class Entry(NamedTuple):
    """The subject of a row: a node in its `state`; `marked` if it has a breakpoint.

    Its first output is in its row, each other one in a row of its own below. `other` is the state in a branch, whose
    numbers are next to the recorded ones.
    """

    node: int
    state: NodeState | None
    output_nr: int = 0
    marked: bool = False
    other: NodeState | None = None


def row(timeline: Timeline, moment: Moment, entry: Entry, columns: Columns, glyphs: Glyphs) -> Line:
    """Return the row of an entry, whose state is that of the moment."""
    node, state, output_nr, marked, other = entry
    state = in_its_iteration(timeline, moment.n, state)
    info = as_at(timeline.info(node), state)
    style = "title" if node == moment.actor else "" if state is not None else "muted"
    first, title = not output_nr, _title(info, output_nr)
    gutter = glyphs.now if first and node == moment.actor else " "
    inputs = _inputs(info, columns.inputs) if first else ""
    is_same = other is None or _numbers(other) == _numbers(state)
    note_text = note(timeline, moment, info, state, columns.note, output_nr, numbers=is_same)
    value = partial(_value, output_nr)
    grad = partial(_incoming, output_nr) if columns.accumulated else partial(_grad, info, output_nr)
    accumulated = partial(_accumulated_grad, info, output_nr)
    return line(
        *([(gutter, "now"), (glyphs.stop, "error")] if marked and first else [(f"{gutter} ", "now")]),
        (f"{node if first else '':>{columns.number - 1}} ", "muted"),
        (_cell(_fitting(title, columns.node - 1, glyphs), columns.node, glyphs), style),
        (_cell(inputs, columns.inputs, glyphs), "muted"),
        (
            _cell(_pair(value, state, other, columns.value - 1), columns.value, glyphs),
            _style(output_nr, other or state),
        ),
        (_cell(_pair(grad, state, other, columns.grad - 1), columns.grad, glyphs), "grad"),
        *(
            [(_cell(_pair(accumulated, state, other, columns.accumulated - 1), columns.accumulated, glyphs), "sum")]
            if columns.accumulated
            else ()
        ),
        (fitted(glyphs.text(note_text), columns.note, glyphs.cut), "muted"),
    )


def _numbers(state: NodeState | None) -> list[tuple[Value | None, ...]]:
    return [(output.value, output.incoming, output.grad) for output in (state.outputs if state is not None else ())]


def _fitting(title: str, width: int, glyphs: Glyphs) -> str:
    """Return a title that has room in a column: a path loses its beginning first, then a name its middle."""
    return abridged_label(without_beginning(title, width, glyphs.cut, cell_len), width, glyphs.cut)


def _title(info: NodeInfo, output_nr: int) -> str:
    return f"  {output_called(info, output_nr)}" if output_nr else constant_value(info) or called(info)


def note(
    timeline: Timeline,
    moment: Moment,
    info: NodeInfo,
    state: NodeState | None,
    width: int = 40,
    output_nr: int = 0,
    *,
    numbers: bool = True,
) -> str:
    """Return the most important thing about a node now, in at most `width` characters if there is a choice.

    For an output after the first, this is only a gradient that arrives at it. Without `numbers` no addition is shown:
    those of a what-if are others.
    """
    if state is None:
        return "pending" if not output_nr else ""
    arriving = _added_now(timeline, moment, info.node, width, output_nr) if numbers else ""
    if arriving or output_nr:
        return arriving
    if has_failed(info.node, state, moment):
        return "! failed"
    if info.node == moment.actor:
        return "<- now"
    progress = _progress(info, state, width)
    if progress != "done" or not numbers:
        return progress
    return _accumulated(timeline, state, info.node, width) or progress


def _cell(text: str, width: int, glyphs: Glyphs) -> str:
    return fitted(fitted(glyphs.text(text), width - 1, glyphs.cut) + " ", width) if width else ""


def title_width(timeline: Timeline, nodes: Sequence[int]) -> int:
    """Return the width of the widest title of some nodes."""
    infos = map(timeline.info, nodes)
    return max((cell_len(constant_value(info) or called(info)) for info in infos), default=0)


def shape_width(timeline: Timeline, nodes: Sequence[int]) -> int:
    """Return the width of the widest shape of some nodes' results."""
    values = (output.value for node in nodes for output in timeline.info(node).created.outputs)
    return max((len(shape_text(value.shape)) for value in values if value is not None), default=0)


def _inputs(info: NodeInfo, width: int) -> str:
    """Return the numbers of the inputs, or the kind of a node without inputs."""
    if info.created.kind == "op":
        return " ".join(str(node or "?") for node, _ in info.created.inputs)
    return {"parameter": "param", "constant": "const"}.get(info.created.kind, "leaf")


def _pair(
    text: Callable[[NodeState | None, int], str], state: NodeState | None, other: NodeState | None, width: int
) -> str:
    """Return the text of a state; if that of another state differs, ``9 → 25``, or at least ``→ 25``."""
    if other is None or text(state, width) == text(other, width):
        return text(state, width)
    whole = text(other, _WHOLE)
    pairs = [f"{text(state, each)} → {or_unknown(text(other, each), whole)}" for each in (width, (width - 3) // 2)]
    pairs = [_in_one_bracket(pair) for pair in pairs]
    short_form = f"→ {or_unknown(text(other, width - 2), whole)}"
    return fitting([*[pair for pair in pairs if "…" not in pair], short_form], width)


def _in_one_bracket(pair: str) -> str:
    """Return ``(2 → 5)`` for ``(2) → (5)``: the brackets say that these gradients are not in ``.grad`` yet."""
    return pair.replace(") → (", " → ") if pair.startswith("(") and pair.endswith(")") else pair


def _value(nr: int, state: NodeState | None, width: int) -> str:
    if state is None:
        return "…"
    return short(state.outputs[nr].value, width) if nr < len(state.outputs) else "·"


def _style(nr: int, state: NodeState | None) -> str:
    if state is None or nr >= len(state.outputs):
        return "muted"
    return "error" if bad_text(state.outputs[nr].value) else "value"


def _grad(info: NodeInfo, nr: int, state: NodeState | None, width: int) -> str:
    """Return ``.grad`` of a leaf, or its incoming gradient in brackets; for others, the latest incoming gradient."""
    if info.created.kind == "op" or state is None or nr >= len(state.outputs):
        return _incoming(nr, state, width)
    output = state.outputs[nr]
    if output.incoming is not None and state.step in ("waiting", "running"):
        arriving = share(output.incoming, width - 2)
        return arriving if arriving.startswith("(") else f"({arriving})"
    return grad(output.grad, width)


def _incoming(nr: int, state: NodeState | None, width: int) -> str:
    """Return the latest incoming gradient of an output."""
    if state is None or nr >= len(state.outputs):
        return "…" if state is None else "·"
    return grad(state.outputs[nr].incoming, width)


def _accumulated_grad(info: NodeInfo, nr: int, state: NodeState | None, width: int) -> str:
    """Return ``.grad``; an empty text where no ``.grad`` is expected."""
    value = state.outputs[nr].grad if state is not None and nr < len(state.outputs) else None
    is_expected = info.created.kind != "op" and info.created.requires_grad and state is not None
    return grad(value, width) if value is not None or is_expected else ""


def _added_now(timeline: Timeline, moment: Moment, node: int, width: int, nr: int) -> str:
    """Return what the event of the moment adds to an output of the node."""
    event = moment.event
    if isinstance(event, GradFlowed) and (event.node, event.output_nr) == (node, nr):
        before = None if event.total is None else timeline.at(moment.n - 1).state(node)
        old = before.outputs[event.output_nr].incoming if before is not None else None
        if old is not None:
            return _sum("in ", old, event.part, None, width)
        part = share(event.part, width - 3)
        return f"+= {part}" if part.startswith(("(", "…")) else f"in {part}"
    if isinstance(event, GradAccumulated) and event.node == node:
        text = _accumulated(timeline, moment.state(node), node, width) or f".grad += {share(event.part, width - 9)}"
        return text if "…" not in text else f"+= {share(event.part, width - 3)}"
    if isinstance(event, StepStarted) and event.node == node and not nr:
        return "<- rule runs" if width > 12 else "<- now"
    return ""


def _accumulated(timeline: Timeline, state: NodeState | None, node: int, width: int) -> str:
    """Return ``.grad 3 += 3 -> 6`` if ``.grad`` had a value before, as much of it as fits."""
    output = state.outputs[0] if state is not None and state.outputs else None
    was = accumulation(timeline, node, output) if output is not None else None
    text = _sum(".grad ", was.before, was.part, output.grad, width) if output is not None and was is not None else ""
    return text if " += " in text else ""


def _sum(to: str, old: Value, part: Value, total: Value | None, width: int) -> str:
    """Return what is added to what, and where, as much of it as fits."""
    text = added(old, part, total, width - len(to))
    return f"{to}{text}" if not text.startswith(("+=", "…")) else added(old, part, total, width)


def _untracked(reason: str, width: int) -> str:
    """Return why autograd does not track a node, in a few words or one."""
    return "no input needs grad" if reason == "inputs" and width > 20 else untracked_word(reason)


def _progress(info: NodeInfo, state: NodeState, width: int) -> str:
    """Return the progress of the node in its pass."""
    output = state.outputs[0] if state.outputs else None
    if output is not None and bad_text(output.value):
        return f"! {bad_text(output.value)}"
    if state.step == "waiting":
        return arrived(state)
    if state.step == "running":
        return "running" if info.created.kind == "op" else "complete"
    if state.step == "pending":
        return "waiting"
    if is_collected(info, state):
        return "freed"
    if state.saved == "freed":
        return "released"
    if info.created.untracked and info.created.kind == "op":
        return _untracked(info.created.untracked, width)
    if output is not None and output.written_by:
        return f"↻{output.version}"
    if info.created.during[0] and state.step == "none":
        return f"made in pass {info.created.during[0]}" if width > 12 else f"pass {info.created.during[0]}"
    return "done" if state.step == "done" else ""


class TapeRows:
    """The rows of a recording as it is now, from 0. Only nodes with several outputs need memory."""

    def __init__(self, timeline: Timeline) -> None:
        self.nodes = timeline.nodes
        self._places, outputs = self.nodes.with_several_outputs
        self._more = outputs - 1
        self._before = self._more.cumsum() - self._more
        self._firsts = self._places + self._before

    def __len__(self) -> int:
        return len(self.nodes) + int(self._more.sum())

    def at(self, row: int) -> tuple[int, int]:
        """Return the index of the node of a row, and the number of its output."""
        last = int(self._firsts.searchsorted(row, "right")) - 1
        if last < 0:
            return row, 0
        further, more = row - self._firsts.item(last), self._more.item(last)
        place: int = self._places.item(last)
        return (place, further) if further <= more else (place + further - more, 0)

    def first_of(self, place: int) -> int:
        """Return the first row of the node with an index."""
        earlier = int(self._places.searchsorted(place))
        return place + int(self._more[:earlier].sum())


def rows_of(timeline: Timeline) -> Iterator[tuple[int, int]]:
    """Yield every row: the node, and the number of its output."""
    rows = TapeRows(timeline)
    for row in range(len(rows)):
        place, output_nr = rows.at(row)
        yield rows.nodes[place], output_nr


def plain_tape(timeline: Timeline, n: int, width: int) -> Iterator[str]:
    """Yield every node as it is at one moment, as plain text."""
    moment, marks = timeline.at(n), glyphs(ascii=wants_ascii())
    widest = title_width(timeline, timeline.nodes), shape_width(timeline, timeline.nodes)
    columns = columns_for(width, max(timeline.nodes, default=0), *widest)
    yield plain(heading(columns)).rstrip()
    for node, nr in rows_of(timeline):
        yield plain(row(timeline, moment, Entry(node, moment.state(node), nr), columns, marks)).rstrip()
