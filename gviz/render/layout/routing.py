"""The rows between two layers: the row of each net, so that no two nets ever share a cell in one direction.

The algorithm is left-edge track assignment with vertical constraints: where net A starts above the column in which net
B ends, A must turn off on a higher row than B. A cycle of such constraints is broken by a dogleg: a net changes rows in
a free column.

For example, net A starts in column 5 and ends in 9, net B starts in 2 and ends in 5. If B ran on the higher row, it
would come down column 5 over the start of A; so A gets the higher row. `draw` then turns an arranged grid into cells:
the rows of layers and channels, and the corners of every wire.

Limits: crossings are avoided only up to `UNTANGLED` nets in a channel, and the number of rows is not minimal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gviz.render.layout.columns import line_ends, line_start
from gviz.render.layout.grid import Grid
from gviz.render.layout.model import Point, Wire

UNTANGLED = 64


class Net(NamedTuple):
    """A net in one channel: it starts at the `top` column and ends at the `bottoms`."""

    top: int
    bottoms: tuple[int, ...]


class Path(NamedTuple):
    """The row of a net. With a dogleg it first runs on row `first` to column `turn`. A straight net has row -1."""

    row: int
    turn: int = 0
    first: int = -1


STRAIGHT = Path(-1)


@dataclass(slots=True)
class Track:
    """A horizontal segment that needs a row, below all tracks in `before` and, if possible, below those in `better`."""

    top: int
    low: int
    high: int
    bottoms: tuple[int, ...]
    before: set[int] = field(default_factory=set)
    better: set[int] = field(default_factory=set)
    row: int = -1


def route(nets: Sequence[Net]) -> tuple[list[Path], int]:
    """Return the path of every net, with rows counted from 0 below the upper layer, and the number of rows."""
    bent = [number for number, net in enumerate(nets) if net.bottoms != (net.top,) * len(net.bottoms)]
    if not bent:
        return [STRAIGHT] * len(nets), 0
    if len(bent) == 1:
        return [Path(0) if number == bent[0] else STRAIGHT for number in range(len(nets))], 1
    columns = {net.top for net in nets}.union(*[net.bottoms for net in nets])
    tracks = [_track(nets[number]) for number in bent]
    _constrain(tracks)
    turns: dict[int, tuple[int, int]] = {}
    rows = _fill(tracks, columns, turns)
    paths = [STRAIGHT] * len(nets)
    for number, track in enumerate(bent):
        paths[track] = _path(tracks, turns, number)
    return paths, rows


def _track(net: Net) -> Track:
    return Track(net.top, min(net.top, *net.bottoms), max(net.top, *net.bottoms), net.bottoms)


def _path(tracks: list[Track], turns: dict[int, tuple[int, int]], number: int) -> Path:
    if number not in turns:
        return Path(tracks[number].row)
    upper, column = turns[number]
    return Path(tracks[number].row, column, tracks[upper].row)


def _constrain(tracks: list[Track]) -> None:
    tops = {track.top: number for number, track in enumerate(tracks)}
    for number, track in enumerate(tracks):
        track.before = {tops[column] for column in track.bottoms if tops.get(column, number) != number}
    if len(tracks) > UNTANGLED:
        return
    for number, track in enumerate(tracks):
        for other in range(number):
            _prefer(tracks, other, number, _crossings(tracks[other], track) - _crossings(track, tracks[other]))


def _prefer(tracks: list[Track], first: int, second: int, cost: int) -> None:
    if cost < 0:
        tracks[second].better.add(first)
    elif cost > 0:
        tracks[first].better.add(second)


def _crossings(upper: Track, lower: Track) -> int:
    """Return how often two nets cross if one is above the other."""
    crossings = int(upper.low < lower.top < upper.high)
    return crossings + sum([lower.low < column < lower.high for column in upper.bottoms])


def _fill(tracks: list[Track], columns: set[int], turns: dict[int, tuple[int, int]]) -> int:
    """Fill the rows one by one from the left; return the number of rows."""
    waiting = sorted(range(len(tracks)), key=lambda number: (tracks[number].low, tracks[number].high, number))
    blanks, row = _blanks(columns), 0
    while waiting:
        placed = _fill_row(tracks, waiting, blanks, row, strict=True, ordered=not turns) or _fill_row(
            tracks, waiting, blanks, row, strict=False, ordered=not turns
        )
        if placed:
            waiting = [number for number in waiting if number not in placed]
            row += 1
        else:
            waiting.append(_open_ring(tracks, waiting, columns, turns))
            blanks = _blanks(columns)
    return row


def _fill_row(
    tracks: list[Track], waiting: list[int], blanks: Mapping[int, int], row: int, *, strict: bool, ordered: bool
) -> set[int]:
    """Place the tracks that fit on a row. With `ordered` tracks, those that begin too far left are skipped at once."""
    placed: set[int] = set()
    end: int | None = None
    at = 0
    while at < len(waiting):
        number = waiting[at]
        track = tracks[number]
        if end is not None and blanks[track.low] <= end:
            at = bisect_right(waiting, end, at, key=lambda each: blanks[tracks[each].low]) if ordered else at + 1
            continue
        at += 1
        if _blocked(tracks, track.before, row) or (strict and _blocked(tracks, track.better, row)):
            continue
        track.row, end = row, track.high
        placed.add(number)
    return placed


def _blocked(tracks: list[Track], others: set[int], row: int) -> bool:
    return any(not 0 <= tracks[other].row < row for other in others)


def _blanks(columns: Collection[int]) -> dict[int, int]:
    """Return, for each column, the nearest column to its left without a line: two nets in one row never touch."""
    blanks: dict[int, int] = {}
    for column in sorted(columns):
        blanks[column] = blanks.get(column - 1, column - 1)
    return blanks


def _open_ring(tracks: list[Track], waiting: list[int], columns: set[int], turns: dict[int, tuple[int, int]]) -> int:
    """Break a cycle: split a track that waits for itself into an upper part without constraints and a lower part."""
    number = waiting[0]
    seen: set[int] = set()
    while number not in seen:
        seen.add(number)
        number = min(other for other in tracks[number].before if tracks[other].row < 0)
    lower = tracks[number]
    column = _free_near(lower.top, columns)
    columns.add(column)
    upper = len(tracks)
    tracks.append(Track(lower.top, min(lower.top, column), max(lower.top, column), (column,)))
    for track in tracks:
        if number in track.before:
            track.before = (track.before - {number}) | {upper}
    lower.before.add(upper)
    lower.better.clear()
    lower.low, lower.high = min(column, *lower.bottoms), max(column, *lower.bottoms)
    turns[number] = (upper, column)
    return upper


def _free_near(column: int, columns: set[int]) -> int:
    distance = 1
    while True:
        for candidate in (column + distance, column - distance):
            if candidate not in columns:
                return candidate
        distance += 1


class Line(NamedTuple):
    """A line through one channel: from an item to the `end` column, into box `target` or a passing point."""

    item: int
    target: int
    end: int


class Channel(NamedTuple):
    """The rows between two layers: that of the `first` track, the distance of two tracks, and the `last`, in which all
    lines end.
    """

    first: int
    rows_per_track: int
    last: int


@dataclass(frozen=True, slots=True)
class Picture:
    """One component in cells, its first column `left` and its first row 0. `y` is per box."""

    grid: Grid
    y: list[int]
    wires: list[Wire]
    left: int
    width: int
    height: int


def draw(grid: Grid, heights: Sequence[int], spine: Sequence[int], rows_per_track: int) -> Picture:
    """Place every row of boxes, from top to bottom, and the corners of every line. Tracks are `rows_per_track` rows
    apart.
    """
    spine_items = set(spine)
    y = [0] * grid.boxes
    wires: list[Wire] = []
    entering = _entering(grid)
    top = 0
    for row in grid.rows:
        bottom = top + max([heights[item] for item in row if item < grid.boxes], default=1)
        for item in row:
            if item < grid.boxes:
                y[item] = top if grid.above[item] else bottom - heights[item]
        lines = _lines(grid, row, spine_items)
        paths, count = route([_net(grid, item, lines[item]) for item in lines])
        following = bottom + (count + 1) * rows_per_track if lines else bottom
        channel = Channel(bottom + rows_per_track - 1, rows_per_track, following - 1)
        for path, (item, ends) in zip(paths, lines.items(), strict=True):
            begin = y[item] + heights[item] if item < grid.boxes else top
            wires.extend([_wire(grid, line, path, entering, channel, begin) for line in ends])
        top = following
    return _picture(grid, y, wires, top)


def _entering(grid: Grid) -> dict[tuple[int, int], list[int]]:
    """Return the numbers of the edges between an item and a box, last argument first, for popping from the end."""
    entering: dict[tuple[int, int], list[int]] = {}
    for number in range(len(grid.edges) - 1, -1, -1):
        entering.setdefault((grid.feeds[number], grid.edges[number][1]), []).append(number)
    return entering


def _lines(grid: Grid, row: list[int], spine: set[int]) -> dict[int, list[Line]]:
    """Return the lines that leave each item of a row, with the columns where they arrive, box by box."""
    tops = {line_start(grid, item): grid.net[item] for item in row if grid.below[item]}
    lines: dict[int, list[Line]] = {item: [] for item in row if grid.below[item]}
    below: dict[int, None] = {other: None for item in lines for other in grid.below[item]}
    for other in below:
        if other >= grid.boxes:
            lines[grid.above[other][0]].append(Line(grid.above[other][0], other, grid.x[other]))
            continue
        for feeder, column in zip(grid.above[other], line_ends(grid, other, spine, tops), strict=True):
            lines[feeder].append(Line(feeder, other, column))
    return lines


def _net(grid: Grid, item: int, lines: list[Line]) -> Net:
    return Net(line_start(grid, item), tuple([line.end for line in lines]))


def _wire(
    grid: Grid, line: Line, path: Path, entering: dict[tuple[int, int], list[int]], channel: Channel, begin: int
) -> Wire:
    """Return the wire of a line that begins in row `begin`."""
    if line.target < grid.boxes:
        number = entering[line.item, line.target].pop()
        first, end = number, number + 1
    else:
        first, end = grid.carried[line.target]
    points = _points((line_start(grid, line.item), begin), (line.end, channel.last), path, channel)
    return Wire(grid.net[line.item], points, first, end, line.target < grid.boxes)


def _points(start: Point, end: Point, path: Path, channel: Channel) -> tuple[Point, ...]:
    if path.row < 0 or (path.first < 0 and start[0] == end[0]):
        return (start, end)
    row = channel.first + path.row * channel.rows_per_track
    if path.first < 0:
        return (start, (start[0], row), (end[0], row), end)
    first = channel.first + path.first * channel.rows_per_track
    return (start, (start[0], first), (path.turn, first), (path.turn, row), (end[0], row), end)


def _picture(grid: Grid, y: list[int], wires: list[Wire], height: int) -> Picture:
    """Return the picture with its extent: doglegs may reach beyond the boxes."""
    turns = [x for wire in wires if len(wire.points) > 4 for x, _ in wire.points]
    left = min([*grid.x, *turns])
    right = max([x + width for x, width in zip(grid.x, grid.width, strict=True)] + [x + 1 for x in turns])
    return Picture(grid, y, wires, left, right - left, height)
