"""How large an SVG of Graphviz is drawn, and how large it is in a cell of a notebook, where nobody can enlarge it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

CELL = 620
"""Points that a cell is wide, beside a list of files; what is wider has a scroll bar."""
USUAL, READABLE = 0.75, 0.7
"""How many times its size a picture is drawn there: its text as large as that beside it, and not much smaller."""

SIZE = re.compile(r'<svg width="([\d.]+)pt" height="([\d.]+)pt"')


def scaled(text: str, factor: float) -> str:
    """The SVG so many times as large as its coordinates say."""
    return SIZE.sub(lambda size: '<svg width="{:g}pt" height="{:g}pt"'.format(*times(size, factor)), text, count=1)


def times(size: re.Match[str], factor: float) -> tuple[float, float]:
    """So many times the width and height of an SVG, in points."""
    return round(float(size[1]) * factor), round(float(size[2]) * factor)


def in_a_cell(drawn: Callable[[Literal["auto", "TB"]], str]) -> str:
    """What is drawn, as wide as a cell at most if its text can be read then; else from top to bottom, if that is less
    wide."""
    text = drawn("auto")
    if _width(text) * READABLE > CELL:
        text = min(text, drawn("TB"), key=_width)
    width = _width(text)
    return scaled(text, min(USUAL, max(READABLE, CELL / width))) if width else text


def _width(text: str) -> float:
    """How many points wide an SVG is; 0 if it does not say so."""
    size = SIZE.search(text)
    return float(size[1]) if size else 0.0
