"""What changes on a page, and when: for every event the boxes, lines and panels that differ, as cells of text.

The panels are rows of text that `gviz.explain.panel` makes of a node. Rows that cannot have changed are not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace

from gviz import events as e
from gviz.explain.panel import SECTIONS, Fact, NodeView, Section
from gviz.render.boxes.box_size import Outline
from gviz.render.boxes.links import Link
from gviz.render.boxes.row import Row
from gviz.render.boxes.structure import Structure
from gviz.render.scene import ADDED, Box, Edge, parts
from gviz.trace.graph_state import Iteration, NodeState
from gviz.trace.moment import Moment
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Timeline

RowKey = tuple[int, int, int]
"""Where a row stands in its panel: the place of its section in `SECTIONS`, what it is about, and its place there."""

PanelRow = tuple[RowKey, str]

States = tuple[NodeState | None, NodeState | None]
"""A node as it is, and as its iteration shows it: what is said may hang on either."""

ALL = frozenset(range(len(SECTIONS)))
STYLES = {"error": "bad", "title": "text", "": "text"}
"""What `page.css` calls a style, where it has another name there."""


class PanelRows:
    """Panels of many nodes, moment after moment; rows that cannot have changed are not worked out again."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._known: dict[int, set[RowKey]] = {}
        self._seen: dict[int, States] = {}

    def rows(self, moment: Moment, node: int, state: NodeState | None) -> Iterator[PanelRow]:
        """The rows that may have changed since the node was asked for last, those that are gone as empty texts.

        Keys sort in the order of the panel.
        """
        states = state, in_its_iteration(self._timeline, moment.n, state)
        numbers = self._to_make(moment, node, states)
        if not numbers:
            return
        known = self._known.setdefault(node, set())
        view = NodeView(self._timeline, moment, node, states[1], full=True)
        found = {
            (number, fact.about, fact.further): _row(fact)
            for number in numbers
            for fact in SECTIONS[number].facts(view)
        }
        before = {key for key in known if key[0] in numbers}
        yield from ((key, "") for key in before - found.keys())
        known -= before
        known.update(found)
        self._seen[node] = states
        yield from found.items()

    def forget(self) -> None:
        """Inputs need a gradient now, or no longer: the rules read differently."""
        self._seen.clear()

    def _to_make(self, moment: Moment, node: int, states: States) -> Collection[int]:
        """The sections that are made anew, by their place."""
        if node not in self._seen:
            return ALL
        before = self._seen[node]
        return [
            number
            for number, section in enumerate(SECTIONS)
            if section.news(moment, node) or _may_differ(section, before, states)
        ]


def _may_differ(section: Section, before: States, now: States) -> bool:
    return any(
        one is not other and section.hang_on(one) != section.hang_on(other)
        for one, other in zip(before, now, strict=True)
    )


def _row(fact: Fact) -> str:
    """A row as one text: its style, its label, and what it says."""
    return f"{_style(fact)}\t{fact.name}\t{''.join(part.text for part in fact.parts)}"


def _style(fact: Fact) -> str:
    """The one style of a row whose parts have several: what is wrong shows, links and asides do not count."""
    styles = {part.style for part in fact.parts if part.text}
    if "error" in styles:
        return "bad"
    style, *others = sorted(styles - {"key", "muted"}) or [("muted" if "muted" in styles else "")]
    return "text" if others else STYLES.get(style, style)


Cell = tuple[str, int] | tuple[int, RowKey]
"""Row `r` of a box (0: its states) or a line: its key and `r`. A row of a panel: its node and the row's key."""

Change = tuple[int, Cell, str]
"""From event `n` on, a cell says this. An empty text: the cell is not there."""


OF_PASSES = tuple(kind for kind in e.KINDS if {"node", "pass_nr"} <= {*kind.__struct_fields__})
"""Events by which a pass may reach a node: what an earlier one has sent there is then over."""


OF_NODES = ("leaf", "parameter", "constant", "op", "root")
"""The roles of boxes that stand for one node alone."""


UNNAMED = "\u00a0"
"""The label of a further line of a matrix, which stands at the right like its first."""

DIGIT = "\u2007"
"""A blank as wide as a digit."""


def line_key(link: Link) -> str:
    """The key of a line's cell."""
    return f"{link.source}>{link.target}.{link.slot}.{link.node}.{link.output_nr}.{link.kind}"


