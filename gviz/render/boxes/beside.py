"""The rows of a box with what they would be in another course of events beside them: ``9 → 25``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gviz.render.boxes.room import Outline
from gviz.render.boxes.row import Row
from gviz.render.boxes.rows import Now
from gviz.value_text import fitting, or_unknown

Rows = Callable[[Outline, Now], tuple[Row, ...]]

_LABEL = 5
"""Characters of a usual label."""


def rows_beside(rows: Rows, place: Outline, now: Now) -> tuple[Row, ...]:
    """The rows of a place, as they are and, where the other course has another number, as they would be."""
    if now.other is None:
        return rows(place, now)
    calm = replace(now, moment=replace(now.moment, event=None), other=None)  # sums, and not what is added just now
    there = replace(calm, states=now.other)
    narrow = replace(place, width=(place.width + _LABEL - 2) // 2)
    forms = [(rows(room, calm), rows(room, there)) for room in (place, narrow)]
    return tuple(
        _row(pairs, place.width) for pairs in zip(*[zip(old, new, strict=False) for old, new in forms], strict=False)
    )


def _row(forms: tuple[tuple[Row, Row], ...], width: int) -> Row:
    """One row from its forms, the wider first."""
    old, new = forms[0]
    if new.text == old.text:
        return old
    after = [or_unknown(there.text) for _, there in forms]
    texts = [*[f"{here.text} → {text}" for (here, _), text in zip(forms, after, strict=True)], f"→ {after[-1]}"]
    return replace(old, text=fitting(texts, width - len(old.label) - 1), style="bad" if new.style == "bad" else "sum")
