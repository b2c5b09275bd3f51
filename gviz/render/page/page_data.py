"""The contents of a page as plain lists for JSON. `page.js` reads them and uses the same names.

A page contains an `Extent` of the trace: the iteration of a moment, and as many of its neighbours as there is room for.
`Sources` are the program's text and the places in it. `moves` has the target of every key, once for each moment,
computed by the functions that the terminal uses, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, groupby
from pathlib import PurePath
from typing import Any

from rich.cells import cell_len

from gviz.events import SILENT, StorageWritten
from gviz.explain.display_names import title
from gviz.explain.event_description import description
from gviz.explain.iteration_words import phase_words
from gviz.explain.parameter_updates import write_place
from gviz.render.boxes.box_size import Outline, module_key
from gviz.render.boxes.drawn_nodes import shown_ends
from gviz.render.boxes.edges import WRITES, is_write
from gviz.render.boxes.function_calls import has_public_names
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.graph_structure import Structure, structure
from gviz.render.page.changes import Cell, Change, Changes, line_key, nodes_in
from gviz.render.page.geometry import Geometry, Spot, geometries
from gviz.render.page.opened_box_views import MOST_NODES, MOST_OPEN, View, union_of, views
from gviz.render.picture_notes import MORE
from gviz.render.picture_request import ExportOptions, Part, drawing
from gviz.render.scene import program_title, scene
from gviz.source.call_stack import Frame, source_lines
from gviz.trace import stepping
from gviz.trace.graph_state import Iteration
from gviz.trace.timeline import Moment, Timeline
from gviz.values.plain_text import shown

WITH_GRIDS = 10
"""The most boxes with grids of numbers: few windows show more at once, and the panel has every number."""
PROGRESS_INTERVAL = 200
"""The number of moments between two progress reports."""
MOST = 0.8
"""The part of the work that is done when all changes are known."""


class Strings:
    """Texts by number, each stored once. The empty text has number 0."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, text: object) -> bool:
        return text in self._numbers

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """Return all texts in the order of their numbers."""
        return list(self._numbers)


WINDOW = 1130.0, 660.0
"""The largest width and height of the graph that a page opens with, if that is possible, in points.

In a browser of 1280 x 800 pixels, such a graph is visible as a whole, and its text is 8 pixels high.
"""


