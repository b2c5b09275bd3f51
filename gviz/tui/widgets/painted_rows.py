"""The rows of a panel as they were painted last, so that only those are painted again that look different."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Offset, Size
from textual.strip import Strip

View = tuple[Offset, Size]
"""What of a panel is seen: how far it is scrolled, and how large it is."""


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

    def row(self, y: int, paint: Callable[[int], Strip], view: View) -> Strip:
        """Row `y` as it was painted last, or now."""
        if view != self._view:
            self._strips.clear()
            self._view = view
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = paint(y)
        return strip

    def changed(self, paint: Callable[[int], Strip], height: int) -> list[int]:
        """The rows that look different now; they are painted."""
        before, self._strips = self._strips, {y: paint(y) for y in range(height)}
        return [y for y, strip in self._strips.items() if before.get(y) != strip]
