"""The rows of a box with what they would be in another course of events beside them: ``9 → 25``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from gviz.render.boxes.brief_room import GAP
from gviz.render.boxes.room import Outline
from gviz.render.boxes.row import Row
from gviz.render.boxes.rows import Now
from gviz.value_text import CUT, or_unknown

Rows = Callable[[Outline, Now], tuple[Row, ...]]

_LABEL = 5
"""Characters of a usual label."""
_WIDE = 80
"""Characters in which every number is written out, or said not to be known."""


def rows_beside(rows: Rows, place: Outline, now: Now) -> tuple[Row, ...]:
    """The rows of a place, as they are and, where the other course has another number, as they would be."""
    if now.other is None:
        return rows(place, now)
    calm = replace(now, moment=replace(now.moment, event=None), other=None)  # sums, and not what is added just now
    there = replace(calm, states=now.other)
    narrow = replace(place, width=(place.width + _LABEL - 2) // 2)
    wide = replace(place, width=_WIDE)
    forms = [(rows(room, calm), rows(room, there)) for room in (place, narrow)]
    pairs = zip(*[zip(old, new, strict=False) for old, new in forms], strict=False)
    return tuple(_fitting([_forms(*each) for each in zip(pairs, rows(wide, there), strict=False)], place.width))


def _forms(pairs: tuple[tuple[Row, Row], ...], whole: Row) -> tuple[Row, ...]:
    """One row in all its forms, the wider first; `whole` is what the other course has where there is room for it."""
    old, new = pairs[0]
    if new.text == old.text:
        return (old,)
    after = [or_unknown(there.text, whole.text) for _, there in pairs]
    both = [f"{here.text} → {text}" for (here, _), text in zip(pairs, after, strict=True)]
    texts = [*[text for text in both if CUT not in text], f"→ {after[-1]}", CUT]
    return tuple(replace(old, text=text, style="bad" if new.style == "bad" else "sum") for text in texts)


def _fitting(rows: Sequence[tuple[Row, ...]], width: int) -> Iterator[Row]:
    """Each row in the first of its forms that has room, together with one that stands beside it."""
    at = 0
    while at < len(rows):
        line = rows[at : at + 1 + any(forms[0].beside for forms in rows[at + 1 : at + 2])]
        ways = list(product(*line))
        fits = (way for way in ways if sum(row.characters for row in way) + GAP * (len(way) - 1) <= width)
        yield from next(fits, ways[-1])
        at += len(line)
