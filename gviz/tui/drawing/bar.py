"""The timeline as one row: what is past, what is to come, phase boundaries, marks and errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gviz.trace.timeline import Timeline
from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import Line, line

CROWDED = 6
"""Boundaries closer than this many cells on average say nothing and are left out."""

SEARCHED = 200_000
"""In a longer recording the first nan is looked for only when somebody asks: that goes through every value."""


@dataclass(frozen=True, slots=True)
class Landmarks:
    """What stands on the bar whatever the position is, as event numbers."""

    length: int
    phases: tuple[int, ...]
    iterations: tuple[int, ...]
    marks: tuple[int, ...]
    bad: tuple[int, ...]


def landmarks(timeline: Timeline) -> Landmarks:
    """Read the landmarks of a recording."""
    first_bad = timeline.troubles.first_bad() if len(timeline) <= SEARCHED else 0
    return Landmarks(
        len(timeline),
        tuple(phase.start for phase in timeline.phases[1:]),
        tuple(iteration.start for iteration in timeline.iterations[1:]),
        tuple(seq for seq, _ in timeline.marks),
        (*timeline.errors, *([first_bad] if first_bad else [])),
    )


def bar(known: Landmarks, position: int, width: int, glyphs: Glyphs) -> Line:
    """The bar, and the position as numbers at its right end."""
    label = f" {position}/{known.length} "
    room = bar_width(known, width)
    row = [glyphs.past if at <= column(known, position, room) else glyphs.future for at in range(room)]
    _set(row, known, _boundaries(known, room), glyphs.boundary)
    _set(row, known, known.marks, glyphs.mark)
    bad = _set(row, known, known.bad, glyphs.bad)
    now = column(known, position, room)
    if row:
        row[now] = glyphs.cursor
    return line(" ", *((text, _style(at, now, bad)) for at, text in enumerate(row)), f"{label:>{_label_width(known)}}")


def bar_width(known: Landmarks, width: int) -> int:
    """How many cells the bar itself has in a row of `width` cells; it begins in the second one."""
    return max(width - 1 - _label_width(known), 0)


def column(known: Landmarks, position: int, room: int) -> int:
    """The cell of the bar that shows a position."""
    if room <= 1 or not known.length:
        return 0
    return min(round(position * (room - 1) / known.length), room - 1)


def position_at(known: Landmarks, at: int, room: int) -> int:
    """The position a cell of the bar stands for."""
    if room <= 1:
        return 0
    return max(0, min(round(at * known.length / (room - 1)), known.length))


def _label_width(known: Landmarks) -> int:
    return 2 * len(str(known.length)) + 3


def _boundaries(known: Landmarks, room: int) -> tuple[int, ...]:
    for numbers in (known.phases, known.iterations):
        if len(numbers) * CROWDED <= room:
            return numbers
    return ()


def _set(row: list[str], known: Landmarks, positions: Iterable[int], glyph: str) -> set[int]:
    cells = {column(known, position, len(row)) for position in positions} if row else set()
    for cell in cells:
        row[cell] = glyph
    return cells


def _style(at: int, now: int, bad: set[int]) -> str:
    return "now" if at == now else "error" if at in bad else "brand" if at < now else "muted"
