"""The rows of a panel as they were painted last, so that only those are painted again that look different."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

from textual.scroll_view import ScrollView
from textual.strip import Strip


class View(NamedTuple):
    """What of a panel is seen, in cells: how far it is scrolled, and how large it is, scroll bars not counted.

    Textual works each of these numbers out anew whenever it is asked; drawing asks once and not once a row.
    """

    left: int
    top: int
    width: int
    height: int

    @classmethod
    def of(cls, panel: ScrollView) -> Self:
        """What is seen of a panel now."""
        (left, top), (width, height) = panel.scroll_offset, panel.scrollable_content_region.size
        return cls(int(left), int(top), width, height)


Paint = Callable[[int, View], Strip]
"""Paints one row of a view, counted from its top."""


class PaintedRows:
    """The visible rows of one view, counted from its top."""

    def __init__(self) -> None:
        self._strips: dict[int, Strip] = {}
        self._view: View | None = None

    def holds(self, view: View) -> bool:
        """Whether anything was painted of this view."""
        return view == self._view and bool(self._strips)

    def forget(self) -> None:
        """All of it is to be painted."""
        self._strips.clear()

    def row(self, y: int, paint: Paint, view: View) -> Strip:
        """Row `y` as it was painted last, or now."""
        if view != self._view:
            self._strips.clear()
            self._view = view
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = paint(y, view)
        return strip

    def changed(self, paint: Paint, view: View) -> list[int]:
        """The rows of the same view that look different now; they are painted."""
        before, self._strips = self._strips, {y: paint(y, view) for y in range(view.height)}
        return [y for y, strip in self._strips.items() if before.get(y) != strip]
