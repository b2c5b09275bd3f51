"""A box as lines of text: a border that shows its kind and state, a title in the border, and rows of text.

`Appearance` is the look of all boxes and lines at one moment. Together with the layout it is the whole input of the
drawing. Every state is visible without colour: the current box has double lines, pending and freed boxes have dashed
lines, a box that a backward pass made has heavy lines, an error has a ``!``, and the selected box has brackets around
its title.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size

from gviz.render.layout import Edge, Key
from gviz.values.plain_text import without_beginning

Run = tuple[str, str]
"""``(text, style name)``; an empty style name is ordinary text."""

Line = tuple[Run, ...]

EdgeState = Literal["freed", "pending", "untracked", "plain", "active", "gradient", "flowing"]
"""The state of a line.

- freed: the graph is released; pending: its user does not exist yet; untracked: outside autograd
- active: its user is being made; gradient: a gradient has flowed over it; flowing: one flows in this event
"""

EDGE_STATES: tuple[EdgeState, ...] = ("freed", "pending", "untracked", "plain", "active", "gradient", "flowing")
"""Ascending importance. Where several lines of a net share a cell, the state that comes last is shown."""

EDGE_STYLES = ("muted", "muted", "muted", "edge", "current", "gradient", "current")
"""The style of a line in each state."""


class Face(NamedTuple):
    """The look of a box: its title and a note about its state are in the upper border, its rows are below it.

    `role` is leaf, parameter, constant, op, root, chip or module. `states` are among current, receiving, running,
    pending, freed, error, and backward (made by a backward pass). `stop` marks a breakpoint.
    """

    title: str
    rows: tuple[Line, ...] = ()
    role: str = "op"
    states: frozenset[str] = frozenset()
    note: str = ""
    stop: bool = False


@dataclass(frozen=True, slots=True)
class Appearance:
    """The look of a graph at one moment: a face per box, and the lines that are not plain."""

    faces: Mapping[Key, Face] = field(default_factory=dict)
    edges: Mapping[Edge, EdgeState] = field(default_factory=dict)
    selected: frozenset[Key] = frozenset()


class Border(NamedTuple):
    """The characters of a border: corners from upper left to lower right, the four sides, and where a line leaves."""

    corners: str
    top: str
    side: str
    bottom: str
    down: str
    right: str


SQUARE = Border("┌┐└┘", "─", "│", "─", "┬", "├")
ROUND = Border("╭╮╰╯", "─", "│", "─", "┬", "├")
ROOT = Border("┌┐╘╛", "─", "│", "═", "╤", "├")
DOUBLE = Border("╔╗╚╝", "═", "║", "═", "╤", "╟")
HEAVY = Border("┏┓┗┛", "━", "┃", "━", "┯", "┠")
DASHED = Border("┌┐└┘", "╌", "╎", "╌", "┬", "├")
DASHED_ROUND = Border("╭╮╰╯", "╌", "╎", "╌", "┬", "├")

ASCII_SQUARE = Border("++++", "-", "|", "-", "+", "+")
ASCII_ROUND = Border("..''", "-", "|", "-", "+", "+")
ASCII_ROOT = Border("++++", "-", "|", "=", "+", "+")
ASCII_DOUBLE = Border("####", "=", "#", "=", "#", "#")
ASCII_HEAVY = Border("@@@@", "-", "|", "-", "+", "+")
ASCII_DASHED = Border("++++", "~", ":", "~", "+", "+")
ASCII_DASHED_ROUND = Border("..''", "~", ":", "~", "+", "+")

ROUNDED = frozenset({"leaf", "parameter", "constant", "chip"})


class BoxFrame(NamedTuple):
    """The inputs of a box's picture besides its face.

    `port` is the offset of its line along the lower (or right) border.
    """

    width: int
    height: int
    port: int | None
    receives: bool
    selected: bool
    rightward: bool
    ascii: bool


def border(face: Face, *, ascii: bool) -> Border:
    """Return the border for the role and the states of a box."""
    rounded = face.role in ROUNDED
    if "current" in face.states:
        return ASCII_DOUBLE if ascii else DOUBLE
    if "pending" in face.states or "freed" in face.states:
        if rounded:
            return ASCII_DASHED_ROUND if ascii else DASHED_ROUND
        return ASCII_DASHED if ascii else DASHED
    if "backward" in face.states:
        return ASCII_HEAVY if ascii else HEAVY
    if rounded:
        return ASCII_ROUND if ascii else ROUND
    if face.role == "root":
        return ASCII_ROOT if ascii else ROOT
    return ASCII_SQUARE if ascii else SQUARE


def border_style(face: Face, *, selected: bool) -> str:
    """Return the style name of the border: the most important state, or else the role."""
    if "error" in face.states:
        return "error"
    if face.states & {"current", "running"}:
        return "current"
    if selected:
        return "selected"
    if face.states & {"pending", "freed"}:
        return "muted"
    return "gradient" if face.states & {"backward", "receiving"} else face.role


@lru_cache(maxsize=8192)
def box_lines(face: Face, frame: BoxFrame) -> tuple[Line, ...]:
    """Return the lines of a box, each exactly ``frame.width`` cells wide."""
    kind = border(face, ascii=frame.ascii)
    style = border_style(face, selected=frame.selected)
    inner = frame.width - 2
    lines: list[Line] = [_top(face, frame, kind, style)]
    for number in range(1, frame.height - 1):
        row = face.rows[number - 1] if number <= len(face.rows) else ()
        right = _right_port(frame, kind) if frame.rightward and frame.port == number else kind.side
        lines.append(((kind.side, style), *_fitted(row, inner, ascii=frame.ascii), (right, style)))
    lines.append(_bottom(frame, kind, style))
    return tuple(lines)


def _top(face: Face, frame: BoxFrame, kind: Border, style: str) -> Line:
    """Return the upper border with the title and, if there is room, the note."""
    if frame.width < 5:
        return ((set_cell_size(kind.corners[0] + face.title, frame.width - 1), style), (kind.corners[1], style))
    bad = "error" in face.states
    before, after = ("[", "]") if frame.selected else ("", " ")
    before += "!" if bad else "" if frame.selected or face.stop else " "
    mark = ("*" if frame.ascii else "●") if face.stop else ""
    room = frame.width - 3 - len(before) - len(mark)
    title = without_beginning(face.title, room, "..." if frame.ascii else "…", cell_len)
    title = clipped(title, room, ascii=frame.ascii)
    note = _note(face.note, room - cell_len(title) - 3)
    rest = kind.top * (room - cell_len(title) - cell_len(note))
    shown = "error" if bad else "selected" if frame.selected else "muted" if style == "muted" else "title"
    noted = "error" if bad else "current" if "current" in face.states else "muted"
    head: Line = ((kind.corners[0], style), *(((mark, "error"),) if mark else ()), (before, style))
    left: Line = (*head, (title, shown), (after + rest, style))
    return (*left, (note, noted), (kind.corners[1], style))


def _note(note: str, room: int) -> str:
    """Return the note between blanks, or as many of its last words as there is room for."""
    words = note.removeprefix("! ").split()
    while words and cell_len(" ".join(words)) > room:
        words.pop(0)
    return f" {' '.join(words)} " if words else ""


def _bottom(frame: BoxFrame, kind: Border, style: str) -> Line:
    plain = kind.bottom * (frame.width - 2)
    if frame.port is None or frame.rightward or not 0 < frame.port < frame.width - 1:
        return ((kind.corners[2] + plain + kind.corners[3], style),)
    left = kind.corners[2] + plain[: frame.port - 1]
    right = plain[frame.port :] + kind.corners[3]
    if frame.receives:
        return (left, style), ("^" if frame.ascii else "▲", "gradient"), (right, style)
    return ((left + kind.down + right, style),)


def _right_port(frame: BoxFrame, kind: Border) -> str:
    return ("<" if frame.ascii else "◄") if frame.receives else kind.right


def _fitted(row: Line, width: int, *, ascii: bool) -> Line:
    """Return a row's runs after a blank, clipped or padded to exactly `width` cells."""
    runs: list[Run] = [(" ", "")]
    room = width - 1
    for text, style in row:
        piece = clipped(text, room, ascii=ascii)
        runs.append((piece, style))
        room -= cell_len(piece)
        if cell_len(piece) < cell_len(text) or room <= 0:
            break
    if room > 0:
        runs.append((" " * room, ""))
    return tuple(runs) if width > 0 else ()


def clipped(text: str, width: int, *, ascii: bool = False) -> str:
    """Return the text in at most `width` cells, with an ellipsis where it was clipped."""
    if cell_len(text) <= width:
        return text
    mark = "..." if ascii else "…"
    if width < len(mark):
        return set_cell_size(text, width)
    return set_cell_size(text, width - len(mark)).rstrip() + mark