FEW_NODES = 40
"""A graph with at most this many nodes has a box for each of them, if each is a call of the program."""
MOST_WORK = 600_000
"""The most work for the texts of collapsed boxes (see `GraphView.work`): about 30 s. Beyond it, equal parts have a box
each, if that is less.
"""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Iteration `nr` from event `low` to `high`: its boxes and lines in all views, the views, and its changes."""

    nr: int
    low: int
    high: int
    shape: Structure
    views: Sequence[View]
    placed: Sequence[Geometry]
    changes: Sequence[Change]
    notes: Sequence[str]


def contents(timeline: Timeline, n: int, options: ExportOptions) -> dict[str, Any]:
    """Return the contents of the page that opens at moment `n`."""
    span = extent(timeline, n, alone=bool(options.part.node), moments=options.moments)
    strings, sources = Strings(), Sources(timeline)
    graphs, titles, drawn = [], {}, set[int]()
    for one in _drawn(timeline, span, options):
        graphs.append(_graph(one, strings))
        places = one.shape.places
        titles.update(
            {place.node: place.title for place in places if place.role not in ("chip", "module", "saved", "failed")}
        )
        drawn.update(node for place in places for node in place.nodes)
    events = _events(timeline, span.low, span.high, strings, sources)
    actors = dict.fromkeys([*titles, *(node for node in events["actors"] if node)])
    nodes = {node: _node(timeline, node, titles.get(node, ""), span.low, span.high, sources) for node in actors}
    part = bool(options.part.node or options.part.only)
    return {
        "part": part,
        "title": program_title(timeline, chain.from_iterable(map(timeline.nodes.of, span.iterations))),
        "count": len(timeline),
        "low": span.low,
        "high": span.high,
        "start": n,
        "notes": [span.left_out] if span.left_out else [],
        "graphs": graphs,
        "events": events,
        "nodes": nodes,
        "moves": asdict(moves(timeline, span.low, span.high, drawn if part else None)),
        "marks": sources.marks,
        "files": sources.files(),
        "strings": strings.all(),
    }


def _drawn(timeline: Timeline, span: Extent, options: ExportOptions) -> Iterator[_Drawn]:
    """Yield the iterations of the page, one after the other."""

    def report(moment: int) -> None:
        if moment % PROGRESS_INTERVAL == 0:
            options.progress(MOST * (moment - span.low) / max(span.high - span.low, 1))

    left = MOST_NODES
    for iteration in span.iterations:
        low = span.low if iteration is span.iterations[0] else iteration.start
        high = span.high if iteration is span.iterations[-1] else iteration.end
        notes: list[str] = []
        own = replace(
            options,
            style="gviz",
            legend=False,
            figure=None,
            note=notes.append,
            drawing=replace(options.drawing, marks=False),
        )
        words = _words(timeline, iteration, max(low, iteration.start), own)
        is_large = not words.remark and len(timeline.nodes.of(iteration)) > MOST_OPEN  # it is drawn as far as it can be
        first = _shape(timeline, iteration, words)
        known = [View(first)]
        if not is_large:
            own_nodes = left if iteration is span.iterations[-1] else left // 2  # a page opens at the last iteration
            known, unused = views(timeline, iteration, first, most_nodes=own_nodes)
            left -= own_nodes - unused
        if len(known) > 1:
            notes[:] = [
                _page_remark(note) if note == words.remark else note for note in notes
            ]  # `own` adds to this list
        whole, shapes = union_of([view.shape for view in known])
        changes = Changes(timeline, whole, nodes_in(timeline, iteration, whole)).between(low, high, report)
        words_in_corners = _words_in_corners(changes)
        shapes = [_with_room(shape, words_in_corners) for shape in shapes]
        moment = timeline.at(high)
        scenes = [scene(shape, timeline, moment) for shape in shapes]
        placed = geometries(scenes, [_widest(shape, changes) for shape in shapes], own)
        known = [replace(view, shape=shape) for view, shape in zip(known, shapes, strict=True)]
        yield _Drawn(iteration.number, low, high, whole, known, placed, changes, notes)


def _words(timeline: Timeline, iteration: Iteration, n: int, options: ExportOptions) -> Options:
    """Return the options with which an iteration is drawn first: at the level of a picture that fits the window.

    A small graph has a box for each node, except for long data preparation, if a picture would have them, too, or if
    the user requests a part of it.
    """
    nodes = timeline.nodes.of(iteration)
    is_small = len(nodes) <= FEW_NODES and options.part.level == "auto" and not options.part.expand
    if is_small and (options.part != Part() or has_public_names(timeline, map(timeline.info, nodes))):
        return drawing(timeline, n, options, collapses_data=True)
    notes: list[str] = []
    words = drawing(timeline, n, replace(options, note=notes.append), fits=True, window=WINDOW, most_work=MOST_WORK)
    groups = (place.group for place in structure(timeline, iteration, words).places)
    if sum(len(group.nodes) ** 2 for group in groups if group is not None) > MOST_WORK:  # no view needs less
        return drawing(timeline, n, options)
    for note in notes:
        options.note(note)
    return words


def _page_remark(remark: str) -> str:
    """Return what a page says about its collapsed boxes, without the options of a picture."""
    what = remark.partition(MORE)[0]
    return f"{what}. Click a box or press o to open it; O closes it."


def _shape(timeline: Timeline, iteration: Iteration, words: Options) -> Structure:
    """Return the boxes of an iteration. If there are many, tensors have one line each, unless the user chose a form."""
    shape = structure(timeline, iteration, words)
    if words.tensors is None and len(shape.places) > WITH_GRIDS:
        return structure(timeline, iteration, replace(words, tensors="line"))
    return shape


def _widest(shape: Structure, changes: Sequence[Change]) -> dict[int, Sequence[str]]:
    """Return the largest label of each line at any moment, to reserve room for it."""
    numbers: dict[Cell, int] = {(line_key(link), 0): number for number, link in enumerate(shape.links)}
    widest: dict[int, Sequence[str]] = {}
    for _, cell, text in changes:
        if cell in numbers:
            number, label = numbers[cell], text.split("\t")[1:]
            widest[number] = max(widest.get(number, ()), label, key=lambda lines: (len(lines), *map(len, lines)))
    return widest


def _words_in_corners(changes: Sequence[Change]) -> dict[str, set[str]]:
    """Return the words that each box has in its corner at some moment, next to its title."""
    words: dict[str, set[str]] = {}
    for _, (key, number), text in changes:
        if isinstance(key, str) and number == 0:
            words.setdefault(key, set()).update(text.split("\t")[1:2])
    return words


def _with_room(shape: Structure, words: Mapping[str, Collection[str]]) -> Structure:
    """Return the boxes with room for their title, its mark ``►``, and the longest word in their corner.

    A box of one line has its title in the middle, and no word if there is no room for it.
    """

    def roomy(place: Outline) -> Outline:
        shown = {*words.get(place.key, ())} - ({"pending"} if place.role == "constant" else set())  # see page.css
        longest = max(map(cell_len, shown), default=0)
        if place.height == 1 or not longest:
            return place
        return replace(place, width=max(place.width, len("► ") + cell_len(place.title) + 1 + longest))

    return replace(shape, places=tuple(map(roomy, shape.places)))


def _graph(drawn: _Drawn, strings: Strings) -> dict[str, Any]:
    """Return one iteration: its drawing, the rows of its panels, and its changes, event by event.

    Cells are numbered: cells of the boxes (states, then one per row), cells of the lines, cells of the panels.
    """
    shape, changes = drawn.shape, drawn.changes
    cells: dict[Cell, int] = {}
    for place in shape.places:
        for number in range(place.height):
            cells[place.key, number] = len(cells)
    for link in shape.links:
        cells.setdefault((line_key(link), 0), len(cells))
    first_of_panels = len(cells)
    panels = _panel_cells(changes)
    for node, rows in panels.items():
        for key in rows:
            cells[node, key] = len(cells)
    return {
        "views": [_view(view, placed, cells) for view, placed in zip(drawn.views, drawn.placed, strict=True)],
        "cells": first_of_panels,
        "panels": [[node, len(rows)] for node, rows in panels.items()],
        "changes": _encoded(changes, cells, strings),
        "low": drawn.low,
        "high": drawn.high,
        "nr": drawn.nr,
        "notes": drawn.notes,
    }


def _view(view: View, placed: Geometry, cells: Mapping[Cell, int]) -> dict[str, Any]:
    """Return the boxes and lines of one view with their places, the first cell of each, and what a click opens."""
    shape = view.shape
    keys = {place.key: number for number, place in enumerate(shape.places)}
    return {
        "size": [placed.width, placed.height],
        "boxes": [
            _box(cells[place.key, 0], place, spot, _target(view, place))
            for place, spot in zip(shape.places, placed.spots, strict=True)
        ],
        "frames": [
            [title, spot.x, spot.y, spot.width, spot.height, view.closes.get(key, -1)]
            for key, title, spot in placed.frames
        ],
        "lines": [
            [
                cells[line_key(link), 0],
                WRITES if is_write(link.label) else link.kind,
                keys[link.source],
                keys[link.target],
                route.path,
                *(route.label or ()),
            ]
            for link, route in zip(shape.links, placed.routes, strict=True)
        ],
        "parent": view.parent,
        "name": view.name,
    }


def _target(view: View, place: Outline) -> int:
    """Return the view that a click on a box opens; -1 if there is none."""
    return -1 if place.group is None else view.opens.get(module_key(place.group.call), -1)


def _box(cell: int, place: Outline, spot: Spot, opens: int) -> list[Any]:
    """Return the description and the place of a box. The nodes of a collapsed module are at the end."""
    inside = () if place.group is None else place.nodes
    at = spot.x, spot.y, spot.width, spot.height
    return [cell, place.node, place.role, place.title, place.height, *at, opens, *inside]


def _panel_cells(changes: Sequence[Change]) -> dict[int, list[Any]]:
    cells: dict[int, set[Any]] = {}
    for _, (node, key), _ in changes:
        if isinstance(node, int):
            cells.setdefault(node, set()).add(key)
    return {node: sorted(keys) for node, keys in cells.items()}


def _encoded(changes: Sequence[Change], cells: Mapping[Cell, int], strings: Strings) -> dict[str, Any]:
    """Return the changes as columns of small numbers.

    * `at`: the events with changes, each as the distance from the event before; `counts`: the number of their changes
    * `cells`: the changed cells, each as the distance from the cell before in the same event
    * `texts`: 0 for a new text, or else its number plus 1
    """
    coded: dict[str, Any] = {"first": len(strings), "at": [], "counts": [], "cells": [], "texts": []}
    last = 0
    for n, group in groupby(changes, key=lambda change: change[0]):
        changed = sorted((cells[cell], text) for _, cell, text in group)
        coded["at"].append(n - last)
        coded["counts"].append(len(changed))
        coded["cells"] += [
            cell - before for (cell, _), before in zip(changed, (0, *(cell for cell, _ in changed)), strict=False)
        ]
        for _, text in changed:
            known = text in strings
            coded["texts"].append(strings.number(text) + 1 if known else 0)
            strings.number(text)
        last = n
    return coded


def _events(timeline: Timeline, low: int, high: int, strings: Strings, sources: Sources) -> dict[str, Any]:
    """Return, for every moment, the event in words, its node, its phase, and its place in the source."""
    moments = [timeline.at(n) for n in range(low, high + 1)]
    return {
        "texts": [strings.number(description(timeline, moment).rstrip(".")) for moment in moments],
        "actors": [moment.actor for moment in moments],
        "phases": steps((moment.n, strings.number(phase_words(timeline, moment))) for moment in moments),
        "marks": steps(_marks(timeline, moments, sources)),
    }


def _marks(timeline: Timeline, moments: Iterable[Moment], sources: Sources) -> Iterator[tuple[int, int]]:
    """Yield the place of each event, or else the place where its node was made, or else the last place."""
    last = -1
    for moment in moments:
        stack = getattr(moment.event, "stack", 0)
        if stack:
            last = sources.mark(timeline.stack(stack))
        elif isinstance(moment.event, StorageWritten):
            last = sources.mark(write_place(timeline, moment.n, moment.event))
        elif moment.actor:
            last = sources.mark(timeline.info(moment.actor).frames)
        yield moment.n, last


def _node(timeline: Timeline, node: int, name: str, low: int, high: int, sources: Sources) -> dict[str, Any]:
    info = timeline.info(node)
    return {
        "title": name or title(info),
        "born": info.born,
        "op": shown(info.op.name),
        "scope": shown(info.scope),
        "inputs": [source for source, _ in info.created.inputs if source],
        "users": timeline.nodes.users(node),
        "events": [n for n in timeline.events_of(node) if low <= n <= high],
        "mark": sources.mark(info.frames),
    }


EVENTS = 100_000
NODES = 1500
ITERATIONS = 24
"""The limits of a page. A browser shows this much at once, and every iteration is laid out while the user waits."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Consecutive iterations, and their moments ``low..high``. `left_out` says in words what is not included."""

    iterations: tuple[Iteration, ...]
    low: int
    high: int
    left_out: str


