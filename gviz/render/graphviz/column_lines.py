"""The lines between the columns of a folded graph: they go through the gaps, as the eye does from column to column.

A line leaves its box at the side next to the gap, goes along a lane of the gap, and enters the other box at its side:

    .------.     .---> .------.
    | tok  |     |     | norm |
    '------'     |     '------'
    .------.     |     .------.
    | last | ----'     | head |
    '------'           '------'

Where another box is in the way, it leaves or enters through the strip above or below the row of its box. A line that
skips a column goes over or under all columns. All these ways are free of boxes. Each line takes the possible way with
the fewest crossings, corners and points. The lines that share a gap, a strip, or the side of a box each have a lane of
their own there. The orders of the lanes are changed as long as there are fewer crossings.

Lines between the same two boxes, as those of data and of its gradient, are one `Wire`: they run in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, pairwise, permutations
from math import hypot
from typing import Literal, NamedTuple

from gviz.render.graphviz.spline import Spot, between, turn, without_repeats

Side = Literal["gap", "above", "below"]
"""Where a line meets a box: at the side next to the gap, at the top, or at the bottom."""

PARALLEL = 9
"""Points between the lines of a wire."""
APART = 15
"""Points between two wires."""
MARGIN = 22
"""Points between a box and the lane next to it: an arrow and a corner."""
RADIUS = 13
"""The radius of a corner in points."""
LEAST_GAP = 60
"""The least width of a gap in points."""
MOST_WIRES = 10
"""The most wires between columns. More of them would hide the graph."""


class Area(NamedTuple):
    """The place of a box in points."""

    left: float
    low: float
    right: float
    high: float

    @classmethod
    def around(cls, spots: Iterable[Spot]) -> Area:
        """Return the area that contains these points."""
        across, up = zip(*spots, strict=True)
        return cls(min(across), min(up), max(across), max(up))

    def moved(self, x: float, y: float) -> Area:
        return Area(self.left + x, self.low + y, self.right + x, self.high + y)

    def grown(self, by: float) -> Area:
        return Area(self.left - by, self.low - by, self.right + by, self.high + by)

    def meets(self, one: Spot, other: Spot) -> bool:
        """Return whether a horizontal or vertical line is in the box for some of its way."""
        (left, right), (low, high) = sorted((one[0], other[0])), sorted((one[1], other[1]))
        return left < self.right and right > self.left and low < self.high and high > self.low


@dataclass(frozen=True, slots=True)
class Column:
    """A column in its place, with its boxes and, as corners, the lines between them."""

    area: Area
    boxes: Mapping[str, Area]
    lines: Sequence[Sequence[Spot]] = ()

    def moved(self, x: float, y: float) -> Column:
        boxes = {key: box.moved(x, y) for key, box in self.boxes.items()}
        lines = [[(at + x, up + y) for at, up in line] for line in self.lines]
        return Column(self.area.moved(x, y), boxes, lines)

    def rows(self) -> list[tuple[float, float]]:
        """Return the lower and upper ends of the rows of boxes, from bottom to top."""
        rows: list[tuple[float, float]] = []
        for box in sorted(self.boxes.values(), key=lambda box: box.low):
            if rows and box.low < rows[-1][1]:
                rows[-1] = rows[-1][0], max(rows[-1][1], box.high)
            else:
                rows.append((box.low, box.high))
        return rows


class Wire(NamedTuple):
    """The lines from a box of one column to a box of a later column."""

    source: str
    first: int
    target: str
    last: int
    lines: int = 1

    @property
    def width(self) -> float:
        return (self.lines - 1) * PARALLEL


class Way(NamedTuple):
    """How a wire goes: where it leaves and enters, and whether it passes other columns above or below them."""

    leaves: Side
    enters: Side
    passes: Literal["", "above", "below"] = ""


class BoxSide(NamedTuple):
    """The side of a box at which wires leave, or enter."""

    key: str
    side: Side
    is_source: bool


class Strip(NamedTuple):
    """The room between two rows of a column."""

    column: int
    low: float
    high: float


class Gap(NamedTuple):
    """The room on the right of a column."""

    column: int


class Outside(NamedTuple):
    """The room above or below all columns."""

    side: Literal["above", "below"]


Place = BoxSide | Strip | Gap | Outside
"""What wires share."""


@dataclass(slots=True)
class Routes:
    """The corners of each wire, how often they cross each other and the lines of columns, and whether all are free."""

    corners: list[list[Spot]]
    crossings: int = 0
    detours: int = 0
    free: bool = True


def gap_widths(wires: Sequence[Wire], columns: int) -> list[float]:
    """Return the room between each two columns."""
    widths = []
    for gap in range(columns - 1):
        lanes = [wire.width for wire in wires if gap in (wire.first, wire.last - 1)]
        widths.append(max(LEAST_GAP, sum(lanes) + APART * (len(lanes) - 1) + 2 * MARGIN))
    return widths


def are_too_many(wires: Sequence[Wire]) -> bool:
    """Return whether the wires between columns would hide the graph, wherever they are."""
    return len(wires) > MOST_WIRES


def routed(columns: Sequence[Column], wires: Sequence[Wire]) -> Routes:
    """Return the ways of all wires between columns that are in their places."""
    if are_too_many(wires):
        return Routes([], free=False)
    board = _Board(columns, wires)
    for number, wire in enumerate(wires):
        ways = [way for way in _ways(wire) if board.is_free(number, way)]
        if not ways:
            return Routes([], free=False)
        board.ways[number] = min(ways, key=lambda way: board.cost(number, way))
    board.order()
    corners = [board.corners(number) for number in range(len(wires))]
    free = all(board.is_free(number, board.ways[number]) for number in range(len(wires)))
    inner = sum(board.with_columns(path) * wire.lines for path, wire in zip(corners, wires, strict=True))
    return Routes(corners, inner + board.mutual(), sum(way != DIRECT for way in board.ways.values()), free)


DIRECT = Way("gap", "gap")


def _ways(wire: Wire) -> Iterator[Way]:
    passes: tuple[Literal["", "above", "below"], ...] = ("",) if wire.last - wire.first == 1 else ("above", "below")
    for leaves in ("gap", "below", "above"):
        for enters in ("gap", "above", "below"):
            for over in passes:
                yield Way(leaves, enters, over)


@dataclass(slots=True)
class _Board:
    """The ways of wires, and the order of those that share a place."""

    columns: Sequence[Column]
    wires: Sequence[Wire]
    ways: dict[int, Way] = field(default_factory=dict)
    orders: dict[Place, list[int]] = field(default_factory=dict)
    rows: list[list[tuple[float, float]]] = field(init=False)
    inner: list[tuple[Area, Sequence[Spot]]] = field(init=False)
    """The lines within columns, each with its area, a little larger, so that it is not flat."""
    pieces: dict[tuple[str, float], tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = [column.rows() for column in self.columns]
        self.inner = [(Area.around(line).grown(0.1), line) for column in self.columns for line in column.lines]

    def is_free(self, number: int, way: Way) -> bool:
        """Return whether a wire touches no box on its way."""
        wire, path = self.wires[number], self.corners(number, way)
        ends = {wire.source: (*pairwise(path),)[1:], wire.target: (*pairwise(path),)[:-1]}
        for column in self.columns:
            for key, box in column.boxes.items():
                room = box.grown(3 + wire.width / 2)
                if any(room.meets(*piece) for piece in ends.get(key, pairwise(path))):
                    return False
        return True

    def cost(self, number: int, way: Way) -> float:
        path = self.corners(number, way)
        crossed = self.with_columns(path)
        length = sum(hypot(x - at, y - up) for (at, up), (x, y) in pairwise(path))
        against = (way.leaves == "above") + (way.enters == "below")  # data flows downwards
        return 150 * crossed + 100 * against + 25 * len(path) + 0.1 * length

    def with_columns(self, path: Sequence[Spot]) -> int:
        """Return how often a path crosses the lines within columns."""
        return sum(
            crossings(piece, line) for piece in pairwise(path) for area, line in self.inner if area.meets(*piece)
        )

    def places(self, number: int, way: Way) -> Iterator[Place]:
        """Yield the places that a wire shares with others."""
        wire = self.wires[number]
        for side, key, at in ((way.leaves, wire.source, wire.first), (way.enters, wire.target, wire.last)):
            yield BoxSide(key, side, key == wire.source)
            if side != "gap":
                yield Strip(at, *self._strip(at, key, side))
        yield Gap(wire.first)
        if way.passes:
            yield Gap(wire.last - 1)
            yield Outside(way.passes)

    def order(self) -> None:
        """Put the wires that share a place into the order with the fewest crossings."""
        self.orders = {}
        for number, way in self.ways.items():
            for place in self.places(number, way):
                self.orders.setdefault(place, []).append(number)
        for place, users in self.orders.items():
            if isinstance(place, BoxSide):  # what goes up leaves at the top
                heights = {number: self._other_height(number, place.key) for number in users}
                users.sort(key=heights.__getitem__, reverse=True)
        shared = [place for place, users in self.orders.items() if len(users) > 1]
        shared.sort(
            key=lambda place: isinstance(place, BoxSide)
        )  # the lanes first: they fit the sides of boxes as they are
        least = self.mutual()
        for _ in range(ROUNDS if least else 0):
            before = least
            for place in shared:
                best = self.orders[place]
                for trial in _orders(best):
                    self.orders[place] = trial
                    crossed = self.mutual()
                    if crossed < least:
                        least, best = crossed, trial
                self.orders[place] = best
            if least == before or not least:
                return

    def _other_height(self, number: int, key: str) -> float:
        wire = self.wires[number]
        other, at = (wire.target, wire.last) if key == wire.source else (wire.source, wire.first)
        return self.columns[at].boxes[other].high

    def mutual(self) -> int:
        """Return how often wires cross or touch one another, each line counted."""
        paths = [self.corners(number) for number in range(len(self.wires))]
        pairs = combinations(zip(paths, self.wires, strict=True), 2)
        return sum(crossings(one, other) * wire.lines * two.lines for (one, wire), (other, two) in pairs)

    def corners(self, number: int, way: Way | None = None) -> list[Spot]:
        """Return the ends and corners of a wire."""
        wire, way = self.wires[number], way or self.ways[number]
        start, behind = self._end(number, wire.source, wire.first, way.leaves, is_source=True)
        end, ahead = self._end(number, wire.target, wire.last, way.enters, is_source=False)
        lane = self._lane(number, wire.first)
        if way.passes:
            level, other = self._outside(number, way.passes), self._lane(number, wire.last - 1)
            middle = [(lane, behind[1]), (lane, level), (other, level), (other, ahead[1])]
        else:
            middle = [(lane, behind[1]), (lane, ahead[1])]
            if way == DIRECT and abs(start[1] - end[1]) < 2 * RADIUS and self._is_beside(wire.target, wire.last, start):
                return [start, (end[0], start[1])]
        return without_repeats([start, behind, *middle, ahead, end])

    def _is_beside(self, key: str, at: int, spot: Spot) -> bool:
        box = self.columns[at].boxes[key]
        alone = len(self.orders.get(BoxSide(key, "gap", is_source=False), ())) < 2
        return alone and box.low + PARALLEL < spot[1] < box.high - PARALLEL

    def _end(self, number: int, key: str, at: int, side: Side, *, is_source: bool) -> tuple[Spot, Spot]:
        """Return where a wire meets a box, and the corner next to it."""
        box = self.columns[at].boxes[key]
        place = BoxSide(key, side, is_source)
        shift = self._shift(number, place)
        if side == "gap":
            gap = at if is_source else at - 1
            x = box.right if is_source else box.left
            free_low, free_high = self._free_piece(at, key, x)
            room = free_high - free_low
            aside = self._aside(number, gap, room - self._span(number, place)) * (1 if is_source else -1)
            y = (free_low + free_high) / 2 - self._within(shift, number, place, room) - aside
            return (x, y), (x, y)
        inset = min(28.0, (box.right - box.left) / 4)
        shift = self._within(shift, number, place, 2 * inset)
        x = box.right - inset + shift if is_source else box.left + inset + shift
        low, high = self._strip(at, key, side)
        users = self.orders.get(Strip(at, low, high), [number])
        rank = users.index(number) if number in users else 0
        y = high - (high - low) * (rank + 1) / (len(users) + 1)
        return (x, box.high if side == "above" else box.low), (x, y)

    def _aside(self, number: int, gap: int, room: float) -> float:
        """Return by how much a wire leaves below the middle of its side, and enters above it.

        It does if another wire of the gap would lie on it, because boxes at both sides have equal heights.
        """
        wire = self.wires[number]
        for other in (other for at, other in enumerate(self.wires) if at != number):
            pairs = ((wire, other), (other, wire))
            if any(one.first == gap == two.last - 1 and self._are_level(one, two) for one, two in pairs):
                return min(APART / 2, max(room / 2 - NEAR, 0.0))
        return 0.0

    def _are_level(self, one: Wire, other: Wire) -> bool:
        """Return whether one wire leaves at the height at which the other enters."""
        source, target = self.columns[one.first].boxes[one.source], self.columns[other.last].boxes[other.target]
        return abs(source.low + source.high - target.low - target.high) < 2 * APART

    def _span(self, number: int, place: Place) -> float:
        """Return the room that the wires need that share a place."""
        widths = [self.wires[user].width for user in self.orders.get(place, [number])]
        return sum(widths) + APART * (len(widths) - 1)

    def _within(self, shift: float, number: int, place: Place, room: float) -> float:
        """Return a shift along the side of a box, less if the wires there would be wider than their room."""
        span = self._span(number, place)
        return shift * min(1.0, max(room - 2 * NEAR, 0.0) / span) if span else shift

    def _free_piece(self, at: int, key: str, side: float) -> tuple[float, float]:
        """Return the ends of the largest piece of a side of a box at which no line of its column ends."""
        if known := self.pieces.get((key, side)):
            return known
        box = self.columns[at].boxes[key]
        spots = [spot for line in self.columns[at].lines for spot in (line[0], line[-1])]
        taken = [y for x, y in spots if abs(x - side) < NEAR and box.low < y < box.high]
        pieces = pairwise([box.low, *sorted(taken), box.high])
        self.pieces[key, side] = largest = max(pieces, key=lambda piece: piece[1] - piece[0])
        return largest

    def _strip(self, at: int, key: str, side: Side) -> tuple[float, float]:
        """Return the lower and upper end of the free strip above or below the row of a box."""
        rows, box = self.rows[at], self.columns[at].boxes[key]
        row = next(number for number, (low, high) in enumerate(rows) if low <= box.low and box.high <= high)
        if side == "above":
            return rows[row][1], rows[row + 1][0] if row + 1 < len(rows) else rows[row][1] + 2 * MARGIN
        return rows[row - 1][1] if row else rows[row][0] - 2 * MARGIN, rows[row][0]

    def _lane(self, number: int, gap: int) -> float:
        middle = (self.columns[gap].area.right + self.columns[gap + 1].area.left) / 2
        return middle + self._shift(number, Gap(gap))

    def _outside(self, number: int, side: Literal["above", "below"]) -> float:
        shift = abs(self._shift(number, Outside(side), centred=False)) + MARGIN
        if side == "above":
            return max(column.area.high for column in self.columns) + shift
        return min(column.area.low for column in self.columns) - shift

    def _shift(self, number: int, place: Place, *, centred: bool = True) -> float:
        """Return the points from the middle, or from the first, of the wires that share a place to this one."""
        users = self.orders.get(place, [number])
        if number not in users:
            return 0.0
        widths = [self.wires[user].width for user in users]
        rank = users.index(number)
        before = sum(widths[:rank]) + APART * rank + widths[rank] / 2
        return before - self._span(number, place) / 2 if centred else before


NEAR = 4
"""Points between a side of a box and the end of a line there."""
ROUNDS = 3
"""How often the orders of all places are searched."""
MOST_ORDERED = 4
"""All orders of the wires of one place are tried if there are at most this many."""


def _orders(users: Sequence[int]) -> Iterator[list[int]]:
    """Yield orders to try: all of a few wires, or those with two wires exchanged."""
    if len(users) <= MOST_ORDERED:
        yield from map(list, permutations(users))
        return
    for one, other in combinations(range(len(users)), 2):
        swapped = [*users]
        swapped[one], swapped[other] = swapped[other], swapped[one]
        yield swapped


def crossings(one: Sequence[Spot], other: Sequence[Spot]) -> int:
    """Return how many pieces of two paths cross or touch."""
    return sum(_meet(*piece, *line) for line in pairwise(other) for piece in pairwise(one))


def _meet(a: Spot, b: Spot, c: Spot, d: Spot) -> bool:
    if max(a[0], b[0]) < min(c[0], d[0]) or max(c[0], d[0]) < min(a[0], b[0]):
        return False
    if max(a[1], b[1]) < min(c[1], d[1]) or max(c[1], d[1]) < min(a[1], b[1]):
        return False
    return turn(a, b, c) * turn(a, b, d) <= 0 and turn(c, d, a) * turn(c, d, b) <= 0


def parallel(path: Sequence[Spot], lines: int) -> list[tuple[list[Spot], float]]:
    """Return the corners of the lines of a wire, and how far each line is to its right. Downwards, the first is at the
    left.
    """
    shifts = [PARALLEL * ((lines - 1) / 2 - at) for at in range(lines)]
    return [(_beside(path, shift), shift) for shift in shifts]


def _beside(path: Sequence[Spot], by: float) -> list[Spot]:
    """Return a path that is this many points to the right of another one, as seen in its direction."""
    shifted = []
    for one, other in pairwise(path):
        length = hypot(other[0] - one[0], other[1] - one[1])
        x, y = by * (other[1] - one[1]) / length, -by * (other[0] - one[0]) / length
        shifted.append(((one[0] + x, one[1] + y), (other[0] + x, other[1] + y)))
    spots = [shifted[0][0]]
    for (before, end), (start, _) in pairwise(shifted):
        is_level = before[1] == end[1]
        spots.append((start[0], end[1]) if is_level else (end[0], start[1]))
    return [*spots, shifted[-1][1]]


def curve(path: Sequence[Spot], shift: float = 0.0) -> list[Spot]:
    """Return a path with round corners as the points of Bezier curves.

    `shift` is how far the path is to the right of its wire, so that the corners of parallel lines have one centre. A
    piece without a length, where an arrow takes all of it, is no piece.
    """
    path = [spot for spot, _ in groupby(path)]
    points = [path[0]]

    def straight_to(spot: Spot) -> None:
        points.extend([between(points[-1], spot, 1 / 3), between(points[-1], spot, 2 / 3), spot])

    for before, corner, after in zip(path, path[1:], path[2:], strict=False):
        wished = RADIUS + shift * turn(before, corner, after)
        room = [hypot(corner[0] - end[0], corner[1] - end[1]) for end in (before, after)]
        parts = [room[0] if before == path[0] else room[0] / 2, room[1] if after == path[-1] else room[1] / 2]
        radius = min(wished, *parts)
        begin, end = between(corner, before, radius / room[0]), between(corner, after, radius / room[1])
        straight_to(begin)
        points.extend([between(begin, corner, ROUND), between(end, corner, ROUND), end])
    straight_to(path[-1])
    return points


ROUND = 0.552
"""Where the control points of a quarter of a circle are, between its ends and its corner."""