def box_cells(box: Box, *, bare: bool = False) -> Iterator[tuple[Cell, str]]:
    """The cells of a box: its states and the word for them, then style, label and text of each line."""
    yield (box.key, 0), f"{' '.join(box.states)}\t{box.status}"
    if bare:
        return
    lines = [line for row in box.rows for line in _lines(row)]
    lines += [""] * (box.height - 1 - len(lines))
    for number, line in enumerate(lines[: box.height - 1], 1):
        yield (box.key, number), line


def _lines(row: Row) -> Iterator[str]:
    """A row in as many lines as it is high; a thumbnail says its text."""
    texts = ["  ".join(numbers) for numbers in row.grid] or [row.text]
    for number in range(row.lines):
        text = texts[number] if number < len(texts) else ""
        yield f"{row.style}\t{row.label if number == 0 else UNNAMED}\t{text}"


def edge_cell(link: Link, edge: Edge) -> tuple[Cell, str]:
    """The cell of a line: its states, and each line of what stands over it."""
    return (line_key(link), 0), "\t".join([" ".join(edge.states), *_over(edge)])


def _over(edge: Edge) -> Iterator[str]:
    """The label of a line, or the numbers of a part below one another, in columns."""
    if not edge.grid:
        yield edge.label
    widths = [max(map(len, column)) for column in zip(*edge.grid, strict=True)]
    for at, row in enumerate(edge.grid):
        numbers = (number.rjust(width, DIGIT) for number, width in zip(row, widths, strict=True))
        yield " ".join([ADDED if at == 0 else DIGIT * len(ADDED), *numbers])


def dressed(
    shape: Structure, timeline: Timeline, moment: Moment, bare: Container[str] = ()
) -> Iterator[tuple[Cell, str]]:
    """All cells of the boxes and lines of a structure at a moment; of the `bare` boxes the states alone."""
    boxes, edges = parts(shape, timeline, moment, bare=bare)
    for box in boxes:
        yield from box_cells(box, bare=box.key in bare)
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
    """What may look different at a moment: nodes and lines. What it `marks` looks different again when it is over."""

    nodes: Collection[int] = ()
    links: Collection[Link] = ()
    marks: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Look:
    """What the text of a node's box depends on; `adds` is the event that adds a gradient to another there, or 0."""

    state: NodeState | None
    failed: e.Failed | None
    acts: bool
    adds: int


def nodes_in(timeline: Timeline, iteration: Iteration, shape: Structure) -> tuple[int, ...]:
    """The nodes of an iteration, and those that its boxes show besides, in order of creation."""
    nodes = {*timeline.nodes.of(iteration), *(node for place in shape.places for node in place.nodes)}
    return tuple(sorted(nodes, key=timeline.nodes.born))