def extent(timeline: Timeline, n: int, *, alone: bool = False, moments: Sequence[int] = ()) -> Extent:
    """Return the extent of a page that opens at moment `n`: as many iterations around it as fit.

    With `alone` it is only the iteration of the moment, with `moments` only the iterations of these moments.
    """
    every = timeline.iterations
    here = timeline.iteration_at(n)
    candidates = _around(every, moments) if moments else every
    kept = (here,) if alone else _grown(timeline, candidates, candidates.index(here))
    first, last = kept[0], kept[-1]
    low, high = (0 if first is every[0] else first.start), last.end
    if moments:
        low, high = max(low, moments[0]), min(high, moments[-1])
    if high - low > EVENTS:
        low = max(low, min(n - EVENTS // 2, high - EVENTS))
        high = low + EVENTS
    included_text = _included_text(every, kept, low, high, len(timeline))
    rest = "" if moments else "; exported at another moment, a page holds the rest"
    return Extent(kept, low, high, f"This page holds {included_text}{rest}." if included_text else "")


def _around(every: Sequence[Iteration], moments: Sequence[int]) -> Sequence[Iteration]:
    """Return the iterations that contain the moments. Moments before the first iteration belong to it."""
    iterations = [one for one in every if one.start <= moments[-1] and moments[0] <= one.end]
    return iterations or every[:1]


def _grown(timeline: Timeline, every: Sequence[Iteration], at: int) -> tuple[Iteration, ...]:
    """Return the iteration at an index, with later and earlier ones in turn until no more fit."""
    first = last = at
    events, nodes = _size(timeline, every[at])
    for _ in range(ITERATIONS - 1):
        for place in (last + 1, first - 1):
            if not 0 <= place < len(every):
                continue
            more_events, more_nodes = _size(timeline, every[place])
            if events + more_events > EVENTS or nodes + more_nodes > NODES or last - first + 1 >= ITERATIONS:
                return tuple(every[first : last + 1])
            events, nodes = events + more_events, nodes + more_nodes
            first, last = min(first, place), max(last, place)
    return tuple(every[first : last + 1])


def _size(timeline: Timeline, iteration: Iteration) -> tuple[int, int]:
    return iteration.end - iteration.start + 1, len(timeline.nodes.of(iteration))


def _included_text(every: Sequence[Iteration], kept: Sequence[Iteration], low: int, high: int, count: int) -> str:
    """Return in words which iterations and events are included; empty if all are."""
    words = []
    if len(kept) < len(every):
        first, last = kept[0].number, kept[-1].number
        which = f"iteration {first}" if first == last else f"iterations {first} to {last}"
        words.append(f"{which} of {len(every)}")
    if high - low < count - 1 or words:
        words.append(f"events {max(low, min(high, 1)):,} to {high:,} of {count:,}")
    return ", ".join(words)


Steps = tuple[list[int], list[int]]
"""A step function of the moment: the moments at which its value changes, and the new values."""


@dataclass(frozen=True, slots=True)
class Moves:
    """The moments to stop at, ascending (`nodes`, `phases`, `stops`), and the targets of `finish` and its reverse.

    A step passes over the moments in `silent`.
    """

    silent: list[int]
    nodes: list[int]
    phases: list[int]
    stops: list[int]
    finish: Steps
    reverse_finish: Steps


def moves(timeline: Timeline, low: int, high: int, part: Collection[int] | None = None) -> Moves:
    """Return the moves within moments ``low..high``. A move beyond them ends at the first or last moment.

    In a `part` of a graph, a move by nodes stops only at the nodes of the part.
    """

    def page_moments(moments: Iterable[int]) -> list[int]:
        return [n for n in moments if low <= n <= high]

    return Moves(
        [n for n, _ in timeline.select(SILENT, low, high + 1)],
        [n for n in shown_ends(timeline, low, high) if part is None or timeline.at(n).actor in part],
        page_moments(phase.start for phase in timeline.phases),
        page_moments(stepping.stops(timeline)),
        steps((n, min(stepping.finish(timeline, n), high)) for n in range(low, high + 1)),
        steps((n, max(stepping.reverse_finish(timeline, n), low)) for n in range(low, high + 1)),
    )


def steps(values: Iterable[tuple[int, int]]) -> Steps:
    """Return values by moment, without repetitions."""
    timed_values: Steps = ([], [])
    for n, value in values:
        if not timed_values[1] or timed_values[1][-1] != value:
            timed_values[0].append(n)
            timed_values[1].append(value)
    return timed_values


LARGEST = 400_000
"""A file with more characters than this is left out of the page."""

Mark = tuple[int, int, int, int, int]
"""File, line, column, last line, end column. Columns are counted as the page counts them; -1 means unknown."""


class Sources:
    """Files and marks in them, each stored once, numbered in the order of their first use."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._files: dict[str, list[str] | None] = {}
        self._marks: dict[Frame, int] = {}
        self.marks: list[Mark] = []

    def mark(self, frames: Sequence[Frame]) -> int:
        """Return the number of the innermost place of a call stack; -1 for an empty stack."""
        if not frames:
            return -1
        frame = frames[0]
        if frame not in self._marks:
            self._marks[frame] = len(self.marks)
            self.marks.append(self._marked(frame))
        return self._marks[frame]

    def files(self) -> list[tuple[str, list[str]]]:
        """Return each file's name and its displayed lines.

        A file has no lines if its text was not stored or is too long.
        """
        return [
            (shown(PurePath(path).name), [] if lines is None else [display(line) for line in lines])
            for path, lines in self._files.items()
        ]

    def _marked(self, frame: Frame) -> Mark:
        if frame.path not in self._files:
            text = self._timeline.source(frame.path)
            self._files[frame.path] = None if text is None or len(text) > LARGEST else source_lines(text)
        lines = self._files[frame.path]
        number = list(self._files).index(frame.path)
        if lines is None or frame.column < 0 or not 0 < frame.line <= frame.end_line <= len(lines):
            return number, frame.line, -1, frame.end_line, -1
        start = _column(lines[frame.line - 1], frame.column)
        return number, frame.line, start, frame.end_line, _column(lines[frame.end_line - 1], frame.end_column)


def display(line: str) -> str:
    """Return a line of source with tabs as blanks and with invisible characters made visible."""
    return shown(line.replace("\t", "    "))


def _column(line: str, column: int) -> int:
    """Return the displayed column, in UTF-16 units as browsers count, of a column that is counted in bytes of UTF-8."""
    before = line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace")
    return len(display(before).encode("utf-16-le", "surrogatepass")) // 2
