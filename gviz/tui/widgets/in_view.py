"""Where the view of a graph goes: to what happens, and to where it was when boxes are laid out anew."""

from __future__ import annotations

from collections.abc import Iterable

from textual.geometry import Region

from gviz.render.cells.moments import Moments
from gviz.render.layout import PlacedBox


def scrolled_to(view: Region, box: Region, others: Iterable[Region]) -> tuple[int | None, int | None]:
    """Where to scroll so that a box is in the middle, in a direction in which it is not wholly in view; None: stay.

    The nearest of the `others` (the other end of a line) is kept in view with it where there is room for both.
    """
    near = min(others, key=lambda other: _distance(box, other), default=box)
    both = box.union(near)
    across = both if both.width <= view.width else box
    down = both if both.height <= view.height else box
    return _scrolled(view.x, view.width, across.x, across.width), _scrolled(view.y, view.height, down.y, down.height)


def _scrolled(start: int, room: int, first: int, size: int) -> int | None:
    return None if start <= first and first + size <= start + room else first - (room - size) // 2


def _distance(box: Region, other: Region) -> int:
    return abs(box.y - other.y) + abs(box.x - other.x)


def kept_in_view(now: Moments | None, other: Moments, view: Region) -> tuple[PlacedBox, PlacedBox] | None:
    """Where the box nearest to the middle of the view stands in two drawings of an iteration, if both have one."""
    if now is None or now.shape.iteration != other.shape.iteration:
        return None
    (x, y), places = view.center, other.canvas.layout.places
    boxes = [box for box in now.canvas.visible(range(view.y, view.bottom))[0] if box.key in places]
    if not boxes:
        return None
    box = min(boxes, key=lambda box: (abs(box.y + box.height / 2 - y), abs(box.x + box.width / 2 - x)))
    return box, places[box.key]
