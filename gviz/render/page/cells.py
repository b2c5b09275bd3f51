"""What the page shows, as cells of text that change in time: who changes at which event, and to what.

A box has one cell for its states and one per row, a line has one, and a node's panel has one per row. The scene and
the explanations say what stands in a cell at a moment; this file finds the moments at which it is worth asking.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from gviz import events as e
from gviz.render.page.panel import Panels, RowKey
from gviz.render.scene import Box, Edge, parts
from gviz.render.structure import Link, Place, Structure
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline

Cell = tuple[str, int] | tuple[int, RowKey]
"""Row `r` of a box (0: its states) or a line: its key and `r`. A row of a panel: its node and the row's key."""

Change = tuple[int, Cell, str]
"""From event `n` on, a cell says this. An empty text: the cell is not there."""


def line_key(link: Link) -> str:
    """The key of a line's cell."""
    return f"{link.source}>{link.target}.{link.slot}.{link.output_nr}.{link.kind}"


def box_cells(box: Box) -> Iterator[tuple[Cell, str]]:
    """The cells of a box: its states and the word for them, then style, label and text of each row."""
    yield (box.key, 0), f"{' '.join(box.states)}\t{box.status}"
    for number, row in enumerate(box.rows, 1):
        yield (box.key, number), f"{row.style}\t{row.label}\t{row.text}"
    for number in range(len(box.rows) + 1, box.height):
        yield (box.key, number), ""


def edge_cell(link: Link, edge: Edge) -> tuple[Cell, str]:
    """The cell of a line: its states and its label."""
    return (line_key(link), 0), f"{' '.join(edge.states)}\t{edge.label}"


def dressed(shape: Structure, timeline: Timeline, moment: Moment) -> Iterator[tuple[Cell, str]]:
    """All cells of the boxes and lines of a structure at a moment."""
    boxes, edges = parts(shape, timeline, moment)
    for box in boxes:
        yield from box_cells(box)
    for link, edge in zip(shape.links, edges, strict=True):
        yield edge_cell(link, edge)


@dataclass(slots=True)
class Recorder:
    """Notes what a cell says whenever it is not what it said before."""

    changes: list[Change] = field(default_factory=list)
    now: dict[Cell, str] = field(default_factory=dict)

    def note(self, n: int, said: Iterable[tuple[Cell, str]]) -> None:
        """Take down what cells say at event `n`."""
        for cell, text in said:
            if self.now.get(cell, "") != text:
                self.now[cell] = text
                self.changes.append((n, cell, text))


@dataclass(frozen=True, slots=True)
class Touched:
    """What may look different at a moment, and once more at the next, when it is over: nodes, and lines."""

    nodes: frozenset[int] = frozenset()
    links: tuple[Link, ...] = ()


class Changes:
    """The changes of one iteration's structure."""

    def __init__(self, timeline: Timeline, shape: Structure) -> None:
        self._timeline = timeline
        self._shape = shape
        self._panels = Panels(timeline)
        self._by_key = {place.key: place for place in shape.places}
        self._places: dict[int, list[Place]] = {}
        self._made_with: dict[int, list[Link]] = {}
        self._gradients: dict[tuple[int, int], list[Link]] = {}
        self._living_in: dict[int, set[int]] = {}
        for place in shape.places:
            self._places.setdefault(place.node, []).append(place)
        for link in shape.links:
            self._file(link)
        for node in self._places:
            for output in timeline.info(node).created.outputs:
                self._living_in.setdefault(output.storage, set()).add(node)

    def _file(self, link: Link) -> None:
        source, target = self._by_key[link.source].node, self._by_key[link.target].node
        if link.kind == "gradient":
            self._gradients.setdefault((target, source), []).append(link)
        else:
            self._made_with.setdefault(target, []).append(link)

    def between(self, low: int, high: int) -> list[Change]:
        """All that changes from moment `low`, at which everything is new, to moment `high`."""
        recorder = Recorder()
        before = Touched()
        for n in range(low, high + 1):
            moment = self._timeline.at(n)
            here = self._touched(moment)
            whole = n == low or isinstance(moment.event, e.BackwardStarted | e.BackwardFinished)
            part = self._shape if whole else self._part(here.nodes | before.nodes, (*here.links, *before.links))
            if part.places:
                recorder.note(n, dressed(part, self._timeline, moment))
            nodes = self._places.keys() if whole else here.nodes & self._places.keys()
            for node, state in zip(nodes, moment.states(list(nodes)), strict=True):
                said = self._panels.rows(moment, node, state, whole=whole)
                recorder.note(n, (((node, key), text) for key, text in said))
            before = here
        return recorder.changes

    def _touched(self, moment: Moment) -> Touched:
        event = moment.event
        nodes = {moment.node, moment.actor, moment.step}
        links: list[Link] = []
        match event:
            case e.NodeCreated(node=node, inputs=inputs):
                nodes.update(source for source, _ in inputs)
                links = self._made_with.get(node, [])
            case e.GradFlowed(source=source, node=node):
                links = self._gradients.get((source, node), [])
            case e.StorageWritten(storage=storage):
                nodes |= self._living_in.get(storage, set())
            case e.Failed(node=node):
                nodes.add(node)
        return Touched(frozenset(nodes), tuple(links))

    def _part(self, nodes: Collection[int], links: Iterable[Link]) -> Structure:
        """The boxes of some nodes, and some lines with the boxes at their ends."""
        links = tuple(dict.fromkeys(links))
        places = {place.key: place for node in nodes for place in self._places.get(node, ())}
        for link in links:
            places |= {key: self._by_key[key] for key in (link.source, link.target)}
        return Structure(self._shape.iteration, tuple(places.values()), links, self._shape.levels)
