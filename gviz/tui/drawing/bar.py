"""The timeline as one row: what is past, what is to come, phase boundaries, marks and errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gviz.trace.timeline import Timeline
from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import Line, line

CROWDED = 6
"""Boundaries closer than this many cells on average say nothing and are left out."""

WIDEST = 4096
"""No bar has more cells, so none shows more than these can."""

SEARCHED = 200_000
"""In a longer recording the first nan is looked for only when somebody asks: that goes through every value."""


@dataclass(frozen=True, slots=True)
class Landmarks:
    """What stands on the bar whatever the position is, as event numbers."""

    length: int
    boundaries: tuple[tuple[int, ...], ...]
    """Those of phases, and those of iterations, for where the former are too many; none that no bar has room for."""
    marks: tuple[int, ...]
    bad: tuple[int, ...]


def landmarks(timeline: Timeline) -> Landmarks:
    """Read the landmarks of a recording."""
    first_bad = timeline.troubles.first_bad() if len(timeline) <= SEARCHED else 0
    return Landmarks(
        len(timeline),
        tuple(
            tuple(span.start for span in spans[1:])
            for spans in (timeline.phases, timeline.iterations)
            if _is_uncrowded(len(spans) - 1, WIDEST)  # a long recording has thousands, and this is asked at each step
        ),
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
    return next((starts for starts in known.boundaries if _is_uncrowded(len(starts), room)), ())


def _is_uncrowded(number: int, room: int) -> bool:
    return number * CROWDED <= room


def _set(row: list[str], known: Landmarks, positions: Iterable[int], glyph: str) -> set[int]:
    cells = {column(known, position, len(row)) for position in positions} if row else set()
    for cell in cells:
        row[cell] = glyph
    return cells


def _style(at: int, now: int, bad: set[int]) -> str:
    return "now" if at == now else "error" if at in bad else "brand" if at < now else "muted"
