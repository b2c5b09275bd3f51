"""The lines between the same two boxes, as those of data and of its gradient: they run next to each other.

Graphviz moves such lines apart to the left and to the right. Where the boxes are placed diagonally, that leaves the
lines on top of each other, and where it draws lines one by one, they cross. Here, each of them follows the way of one
of them, at a distance that is perpendicular to the way at any point:

    .------.                         .------.
    | exp  | <==.                    | exp  | <==.
    '------'<---. '==.        =>     '------'    '==.
               '--. '==.                  '---.      '==.
                  .-'-->.------.               '---.     .------.
                        | loss |                    '--> | loss |
                        '------'                         '------'

A line of a gradient is at the left of the data, as seen in the direction of the data. The lines are moved to the other
side, or follow another one of them, where they would otherwise touch a box or cross more lines. Where every way would
be worse than what Graphviz has drawn, that is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import hypot
from typing import NamedTuple

from gviz.render.graphviz.spline import Spline, Spot, between, turn

APART = 10.0
"""Points between the middles of two lines."""
NEAR = 6.5
"""Lines that come nearer to each other than this many points are not clearly apart."""
FAR = 30.0
"""Lines that are farther from each other than this many points somewhere do not run next to each other."""
MOST_LINES = 400
"""In a graph with more lines, each stays where it is. So many would take seconds, and are too many to read."""

LANE = (
    '<<table border="0" cellborder="0" cellspacing="0" cellpadding="0">'
    '<tr><td fixedsize="true" width="1" height="1"></td></tr></table>>'
)
"""A label without text or room, which gives a line its own lane."""

Piece = tuple[Spot, Spot, Spot, Spot]
"""The control points of a Bezier curve."""


class Area(NamedTuple):
    """The place of a box, and whether it is a circle."""

    left: float
    low: float
    right: float
    high: float
    is_round: bool = False

    def contains(self, spot: Spot) -> bool:
        x, y = (self.left + self.right) / 2, (self.low + self.high) / 2
        across, up = (spot[0] - x) * 2 / (self.right - self.left), (spot[1] - y) * 2 / (self.high - self.low)
        return across * across + up * up < 1 if self.is_round else abs(across) < 1 and abs(up) < 1

    def grown(self, by: float) -> Area:
        return Area(self.left - by, self.low - by, self.right + by, self.high + by, self.is_round)


@dataclass(frozen=True, slots=True)
class Line:
    """A line as Graphviz has drawn it, from its tail to its head, and the centre of its label if it has one."""

    tail: str
    head: str
    spline: Spline
    label: Spot | None = None
    has_text: bool = False
    is_back: bool = False
    """Whether its arrow is at the tail, as that of a gradient."""


class Moved(NamedTuple):
    """The new way of a line, and the new centre of its label."""

    spline: Spline
    label: Spot | None


def moved_lines(boxes: Mapping[str, Area], lines: Sequence[Line]) -> dict[int, Moved]:
    """Return the new ways of the lines that were not clearly next to each other, by their numbers."""
    if len(lines) > MOST_LINES:
        return {}
    groups: dict[tuple[str, str], list[int]] = {}
    for number, line in enumerate(lines):
        if line.tail != line.head and {line.tail, line.head} <= boxes.keys():
            groups.setdefault((line.tail, line.head), []).append(number)
    board = _Board(boxes, [trace(line.spline) for line in lines])
    found: dict[int, Moved] = {}
    for numbers in groups.values():
        if len(numbers) > 1:
            found |= board.side_by_side(numbers, [lines[number] for number in numbers])
    return found


@dataclass(slots=True)
class _Board:
    """All boxes, and the points of all lines, where they are now."""

    boxes: Mapping[str, Area]
    traces: list[list[Spot]]
    cells: dict[tuple[int, int], list[tuple[int, Spot, Spot]]] = field(default_factory=dict)
    """The pieces of lines by the squares that they touch: only near ones are compared."""

    def __post_init__(self) -> None:
        for number in range(len(self.traces)):
            self._place(number)

    def _place(self, number: int) -> None:
        for piece in pairwise(self.traces[number]):
            for cell in _cells(*piece):
                self.cells.setdefault(cell, []).append((number, *piece))

    def _replace(self, number: int, new: list[Spot]) -> None:
        for cell in {cell for piece in pairwise(self.traces[number]) for cell in _cells(*piece)}:
            self.cells[cell] = [piece for piece in self.cells[cell] if piece[0] != number]
        self.traces[number] = new
        self._place(number)

    def side_by_side(self, numbers: Sequence[int], lines: Sequence[Line]) -> dict[int, Moved]:
        """Return the new ways of lines between the same boxes; none if they are clearly next to each other."""
        old = [self.traces[number] for number in numbers]
        may_be_far = any(line.has_text for line in lines)  # a label has its own place
        before = _closeness_cost(old, may_be_far=may_be_far)
        if not before:
            return {}
        least, best = before + self._cost(numbers, lines, old), None
        order = sorted(range(len(lines)), key=lambda at: lines[at].is_back)  # from right to left
        shifts = [APART * (at - (len(lines) - 1) / 2) for at in range(len(lines))]
        for base in lines:
            pieces = _extended(_pieces(base.spline))
            for ranks, cost in ((order, 0.0), (order[::-1], TURNED)):
                for aside in (0.0, shifts[-1], shifts[0]):
                    ways = [self._way(base, pieces, shift + aside) for shift in shifts]
                    if any(len(way) == 0 for way in ways):
                        continue
                    by_line = [ways[ranks.index(at)] for at in range(len(lines))]
                    traces = [[*_along(way)] for way in by_line]
                    worth = cost + abs(aside) * ASIDE + self._cost(numbers, lines, traces)
                    if worth < least:
                        least, best = worth, by_line
        if best is None:
            return {}
        found = {}
        for number, line, way in zip(numbers, lines, best, strict=True):
            spline = _with_tips(way, line.spline)
            self._replace(number, trace(spline))
            label = line.label and _moved_label(line.label, trace(line.spline), self.traces[number])
            found[number] = Moved(spline, label)
        return found

    def _way(self, line: Line, pieces: Sequence[Piece], shift: float) -> list[Piece]:
        """Return the way next to that of a line, from box to box; empty if it misses one of them."""
        return _between_boxes(_offset(pieces, shift), self.boxes[line.tail], self.boxes[line.head])

    def _cost(self, numbers: Sequence[int], lines: Sequence[Line], traces: Sequence[Sequence[Spot]]) -> float:
        """Return what is bad about ways: boxes that they touch, lines that they cross, and their length."""
        ends = {lines[0].tail, lines[0].head}
        own = {*numbers}
        cost = 0.0
        for way in traces:
            area = _around(way)
            for key, box in self.boxes.items():
                if key not in ends and _overlap(area, box) and _touches(way, box.grown(TOUCH)):
                    cost += BOX
            crossed = {
                (number, one)
                for piece in pairwise(way)
                for cell in _cells(*piece)
                for number, one, other in self.cells.get(cell, ())
                if number not in own and _cross(*piece, one, other)
            }
            cost += CROSSING * len(crossed)
            cost += LENGTH * sum(hypot(x - at, y - up) for (at, up), (x, y) in pairwise(way))
        return cost


BOX, CROSSING, LENGTH, TURNED, ASIDE = 100.0, 10.0, 0.05, 2.0, 0.1
"""The costs of a box that a line touches, of a crossing, of a point of length, of lines in the other order, and of a
point by which the middle of the lines is moved."""
TOO_NEAR, TOO_FAR = 90.0, 40.0
"""The costs of lines that are not clearly apart, and of those that do not run next to each other."""
TOUCH = 3.0
"""A line that comes nearer to a box than this many points touches it."""


def _closeness_cost(traces: Sequence[Sequence[Spot]], *, may_be_far: bool) -> float:
    """Return what is bad about lines between the same boxes; 0 if they are clearly next to each other."""
    cost = 0.0
    for one, other in combinations(traces, 2):
        if any(_is_near(spot, other, NEAR) for spot in one):
            cost += TOO_NEAR
        elif not may_be_far and not all(_is_near(spot, other, FAR * len(traces) / 2) for spot in one):
            cost += TOO_FAR
    return cost


def _is_near(spot: Spot, trace: Sequence[Spot], most: float) -> bool:
    """Return whether a point is nearer to a line than this many points."""
    x, y = spot
    reach = most + EVERY
    near = (piece for piece in pairwise(trace) if abs(piece[0][0] - x) < reach and abs(piece[0][1] - y) < reach)
    return any(_distance_from_piece(spot, *piece) < most for piece in near)


def _distance_from_piece(spot: Spot, one: Spot, other: Spot) -> float:
    x, y = other[0] - one[0], other[1] - one[1]
    square = x * x + y * y
    part = ((spot[0] - one[0]) * x + (spot[1] - one[1]) * y) / square if square else 0.0
    near = between(one, other, min(max(part, 0.0), 1.0))
    return hypot(spot[0] - near[0], spot[1] - near[1])


def _touches(way: Sequence[Spot], box: Area) -> bool:
    """Return whether a line is in a box somewhere."""
    return any(box.contains(one) or box.contains(between(one, other, 0.5)) for one, other in pairwise(way))


CELL = 40
"""The side of a square of the board in points."""


def _cells(one: Spot, other: Spot) -> set[tuple[int, int]]:
    """Return the squares that a short piece of a line touches."""
    (left, right), (low, high) = sorted((one[0], other[0])), sorted((one[1], other[1]))
    return {
        (x, y)
        for x in range(int(left // CELL), int(right // CELL) + 1)
        for y in range(int(low // CELL), int(high // CELL) + 1)
    }


def _cross(a: Spot, b: Spot, c: Spot, d: Spot) -> bool:
    if max(a[0], b[0]) < min(c[0], d[0]) or max(c[0], d[0]) < min(a[0], b[0]):
        return False
    if max(a[1], b[1]) < min(c[1], d[1]) or max(c[1], d[1]) < min(a[1], b[1]):
        return False
    return turn(a, b, c) * turn(a, b, d) < 0 and turn(c, d, a) * turn(c, d, b) < 0


def _around(trace: Sequence[Spot]) -> Area:
    across, up = zip(*trace, strict=True)
    return Area(min(across), min(up), max(across), max(up))


def _overlap(one: Area, other: Area) -> bool:
    return (
        one.left <= other.right + TOUCH
        and other.left <= one.right + TOUCH
        and one.low <= other.high + TOUCH
        and other.low <= one.high + TOUCH
    )


# ----------------------------------------------------------------------------------------------------------------------
# Ways as Bezier curves.


def _pieces(spline: Spline) -> list[Piece]:
    """Return the curves of a line from tip to tip, each cut in two: an offset curve follows a short one better."""
    knots = spline.knots
    curves = [(knots[at], knots[at + 1], knots[at + 2], knots[at + 3]) for at in range(0, len(knots) - 3, 3)]
    found = [half for curve in curves for half in _cut(curve, 0.5)]
    if spline.start and spline.start != knots[0]:
        found.insert(0, _straight(spline.start, knots[0]))
    if spline.end and spline.end != knots[-1]:
        found.append(_straight(knots[-1], spline.end))
    return found


def _straight(one: Spot, other: Spot) -> Piece:
    return one, between(one, other, 1 / 3), between(one, other, 2 / 3), other


INTO_BOX = 40.0
"""Points by which a way is made longer at its ends. The lines next to it may meet their boxes later."""


def _extended(pieces: Sequence[Piece]) -> list[Piece]:
    """Return a way that goes on straight into both of its boxes."""
    first, last = pieces[0], pieces[-1]
    x, y = _direction(first[0], *first[1:])
    before = first[0][0] - INTO_BOX * x, first[0][1] - INTO_BOX * y
    x, y = _direction(last[3], *last[2::-1])
    after = last[3][0] - INTO_BOX * x, last[3][1] - INTO_BOX * y
    return [_straight(before, first[0]), *pieces, _straight(last[3], after)]


def _direction(spot: Spot, *others: Spot) -> Spot:
    """Return the unit vector from a point to the first of the others that is elsewhere."""
    for x, y in others:
        length = hypot(x - spot[0], y - spot[1])
        if length > SAME:
            return (x - spot[0]) / length, (y - spot[1]) / length
    return 0.0, 0.0


SAME = 0.01


def _offset(pieces: Sequence[Piece], by: float) -> list[Piece]:
    """Return the way that is this many points to the left of another one. It has no gaps at corners."""
    found: list[Piece] = []
    for one, before, after, other in pieces:
        start, end = _direction(one, before, after, other), _direction(other, after, before, one)
        begin = one[0] - by * start[1], one[1] + by * start[0]
        finish = other[0] + by * end[1], other[1] - by * end[0]
        whole = hypot(other[0] - one[0], other[1] - one[1])
        scale = hypot(finish[0] - begin[0], finish[1] - begin[1]) / whole if whole > SAME else 1.0
        reach = hypot(before[0] - one[0], before[1] - one[1]) * scale
        back = hypot(after[0] - other[0], after[1] - other[1]) * scale
        found.append(
            (
                begin,
                (begin[0] + reach * start[0], begin[1] + reach * start[1]),
                (finish[0] + back * end[0], finish[1] + back * end[1]),
                finish,
            )
        )
    for at, (left, right) in enumerate(pairwise([*found])):
        corner = between(left[3], right[0], 0.5)
        found[at] = (*found[at][:3], corner)
        found[at + 1] = (corner, *right[1:])
    return found


STEPS = 16
"""The parts in which a curve is searched for the border of a box."""


def _between_boxes(pieces: Sequence[Piece], tail: Area, head: Area) -> list[Piece]:
    """Return the part of a way between its boxes; empty if it meets one of them nowhere."""
    spots = [(at, step / STEPS) for at in range(len(pieces)) for step in range(STEPS + 1)]
    leaves = next((i for i in reversed(range(len(spots))) if tail.contains(_spot(pieces, spots[i]))), None)
    if leaves is None or leaves + 1 == len(spots):
        return []
    enters = next((i for i in range(leaves + 1, len(spots)) if head.contains(_spot(pieces, spots[i]))), None)
    if enters is None:
        return []
    start = _border(pieces, spots[leaves], spots[leaves + 1], tail)
    end = _border(pieces, spots[enters], spots[enters - 1], head)
    if start >= end:
        return []
    return [*_part(pieces, start, end)]


Place = tuple[int, float]
"""The number of a piece, and the part of it."""


def _spot(pieces: Sequence[Piece], place: Place) -> Spot:
    return _cut(pieces[place[0]], place[1])[0][3]


def _border(pieces: Sequence[Piece], inside: Place, outside: Place, area: Area) -> Place:
    """Return where a way crosses the border of a box between two places, as near as can be seen."""
    if inside[0] != outside[0]:  # the end of a piece is the start of the next one
        return outside
    within, out = inside[1], outside[1]
    for _ in range(10):
        middle = (within + out) / 2
        if area.contains(_spot(pieces, (inside[0], middle))):
            within = middle
        else:
            out = middle
    return inside[0], out


def _part(pieces: Sequence[Piece], start: Place, end: Place) -> Iterator[Piece]:
    for at in range(start[0], end[0] + 1):
        piece, first, last = pieces[at], start[1] if at == start[0] else 0.0, end[1] if at == end[0] else 1.0
        if last - first < SAME / STEPS:
            continue
        rest = _cut(piece, first)[1]
        yield _cut(rest, (last - first) / (1 - first))[0]


def _cut(piece: Piece, part: float) -> tuple[Piece, Piece]:
    """Return a curve as two, cut at this part of it."""
    one, two, three, four = piece
    a, b, c = between(one, two, part), between(two, three, part), between(three, four, part)
    d, e = between(a, b, part), between(b, c, part)
    middle = between(d, e, part)
    return (one, a, d, middle), (middle, e, c, four)


def _along(way: Sequence[Piece]) -> Iterator[Spot]:
    """Yield points on a way from end to end."""
    yield way[0][0]
    for piece in way:
        length = sum(hypot(x - at, y - up) for (at, up), (x, y) in pairwise(piece))
        count = max(round(length / EVERY), 1)
        yield from (_cut(piece, at / count)[0][3] for at in range(1, count + 1))


EVERY = 8.0
"""The distance, in points, between two points with which a curve is replaced."""


def trace(spline: Spline) -> list[Spot]:
    """Return points on a line from tip to tip, which are near to each other."""
    return [*_along(_pieces(spline))] if len(spline.knots) > 3 else spline.sampled()


def _with_tips(way: Sequence[Piece], old: Spline) -> Spline:
    """Return a way as a line with arrows at the same ends, and of the same lengths, as those of an old line."""
    pieces = [*way]
    start, end = pieces[0][0], pieces[-1][3]
    if old.start:
        pieces = _without_start(pieces, hypot(old.start[0] - old.knots[0][0], old.start[1] - old.knots[0][1]))
    if old.end:
        length = hypot(old.end[0] - old.knots[-1][0], old.end[1] - old.knots[-1][1])
        backwards = [(piece[3], piece[2], piece[1], piece[0]) for piece in reversed(pieces)]
        pieces = [(piece[3], piece[2], piece[1], piece[0]) for piece in reversed(_without_start(backwards, length))]
    knots = [pieces[0][0], *(spot for piece in pieces for spot in piece[1:])]
    return Spline(knots, start if old.start else None, end if old.end else None)


def _without_start(pieces: Sequence[Piece], length: float) -> list[Piece]:
    """Return a way without its first points, whose room an arrow takes. A short way keeps a little."""
    tip, rest = pieces[0][0], [*pieces]
    while len(rest) > 1 and hypot(rest[0][3][0] - tip[0], rest[0][3][1] - tip[1]) <= length:
        rest.pop(0)
    low, high = 0.0, 0.95
    for _ in range(10):
        middle = (low + high) / 2
        spot = _cut(rest[0], middle)[0][3]
        low, high = (low, middle) if hypot(spot[0] - tip[0], spot[1] - tip[1]) > length else (middle, high)
    return [_cut(rest[0], high)[1], *rest[1:]]


def _moved_label(label: Spot, old: Sequence[Spot], new: Sequence[Spot]) -> Spot:
    """Return the centre of a label as far from the new way of its line as it was from the old one."""
    nearest = min(range(len(old)), key=lambda at: hypot(old[at][0] - label[0], old[at][1] - label[1]))
    part = nearest / max(len(old) - 1, 1)
    there = new[round(part * (len(new) - 1))]
    return label[0] + there[0] - old[nearest][0], label[1] + there[1] - old[nearest][1]
