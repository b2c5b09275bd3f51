"""Two aligned nodes as boxes side by side, or one below the other on a narrow screen."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest

from gviz.compare.alignment import Pair
from gviz.compare.compared_iteration import Side
from gviz.compare.recording_comparison import Comparison, Difference, Kind, gradient
from gviz.explain.display_names import title
from gviz.explain.tracking import why_untracked
from gviz.render.cells.box import BoxFrame, Face, box_lines
from gviz.render.comparison_table import apart, titles
from gviz.trace.graph_state import NodeInfo
from gviz.tui.glyphs import Glyphs
from gviz.tui.styled_lines import STYLES, Line, columns, line, wrapped
from gviz.values.plain_text import clipped, file_line
from gviz.values.value import Value
from gviz.values.value_text import kind_text, short

SIDE_BY_SIDE = 76
"""The smallest width in cells for boxes side by side."""
_LONGEST = 32
"""The most characters of a value."""

Fact = tuple[str, str, str, frozenset[Kind]]
"""A row of a box: its label, its text and style, and the kinds of differences that it shows."""


def pair_lines(
    comparison: Comparison, pair: Pair, names: tuple[str, str], width: int, glyphs: Glyphs
) -> Iterator[Line]:
    """Yield both boxes of a row with a mark at each difference, and the sizes of the differences below.

    `names` are in the borders of the boxes.
    """
    differences = [each for each in comparison.differences if each.pair == pair]
    room = (width - 2) // 2 if width >= SIDE_BY_SIDE else width
    sides = zip((comparison.a, comparison.b), pair, titles(comparison, *names, room // 2), strict=True)
    left, right = [_box(side, node, name, differences, room, glyphs) for side, node, name in sides]
    if width >= SIDE_BY_SIDE:
        blank: Line = ((" " * room, ""),)
        yield from ((*x, ("  ", ""), *y) for x, y in zip_longest(left, right, fillvalue=blank))
    else:
        yield from (*left, *right)
    sizes = "; ".join(f"{each.kind} {text}" for each in differences if (text := apart(each)))
    if sizes:
        yield from wrapped(line((sizes, "sum")), width)


def _box(
    side: Side, node: int, name: str, differences: Sequence[Difference], width: int, glyphs: Glyphs
) -> tuple[Line, ...]:
    """Return the box of one side in a width; for a missing node, a box that says so."""
    note = glyphs.text(name)
    if not node:
        face = Face(
            "no such node", ((("only the other side has it", "muted"),),), states=frozenset({"pending"}), note=note
        )
    else:
        info = side.infos[node]
        kinds = {each.kind for each in differences}
        output_nr = next((each.output_nr for each in differences if each.output_nr), 0)
        room = min(width - 4 - len("| gradient "), _LONGEST)
        rows = tuple(_row(fact, kinds, width - 4, glyphs) for fact in _facts(side, info, output_nr, kinds, room))
        face = Face(glyphs.text(title(info)), rows, info.created.kind, note=note)
    frame = BoxFrame(
        width, len(face.rows) + 2, port=None, receives=False, selected=False, rightward=False, ascii=glyphs.ascii
    )
    return tuple(tuple((text, _style(style)) for text, style in row) for row in box_lines(face, frame))


def _style(name: str) -> str:
    return name if name in STYLES else ""


def _row(fact: Fact, kinds: Collection[Kind], width: int, glyphs: Glyphs) -> Line:
    """Return ``| value      0.46``; a difference has the same mark as in the list."""
    label, text, style, shows = fact
    differs = not shows.isdisjoint(kinds)
    head = line(("| " if differs else "  ", "sum"), (label, "muted"))
    return columns(head, line((glyphs.text(text), "sum" if differs else style)), width, glyphs.cut)


def _facts(side: Side, info: NodeInfo, output_nr: int, kinds: set[Kind], room: int) -> Iterator[Fact]:
    values, state = side.values[info.node], side.states[info.node]
    value = values[output_nr] if output_nr < len(values) else None
    yield "value", _text(value, "not stored", room), "value", frozenset({"value"})
    if value is not None and (value.shape or kinds & {"shape", "dtype"}):
        yield "shape", kind_text(value), "muted", frozenset({"shape", "dtype"})
    grad = gradient(state, output_nr)[0] if state is not None and output_nr < len(state.outputs) else None
    yield "gradient", _text(grad, "none", room), "grad", frozenset({"gradient"})
    if "kept" in kinds:
        yield ".grad before", _text(side.kept.get(info.node, (None, 0))[0], "none", room), "grad", frozenset({"kept"})
    if "inputs" in kinds:
        yield "from", ", ".join(f"#{node}" for node, _ in info.created.inputs), "", frozenset({"inputs"})
    if "arguments" in kinds:
        text = ", ".join(f"{name} {value}" for name, value in info.created.attrs)
        yield "arguments", clipped(text, 60) or "none", "", frozenset({"arguments"})
    if "tracking" in kinds:
        untracked = f"not tracked: {why_untracked(info.created)}" if info.created.untracked else "tracked"
        yield "autograd", untracked, "", frozenset({"tracking"})
    if info.frames:
        frame = info.frames[0]
        yield "at", file_line(frame.path, frame.line), "", frozenset()


def _text(value: Value | None, nothing: str, room: int) -> str:
    return nothing if value is None else short(value, room)