class Changes:
    """The changes of one iteration: its structure, and the panels of its nodes, of `nodes` also if they have no box."""

    def __init__(self, timeline: Timeline, shape: Structure, nodes: Iterable[int] = ()) -> None:
        self._timeline = timeline
        self._shape = shape
        self._panels = PanelRows(timeline)
        self._places: dict[int, list[Outline]] = {}
        self._made_with: dict[int, list[Link]] = {}
        self._gradients: dict[int, list[Link]] = {}
        self._living_in: dict[int, set[int]] = {}
        self._looks: dict[str, Look] = {}
        self._nodes = list(dict.fromkeys([*(node for place in shape.places for node in place.nodes), *nodes]))
        self._known = frozenset(self._nodes)
        for place in shape.places:
            for node in place.nodes:
                self._places.setdefault(node, []).append(place)
        for link in shape.links:
            self._file(link)
        for node in self._nodes:
            for output in timeline.info(node).created.outputs:
                self._living_in.setdefault(output.storage, set()).add(node)

    def _file(self, link: Link) -> None:
        if link.kind == "gradient":
            self._gradients.setdefault(link.node, []).append(link)
        else:
            for user in {user for user, _ in link.uses}:
                self._made_with.setdefault(user, []).append(link)

    def between(self, low: int, high: int, heard: Callable[[int], object] = lambda n: None) -> list[Change]:
        """All that changes from moment `low`, at which everything is new, to moment `high`; `heard` hears how far."""
        recorder = Recorder()
        over, before = Touched(), self._timeline.at(low)
        for n in range(low, high + 1):
            heard(n)
            moment = self._timeline.at(n)
            if n > low and not isinstance(moment.event, e.BackwardStarted | e.BackwardFinished):
                moment.follow(before, self._concerned(moment))
            begins = n == self._timeline.iteration_at(n).start  # what the pass before brought is over
            whole = n == low or begins or isinstance(moment.event, e.RequiresGradSet)
            here = self._everything if whole else self._touched(moment)
            self._note(recorder, moment, here, over, whole=whole)
            over, before = here, moment
        return recorder.changes

    def _note(self, recorder: Recorder, moment: Moment, here: Touched, over: Touched, *, whole: bool) -> None:
        """Take down what is touched `here`, and what was by the event that is `over`."""
        nodes = self._nodes if whole else [node for node in here.nodes if node in self._known]
        places, bare = self._shape.places, set[str]()
        if whole:
            self._looks.clear()
            self._panels.forget()
        else:
            places, bare = self._changed_places(moment, {*nodes, *over.marks})
        links = self._shape.links if whole else tuple(dict.fromkeys((*here.links, *over.links)))
        if places or links:
            part = replace(self._shape, places=places, links=links)
            recorder.note(moment.n, dressed(part, self._timeline, moment, bare))
        for node, state in zip(nodes, moment.states(nodes), strict=True):
            said = self._panels.rows(moment, node, state)
            recorder.note(moment.n, (((node, key), text) for key, text in said))

    @property
    def _everything(self) -> Touched:
        return Touched(self._nodes, self._shape.links, self._known)

    def _concerned(self, moment: Moment) -> set[int]:
        """The nodes that an event may change which does not begin or end a pass."""
        event = moment.event
        living = self._living_in.get(event.storage, ()) if isinstance(event, e.StorageWritten) else ()
        return {moment.node, *living}

    def _changed(self, moment: Moment) -> list[int]:
        """The nodes that are not what they were a moment before."""
        states = zip(moment.states(self._nodes), self._timeline.at(moment.n - 1).states(self._nodes), strict=True)
        return [node for node, (now, before) in zip(self._nodes, states, strict=True) if now != before]

    def _touched(self, moment: Moment) -> Touched:
        event = moment.event
        marks = frozenset((moment.node, moment.actor, moment.step))
        nodes, links = set(marks), self._reached(moment) if isinstance(event, OF_PASSES) else []
        match event:
            case e.NodeCreated(node=node, inputs=inputs):
                nodes.update(source for source, _ in inputs)
                links = self._made_with.get(node, [])
            case e.StorageWritten(storage=storage):
                nodes |= self._living_in.get(storage, set())
            case e.GradSet(node=node):  # if it clears what a pass has brought, that is over
                links = self._gradients.get(node, [])
            case e.Failed(node=node):
                nodes.add(node)
            case e.BackwardStarted() | e.BackwardFinished():
                nodes.update(changed := self._changed(moment))
                links = [link for node in changed for link in self._gradients.get(node, ())]
        return Touched(nodes, links, marks)

    def _reached(self, moment: Moment) -> list[Link]:
        """The gradient lines on which the event brings something; all of its node if another pass counts there now."""
        links = self._gradients.get(moment.node, [])
        before, now = (self._timeline.at(n).state(moment.node) for n in (moment.n - 1, moment.n))
        if before is None or now is None or before.pass_nr != now.pass_nr:
            return links
        event = moment.event
        return [link for link in links if isinstance(event, e.GradFlowed) and (event.source, event.slot) in link.uses]

    def _changed_places(self, moment: Moment, nodes: Collection[int]) -> tuple[tuple[Outline, ...], set[str]]:
        """The boxes of some nodes, but for those that look as before, and which of them only have another state."""
        places, bare = [], set()
        for node in nodes:
            for place in self._places.get(node, ()):
                look, known = self._look(place, moment), self._looks.get(place.key)
                if place.group is None and look == known:
                    continue
                self._looks[place.key] = look
                places.append(place)
                if place.role in OF_NODES and known is not None and look == replace(known, acts=look.acts):
                    bare.add(place.key)
        return tuple(places), bare

    def _look(self, place: Outline, moment: Moment) -> Look:
        here = isinstance(moment.event, e.GradFlowed | e.GradAccumulated) and moment.node == place.node
        adds = moment.n if here else 0
        return Look(moment.state(place.node), moment.failed, moment.actor == place.node, adds)
