"""Everything a page knows, as plain lists for JSON. `page.js` reads it; the names here are the names there.

A page holds an `Extent` of the trace: the iteration of a moment, and its neighbours as far as there is room. `Sources`
are the text of the program and the places in it; `moves` is where every key leads, once for each moment, by the same
functions that answer in the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, groupby
from pathlib import PurePath
from typing import Any

from gviz.events import SILENT, StorageWritten
from gviz.explain.display_names import phase_words, title
from gviz.explain.event_description import description
from gviz.explain.parameter_updates import write_place
from gviz.render.boxes.box_size import Outline
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.selection import shown_ends
from gviz.render.boxes.structure import Structure
from gviz.render.page.changes import Cell, Change, Changes, line_key, nodes_in
from gviz.render.page.geometry import Geometry, Spot, geometry
from gviz.render.request import ExportOptions, drawing
from gviz.render.scene import program_title, scene, structure
from gviz.source.site import Frame, source_lines
from gviz.trace import navigation
from gviz.trace.graph_state import Iteration
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import shown

WITH_GRIDS = 10
"""Of more boxes, with grids of numbers in them, few windows show all at once; the panel has every number."""
HEARD_OF = 200
"""After so many moments somebody who waits hears how far the page is."""
MOST = 0.8
"""The part of the work that is done when all changes are known."""


class Strings:
    """Texts by number, each kept once; 0 is the empty one."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, text: object) -> bool:
        return text in self._numbers

    def number(self, text: str) -> int:
        """The number of a text."""
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> list[str]:
        """All texts in the order of their numbers."""
        return list(self._numbers)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Iteration number `nr` from event `low` to `high`: what is drawn of it, where, and how that changes."""

    nr: int
    low: int
    high: int
    shape: Structure
    placed: Geometry
    changes: Sequence[Change]
    notes: Sequence[str]


def contents(timeline: Timeline, n: int, options: ExportOptions) -> dict[str, Any]:
    """What the page that opens at moment `n` holds."""
    held = extent(timeline, n, alone=bool(options.part.node), moments=options.moments)
    strings, sources = Strings(), Sources(timeline)
    graphs, titles, drawn = [], {}, set[int]()
    for one in _drawn(timeline, held, options):
        graphs.append(_graph(one, strings))
        places = one.shape.places
        titles.update({place.node: place.title for place in places if place.role not in ("chip", "module", "saved")})
        drawn.update(node for place in places for node in place.nodes)
    events = _events(timeline, held.low, held.high, strings, sources)
    actors = dict.fromkeys([*titles, *(node for node in events["actors"] if node)])
    nodes = {node: _node(timeline, node, titles.get(node, ""), held.low, held.high, sources) for node in actors}
    part = bool(options.part.node or options.part.only)
    return {
        "part": part,
        "title": program_title(timeline, chain.from_iterable(map(timeline.nodes.of, held.iterations))),
        "count": len(timeline),
        "low": held.low,
        "high": held.high,
        "start": n,
        "notes": [held.left_out] if held.left_out else [],
        "graphs": graphs,
        "events": events,
        "nodes": nodes,
        "moves": asdict(moves(timeline, held.low, held.high, drawn if part else None)),
        "marks": sources.marks,
        "files": sources.files(),
        "strings": strings.all(),
    }


def _drawn(timeline: Timeline, held: Extent, options: ExportOptions) -> Iterator[_Drawn]:
    """The iterations of the page, one after the other."""

    def heard(moment: int) -> None:
        if moment % HEARD_OF == 0:
            options.progress(MOST * (moment - held.low) / max(held.high - held.low, 1))

    for iteration in held.iterations:
        low = held.low if iteration is held.iterations[0] else iteration.start
        high = held.high if iteration is held.iterations[-1] else iteration.end
        notes: list[str] = []
        own = replace(options, style="gviz", note=notes.append, drawing=replace(options.drawing, marks=False))
        shape = _shape(timeline, iteration, drawing(timeline, max(low, iteration.start), own))
        changes = Changes(timeline, shape, nodes_in(timeline, iteration, shape)).between(low, high, heard)
        placed = geometry(scene(shape, timeline, timeline.at(high)), _widest(shape, changes), own)
        yield _Drawn(iteration.index + 1, low, high, shape, placed, changes, notes)


def _shape(timeline: Timeline, iteration: Iteration, words: Options) -> Structure:
    """The boxes of an iteration; where they are many and nothing else was asked for, each tensor in one line."""
    shape = structure(timeline, iteration, words)
    if words.tensors is None and len(shape.places) > WITH_GRIDS:
        return structure(timeline, iteration, replace(words, tensors="line"))
    return shape


def _widest(shape: Structure, changes: Sequence[Change]) -> dict[int, Sequence[str]]:
    """The largest label of each line at any moment, so that room is kept for it."""
    numbers: dict[Cell, int] = {(line_key(link), 0): number for number, link in enumerate(shape.links)}
    widest: dict[int, Sequence[str]] = {}
    for _, cell, text in changes:
        if cell in numbers:
            number, label = numbers[cell], text.split("\t")[1:]
            widest[number] = max(widest.get(number, ()), label, key=lambda lines: (len(lines), *map(len, lines)))
    return widest


def _graph(drawn: _Drawn, strings: Strings) -> dict[str, Any]:
    """One iteration: its drawing, the rows of its panels, and its changes, event by event.

    Cells are numbered: those of the boxes (states, then a row each), those of the lines, those of the panels.
    """
    shape, placed, changes = drawn.shape, drawn.placed, drawn.changes
    cells: dict[Cell, int] = {}
    for place in shape.places:
        for number in range(place.height):
            cells[place.key, number] = len(cells)
    for link in shape.links:
        cells.setdefault((line_key(link), 0), len(cells))
    panels = _panel_cells(changes)
    for node, rows in panels.items():
        for key in rows:
            cells[node, key] = len(cells)
    keys = {place.key: number for number, place in enumerate(shape.places)}
    return {
        "size": [placed.width, placed.height],
        "boxes": [_box(place, spot) for place, spot in zip(shape.places, placed.spots, strict=True)],
        "frames": [[title, spot.x, spot.y, spot.width, spot.height] for title, spot in placed.frames],
        "lines": [
            [link.kind, keys[link.source], keys[link.target], way.path, *(way.label or ())]
            for link, way in zip(shape.links, placed.ways, strict=True)
        ],
        "panels": [[node, len(rows)] for node, rows in panels.items()],
        "changes": _encoded(changes, cells, strings),
        "low": drawn.low,
        "high": drawn.high,
        "nr": drawn.nr,
        "notes": drawn.notes,
    }


def _box(place: Outline, spot: Spot) -> list[Any]:
    """What a box is and where it stands; last the nodes that one of a closed module stands for."""
    inside = () if place.group is None else place.nodes
    return [place.node, place.role, place.title, place.height, spot.x, spot.y, spot.width, spot.height, *inside]


def _panel_cells(changes: Sequence[Change]) -> dict[int, list[Any]]:
    found: dict[int, set[Any]] = {}
    for _, (node, key), _ in changes:
        if isinstance(node, int):
            found.setdefault(node, set()).add(key)
    return {node: sorted(keys) for node, keys in found.items()}


def _encoded(changes: Sequence[Change], cells: Mapping[Cell, int], strings: Strings) -> dict[str, Any]:
    """As columns of small numbers: at which events anything changes (as distances) and how much, then which cells (as
    distances within the event), to which text: 0 for one that was not there before, else its number and 1."""
    coded: dict[str, Any] = {"first": len(strings), "at": [], "counts": [], "cells": [], "texts": []}
    last = 0
    for n, group in groupby(changes, key=lambda change: change[0]):
        said = sorted((cells[cell], text) for _, cell, text in group)
        coded["at"].append(n - last)
        coded["counts"].append(len(said))
        coded["cells"] += [
            cell - before for (cell, _), before in zip(said, (0, *(cell for cell, _ in said)), strict=False)
        ]
        for _, text in said:
            known = text in strings
            coded["texts"].append(strings.number(text) + 1 if known else 0)
            strings.number(text)
        last = n
    return coded


def _events(timeline: Timeline, low: int, high: int, strings: Strings, sources: Sources) -> dict[str, Any]:
    """What happened at every moment: in words, to which node, in which phase, and where in the source."""
    moments = [timeline.at(n) for n in range(low, high + 1)]
    return {
        "texts": [strings.number(description(timeline, moment).rstrip(".")) for moment in moments],
        "actors": [moment.actor for moment in moments],
        "phases": steps((moment.n, strings.number(phase_words(timeline, moment))) for moment in moments),
        "marks": steps(_marks(timeline, moments, sources)),
    }


def _marks(timeline: Timeline, moments: Iterable[Moment], sources: Sources) -> Iterator[tuple[int, int]]:
    """Where each event happened if it is known, else where its node was made, else the place before."""
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
"""What fits: a browser shows it at once, and every iteration is laid out while somebody waits."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Iterations in a row, and the moments ``low..high`` of them; `left_out` says in words what is not there."""

    iterations: tuple[Iteration, ...]
    low: int
    high: int
    left_out: str


