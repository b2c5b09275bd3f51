"""The rows of a box with the numbers of a what-if next to those of the recording: ``9 → 25``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from gviz.render.boxes.box_row import Row
from gviz.render.boxes.box_size import BRIEF_GAP, Outline
from gviz.render.boxes.shown_moment import Now
from gviz.values.value_text import CUT, or_unknown

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
