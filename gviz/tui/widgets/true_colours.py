"""Widgets all of whose colours are the theme's."""

from __future__ import annotations

from collections.abc import Sequence

from textual.filter import ANSIToTruecolor, LineFilter
from textual.widget import Widget


class TrueColours(Widget):
    """Nothing in it has a colour by number, so Textual need not look for one in every row that it puts together."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """All but the one that looks."""
        return [each for each in super().get_line_filters() if not isinstance(each, ANSIToTruecolor)]
