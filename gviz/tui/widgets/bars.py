"""The scroll bar beside a panel, painted in one go."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.strip import Strip


class Bar(ScrollBar):
    """A column of cells without border and padding.

    Most steps move one, some three; by way of everything that a row of any widget may have, each takes a millisecond.
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        """The rows of a part of the bar."""
        bar = self.render()
        if not isinstance(bar, ScrollBarRender) or not isinstance(bar.style, Style) or self.size.width != 1:
            return super().render_lines(crop)
        rows = _rows(
            self.size.height, bar.virtual_size, bar.window_size, bar.position, bar.style, self.visual_style.rich_style
        )
        _, background = self.background_colors
        for each in self.get_line_filters():
            rows = [row.apply_filter(each, background) for row in rows]
        return rows[crop.y : crop.bottom]


_DEFAULT = Color.default()


@lru_cache(maxsize=256)
def _rows(height: int, whole: int, seen: int, position: float, style: Style, base: Style) -> list[Strip]:
    """All rows of a bar of whole cells, as `ScrollBar.renderer` draws it."""
    drawn = ScrollBar.renderer.render_bar(
        height, whole, seen, position, back_color=style.bgcolor or _DEFAULT, bar_color=style.color or _DEFAULT
    )
    return [Strip([cell], 1) for cell in Segment.apply_style(drawn.segments, base)]
