"""Where the view of a graph goes: to what happens, and to where it was when boxes are laid out anew."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from textual.geometry import Offset, Region, Size

from gviz.render.cells.moments import Moments
from gviz.render.layout import PlacedBox

Span = tuple[int, int]

NAMED = 12
"""So many columns of a box say which it is."""


def scrolled_to(
    view: Region,
    canvas: Size,
    box: Region,
    others: Iterable[Region] = (),
    around: Sequence[Region] = (),
    linked: Collection[Region] = (),
    ahead: Collection[Region] = (),
) -> Offset | None:
    """Where to scroll so that a box is wholly in view; None: it is.

    The nearest of the `others` (the other end of a line) is kept in view with it where there is room for both. A view
    that moves shows as much as it can of the boxes `around`: whole ones, above all those that are `linked` to it, least
    those that are yet `ahead`, and of one that is cut its name, which stands at the left of its first row.
    """
    needed = _joined(box, others, view)
    if view.contains_region(needed):
        return None
    reach = needed.grow((view.height, view.width, view.height, view.width))
    around = [each for each in around if reach.overlaps(each)]
    xs = _offsets((view.x, view.width), (needed.x, needed.right), [(each.x, each.right) for each in around])
    ys = _offsets((view.y, view.height), (needed.y, needed.bottom), [(each.y, each.bottom) for each in around])
    most = Offset(max(canvas.width - view.width, 0), max(canvas.height - view.height, 0))
    seen = [
        Region(x, y, view.width, view.height)
        for x in {max(min(x, most.x), 0): None for x in xs}
        for y in {max(min(y, most.y), 0): None for y in ys}
    ]
    joined = [(each, 1 if each in ahead else 3 if each in linked else 2) for each in around]
    return max(seen, key=lambda each: (_shown(each, joined), -_jump(view, each, needed))).offset


def _joined(box: Region, others: Iterable[Region], view: Region) -> Region:
    """A box with the nearest of some others, in a direction in which there is room for both."""
    both = box.union(min(others, key=lambda other: _distance(box, other), default=box))
    x, width = (both.x, both.width) if both.width <= view.width else (box.x, box.width)
    y, height = (both.y, both.height) if both.height <= view.height else (box.y, box.height)
    return Region(x, y, width, height)


def _offsets(view: Span, needed: Span, around: Iterable[Span]) -> list[int]:
    """Where a view may begin that has what is needed: where it does now, around it, or where a box begins or ends.

    What is longer than the view is seen from its beginning.
    """
    (now, room), (first, end) = view, needed
    if end - room > first:
        return [first]
    wished = (now, (first + end - room) // 2, first, end - room, *(at for a, b in around for at in (a, b - room)))
    return [at for at in dict.fromkeys(wished) if end - room <= at <= first]


def _shown(view: Region, around: Iterable[tuple[Region, int]]) -> int:
    """How much a view shows of some boxes, each with what it counts for: less than nothing for one without its name."""
    shown = 0
    for box, weight in around:
        if view.contains_region(box):
            shown += weight
        elif box.x < view.right and box.right > view.x and box.y < view.bottom and box.bottom > view.y:
            named = box.x >= view.x and box.y >= view.y and view.right - box.x >= NAMED
            shown += 1 if named else -1
    return shown


def _jump(view: Region, other: Region, needed: Region) -> int:
    """How far another view is from this one sideways, and its middle from that of what is needed."""
    return abs(other.x - view.x) + abs(2 * (other.y - needed.y) + other.height - needed.height)


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