def extent(timeline: Timeline, n: int, *, alone: bool = False, moments: Sequence[int] = ()) -> Extent:
    """What a page opened at moment `n` holds: its iteration `alone`, or as much around it as fits; of `moments`, if
    they are given, nothing else."""
    every = timeline.iterations
    here = timeline.iteration_at(n)
    wanted = _around(every, moments) if moments else every
    kept = (here,) if alone else _grown(timeline, wanted, wanted.index(here))
    first, last = kept[0], kept[-1]
    low, high = (0 if first is every[0] else first.start), last.end
    if moments:
        low, high = max(low, moments[0]), min(high, moments[-1])
    if high - low > EVENTS:
        low = max(low, min(n - EVENTS // 2, high - EVENTS))
        high = low + EVENTS
    held = _held(every, kept, low, high, len(timeline))
    rest = "" if moments else "; exported at another moment, a page holds the rest"
    return Extent(kept, low, high, f"This page holds {held}{rest}." if held else "")


def _around(every: Sequence[Iteration], moments: Sequence[int]) -> Sequence[Iteration]:
    """The iterations in which the moments lie; what is before the first one belongs to it."""
    within = [one for one in every if one.start <= moments[-1] and moments[0] <= one.end]
    return within or every[:1]


def _grown(timeline: Timeline, every: Sequence[Iteration], at: int) -> tuple[Iteration, ...]:
    """The iteration at a place, with those after and before it in turn until no more fit."""
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


def _held(every: Sequence[Iteration], kept: Sequence[Iteration], low: int, high: int, count: int) -> str:
    """What is held, in words, where that is not everything."""
    words = []
    if len(kept) < len(every):
        first, last = kept[0].index + 1, kept[-1].index + 1
        which = f"iteration {first}" if first == last else f"iterations {first} to {last}"
        words.append(f"{which} of {len(every)}")
    if high - low < count - 1 or words:
        words.append(f"events {max(low, min(high, 1)):,} to {high:,} of {count:,}")
    return ", ".join(words)


Steps = tuple[list[int], list[int]]
"""A function of the moment that keeps its value for a while: from which moments on, which value."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Moments to stop at, ascending (`nodes`, `phases`, `stops`), those that a step passes (`silent`), and where
    `finish` and its reverse lead to."""

    silent: list[int]
    nodes: list[int]
    phases: list[int]
    stops: list[int]
    finish: Steps
    reverse_finish: Steps


def moves(timeline: Timeline, low: int, high: int, part: Collection[int] | None = None) -> Moves:
    """The ways within moments ``low..high``; who would leave them stops at the border. Of a `part`, whole nodes are
    those that lie in it."""

    def within(moments: Iterable[int]) -> list[int]:
        return [n for n in moments if low <= n <= high]

    return Moves(
        [n for n, _ in timeline.select(SILENT, low, high + 1)],
        [n for n in shown_ends(timeline, low, high) if part is None or timeline.at(n).actor in part],
        within(phase.start for phase in timeline.phases),
        within(navigation.stops(timeline)),
        steps((n, min(navigation.finish(timeline, n), high)) for n in range(low, high + 1)),
        steps((n, max(navigation.reverse_finish(timeline, n), low)) for n in range(low, high + 1)),
    )


def steps(values: Iterable[tuple[int, int]]) -> Steps:
    """Values by moment, with every repetition left out."""
    found: Steps = ([], [])
    for n, value in values:
        if not found[1] or found[1][-1] != value:
            found[0].append(n)
            found[1].append(value)
    return found


LARGEST = 400_000
"""A file with more characters than this is left out of the page."""

Mark = tuple[int, int, int, int, int]
"""File, line, column, last line, column behind the end; columns as the page counts them, -1 where not known."""


class Sources:
    """Files and marks in them, each once, numbered in the order in which they are asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._files: dict[str, list[str] | None] = {}
        self._marks: dict[Frame, int] = {}
        self.marks: list[Mark] = []

    def mark(self, frames: Sequence[Frame]) -> int:
        """The number of the place where a stack ends, -1 for an empty one."""
        if not frames:
            return -1
        frame = frames[0]
        if frame not in self._marks:
            self._marks[frame] = len(self.marks)
            self.marks.append(self._marked(frame))
        return self._marks[frame]

    def files(self) -> list[tuple[str, list[str]]]:
        """Each file's name and its lines as they are shown; no lines where the text was not kept or is too long."""
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
    """A line of source with tabs as blanks, and everything invisible made visible."""
    return shown(line.replace("\t", "    "))


def _column(line: str, column: int) -> int:
    """Where a column, counted in bytes of UTF-8, stands in the line as it is shown, counted as browsers do."""
    before = line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace")
    return len(display(before).encode("utf-16-le", "surrogatepass")) // 2
