"""Where the view of a graph goes: to what happens, and to where it was when boxes are laid out anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.geometry import Region

from gviz.render.cells.moments import Moments
from gviz.render.layout import PlacedBox

Span = tuple[int, int]


def scrolled_to(
    view: Region,
    box: Region,
    others: Iterable[Region],
    around: Sequence[Region] = (),
    linked: Iterable[Region] = (),
) -> tuple[int | None, int | None]:
    """Where to scroll so that a box is near the middle, in a direction in which it is not wholly in view; None: stay.

    The nearest of the `others` (the other end of a line) is kept in view with it where there is room for both. Where
    the view moves, it shows the nearest of those `linked` to it, too, and cuts few of the boxes `around` at its edges.
    """
    needed = _joined(box, others, view)
    if view.contains_region(needed):
        return None, None
    wished = _joined(needed, linked, view)
    rows = [(each.y, each.bottom) for each in around]
    y = _scrolled((view.y, view.bottom), (needed.y, needed.bottom), (wished.y, wished.bottom), rows)
    top = view.y if y is None else y
    beside = [(each.x, each.right) for each in around if each.y < top + view.height and each.bottom > top]
    return _scrolled((view.x, view.right), (needed.x, needed.right), (wished.x, wished.right), beside), y


def _joined(box: Region, others: Iterable[Region], view: Region) -> Region:
    """A box with the nearest of some others, in a direction in which there is room for both."""
    both = box.union(min(others, key=lambda other: _distance(box, other), default=box))
    x, width = (both.x, both.width) if both.width <= view.width else (box.x, box.width)
    y, height = (both.y, both.height) if both.height <= view.height else (box.y, box.height)
    return Region(x, y, width, height)


def _scrolled(view: Span, needed: Span, wished: Span, around: Sequence[Span]) -> int | None:
    if view[0] <= needed[0] and needed[1] <= view[1]:
        return None
    (first, end), room = wished, view[1] - view[0]
    middle = first - (room - (end - first)) // 2
    most = max((span[1] for span in around), default=middle + room) - room
    whole = [at for span in around for at in (span[0], span[1] - room) if abs(at - middle) <= room // 4]
    seen = [max(min(at, most), 0) for at in (middle, *whole) if end - room <= at <= first]
    return min(seen, key=lambda at: (_cuts(at, at + room, around), abs(at - middle)), default=middle)


def _cuts(start: int, end: int, around: Sequence[Span]) -> int:
    return sum(first < start < last or first < end < last for first, last in around)


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
