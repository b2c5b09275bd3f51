"""One line of a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len

from gviz.render.boxes.tensor_pictures import THUMBNAIL_LINES, Numbers, Shades

Style = Literal["title", "text", "value", "grad", "sum", "muted", "bad", "saved"]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a box: its text and the name of its style. The label is at the left, the text at the right.

    A small matrix also has its elements as a `grid`, and a thumbnail its `shades`; renderers that cannot draw those
    show `text`. A row with `shares_line` is at the right end of the line of the row before it. The text of a row that
    `is_left` follows its label.
    """

    text: str
    style: Style
    label: str = ""
    grid: Numbers = ()
    shades: Shades = ()
    shares_line: bool = False
    is_left: bool = False

    @property
    def characters(self) -> int:
        """Return the row's width in cells. A letter may take two."""
        return cell_len(self.label) + bool(self.label) + cell_len(self.text)

    @property
    def lines(self) -> int:
        """Return the row's height in lines of text."""
        return len(self.grid) or (THUMBNAIL_LINES if self.shades else 1)
