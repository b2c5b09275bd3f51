"""The further rows of a box in full density.

They show how the node was made, its dtype, its saved tensors and its backward rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size

from gviz.explain.display_names import called
from gviz.explain.formula import attribute_word
from gviz.explain.outgoing_gradients import OutgoingGradient, outgoing_gradients
from gviz.explain.value_computation import saved_names
from gviz.render.boxes.box_row import Row
from gviz.render.boxes.graph_options import Options
from gviz.source.call_stack import source_lines
from gviz.trace.graph_state import NodeInfo, NodeState
from gviz.trace.timeline import Moment, Timeline
from gviz.values.number_text import bytes_text, dtype_text, shape_text
from gviz.values.plain_text import file_line, shown
from gviz.values.value_text import CUT, short

DETAIL_WIDTH = 48
"""Cells for a line of the program and for a backward rule with its numbers."""
SOURCE_WIDTH = 54
"""Cells for a line of text, whose letters are narrower than the digits that define the width of a box."""
MAX_RULES = 3
"""The most derivatives that a box shows of an op with many inputs."""


def detail_count(info: NodeInfo, options: Options) -> int:
    """Return the most rows that `detail_rows` yields, the same at any moment; 0 unless the density is full."""
    if options.density != "full":
        return 0
    return _has_type(info) + len(_attributes(info, options)) + _keeps(info) + _rule_count(info) + bool(info.frames)


def detail_width(info: NodeInfo, options: Options) -> int:
    """Return the cells that `detail_rows` need."""
    if not detail_count(info, options):
        return 0
    return max([DETAIL_WIDTH, *(row.characters for row in _attributes(info, options))])


def detail_rows(
    timeline: Timeline, moment: Moment, info: NodeInfo, state: NodeState | None, options: Options
) -> Iterator[Row]:
    """Yield the rows below value and gradient."""
    if _has_type(info):
        yield Row(_type(info), "muted", "type")
    yield from _attributes(info, options)
    if _keeps(info):
        names = _names(timeline, ", ".join(saved_names(timeline, info.node)), options)
        freed = " (freed)" if names and state is not None and state.saved == "freed" else ""
        yield Row(_cut(names or "nothing", DETAIL_WIDTH - 14) + freed, "saved", "saved")
    if _rule_count(info):
        shares = outgoing_gradients(timeline, moment, info.node)[:MAX_RULES]
        inputs = [share.operand.name or share.operand.parameter for share in shares]
        targets = [_names(timeline, name, options) for name in inputs]
        for share, name, target in zip(shares, inputs, targets, strict=True):
            is_equal = target != name and targets.count(target) > 1
            yield _sent(timeline, share, share.operand.parameter or target if is_equal else target, options)
    if info.frames:
        yield Row(_cut(source_line(timeline, info), SOURCE_WIDTH), "muted")


def source_line(timeline: Timeline, info: NodeInfo) -> str:
    """Return the line of the program that made a node: ``demo.py:4  b = x * a``."""
    frame = info.frames[0]
    lines = source_lines(timeline.source(frame.path) or "")
    code = shown(lines[frame.line - 1].strip()) if 0 < frame.line <= len(lines) else ""
    return f"{file_line(frame.path, frame.line)}  {code}".rstrip()


def _attributes(info: NodeInfo, options: Options) -> list[Row]:
    if info.created.kind != "op" or not options.attr_chars:
        return []
    return [
        Row(_cut(attribute_word(value), options.attr_chars), "text", _cut(name, DETAIL_WIDTH // 2))
        for name, value in info.created.attrs
    ]


def _sent(timeline: Timeline, share: OutgoingGradient, target: str, options: Options) -> Row:
    """Return the row of an outgoing gradient: ``to x  g * w = 1 * -2 = -2``. The numbers appear once it is sent."""
    label = _cut(f"to {target}", 14)
    room = DETAIL_WIDTH - cell_len(label) - 1
    if share.missing or not share.rule:
        return Row(_cut(share.missing, room), "muted", label)
    rule = _names(timeline, share.rule, options)
    forms = [rule]
    if share.part is not None:
        sent = short(share.part).removeprefix("! ")
        numbers = "" if share.reduced else _names(timeline, share.numbers, options)
        forms = [_equal(rule, numbers, sent), _equal(numbers, sent), _equal(rule, sent), *forms]
    return Row(next((form for form in forms if cell_len(form) <= room), _cut(forms[-1], room)), "grad", label)


NUMBER = re.compile(r"#(\d+)")
"""The number of a node in a text, for a tensor without a name."""


def _names(timeline: Timeline, text: str, options: Options) -> str:
    """Return a text with names of operations for the numbers of nodes, if the picture has no numbers."""

    def name(number: re.Match[str]) -> str:
        node = int(number[1])
        return called(timeline.info(node)) if node in timeline.nodes else number[0]

    return text if options.numbered else NUMBER.sub(name, text)


def _cut(text: str, cells: int) -> str:
    """Return the text, escaped and clipped to a number of cells. A letter may take two cells."""
    plain = shown(text)
    return plain if cell_len(plain) <= cells else f"{set_cell_size(plain, cells - 1)}{CUT}"


def _equal(*words: str) -> str:
    """Return the words joined by equals signs, each word once."""
    return " = ".join(dict.fromkeys(filter(None, words)))


def _has_type(info: NodeInfo) -> bool:
    return info.created.first_value is not None


def _type(info: NodeInfo) -> str:
    value = info.created.first_value
    assert value is not None  # the caller has checked `_has_type`
    return f"{shape_text(value.shape)} {dtype_text(value.dtype)}  {bytes_text(value.nbytes)}"


def _keeps(info: NodeInfo) -> bool:
    return info.created.kind == "op" and bool(info.op.saved) and not info.created.untracked


def _rule_count(info: NodeInfo) -> int:
    if info.created.kind != "op" or info.created.untracked or not info.op.rules:
        return 0
    return min(len(info.created.inputs), MAX_RULES)
