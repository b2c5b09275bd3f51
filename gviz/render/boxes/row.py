"""One line of a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len

from gviz.render.boxes.tensors import THUMBNAIL_LINES, Numbers, Shades

Style = Literal["title", "text", "value", "grad", "sum", "muted", "bad", "saved"]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a box: what it says, and as what (the name of a style). The label stands at the left.

    A small matrix also has its elements as a `grid`, and a thumbnail its `shades`; who cannot draw those shows `text`.
    A row `beside` the one before it stands at the right end of the same line.
    """

    text: str
    style: Style
    label: str = ""
    grid: Numbers = ()
    shades: Shades = ()
    beside: bool = False

    @property
    def characters(self) -> int:
        """How many cells it takes in one line, of which a letter may take two."""
        return cell_len(self.label) + bool(self.label) + cell_len(self.text)

    @property
    def lines(self) -> int:
        """How many lines of text it is as high as."""
        return len(self.grid) or (THUMBNAIL_LINES if self.shades else 1)
