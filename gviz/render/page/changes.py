"""The changes of a page: for every event the boxes, lines and panels that differ, as cells of text.

`gviz.explain.node_facts` makes the panel of a node as rows of text. Rows that cannot have changed are not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator
from dataclasses import dataclass, field, replace

from gviz import events as e
from gviz.explain.node_facts import SECTIONS, Fact, NodeView, Section
from gviz.render.boxes.box_content import Box
from gviz.render.boxes.box_row import Row
from gviz.render.boxes.box_size import Outline
from gviz.render.boxes.edge_content import Edge
from gviz.render.boxes.edges import Link
from gviz.render.boxes.graph_structure import Structure
from gviz.render.scene import parts
from gviz.trace.graph_state import Iteration, NodeState
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Moment, Timeline

RowKey = tuple[int, int, int]
"""The key of a row in its panel: the index of its section in `SECTIONS`, its subject, and its index there."""

PanelRow = tuple[RowKey, str]

States = tuple[NodeState | None, NodeState | None]
"""The state of a node now, and in its iteration. The text may depend on either."""

ALL = frozenset(range(len(SECTIONS)))
STYLES = {"error": "bad", "title": "text", "": "text"}
"""The name of a style in `page.css`, where it has another name."""


class PanelRows:
    """The panels of many nodes, moment after moment. Rows that cannot have changed are not computed again."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._known: dict[int, set[RowKey]] = {}
        self._seen: dict[int, States] = {}

    def rows(self, moment: Moment, node: int, state: NodeState | None) -> Iterator[PanelRow]:
        """Yield the rows that may have changed since the last call for this node; rows that are gone have empty texts.

        Keys sort in the order of the panel.
        """
        states = state, in_its_iteration(self._timeline, moment.n, state)
        numbers = self._to_make(moment, node, states)
        if not numbers:
            return
        known = self._known.setdefault(node, set())
        view = NodeView(self._timeline, moment, node, states[1], full=True)
        rows = {
            (number, fact.about, fact.further): _row(fact)
            for number in numbers
            for fact in SECTIONS[number].facts(view)
        }
        before = {key for key in known if key[0] in numbers}
        yield from ((key, "") for key in before - rows.keys())
        known -= before
        known.update(rows)
        self._seen[node] = states
        yield from rows.items()

    def forget(self) -> None:
        """Compute all rows again: after a change of requires_grad, the backward rules of users read differently."""
        self._seen.clear()

    def _to_make(self, moment: Moment, node: int, states: States) -> Collection[int]:
        """Return the indices of the sections that are computed again."""
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
    """Return a row as one text: its style, its label, and its parts."""
    return f"{_style(fact)}\t{fact.name}\t{''.join(part.text for part in fact.parts)}"


def _style(fact: Fact) -> str:
    """Return the style of a row whose parts have several: errors win, links and asides do not count."""
    styles = {part.style for part in fact.parts if part.text}
    if "error" in styles:
        return "bad"
    style, *others = sorted(styles - {"key", "muted"}) or [("muted" if "muted" in styles else "")]
    return "text" if others else STYLES.get(style, style)


Cell = tuple[str, int] | tuple[int, RowKey]
"""A row of a box (0: its states) or of a line: its key and number. A row of a panel: its node and its key."""

Change = tuple[int, Cell, str]
"""The event, the cell, and its text from that event on. An empty text means that the cell disappears."""


OF_PASSES = tuple(kind for kind in e.KINDS if {"node", "pass_nr"} <= {*kind.__struct_fields__})
"""Events by which a pass may reach a node. The node then no longer shows the contributions of an earlier pass."""


OF_NODES = ("leaf", "parameter", "constant", "op", "root")
"""The roles of boxes that represent only one node."""


UNNAMED = "\u00a0"
"""The label of a further line of a matrix, right-aligned like its first line."""

DIGIT = "\u2007"
"""A blank as wide as a digit."""


def line_key(link: Link) -> str:
    """Return the key of a line's cell."""
    return f"{link.source}>{link.target}.{link.slot}.{link.node}.{link.output_nr}.{link.kind}"


def box_cells(box: Box, *, bare: bool = False) -> Iterator[tuple[Cell, str]]:
    """Yield the cells of a box: its states and the word for them, then style, label and text of each line.

    A row that shares a line is at its end.
    """
    yield (box.key, 0), f"{' '.join(box.states)}\t{box.status}"
    if bare:
        return
    lines: list[str] = []
    for row in box.rows:
        shown = [*_lines(row)]
        if row.shares_line and lines:
            lines[-1] += f"\t{shown[0]}"
        else:
            lines += shown
    lines += [""] * (box.height - 1 - len(lines))
    for number, line in enumerate(lines[: box.height - 1], 1):
        yield (box.key, number), line


def _lines(row: Row) -> Iterator[str]:
    """Yield a row in as many lines as its height. A thumbnail has only its text."""
    texts = ["  ".join(numbers) for numbers in row.grid] or [row.text]
    for number in range(row.lines):
        text = texts[number] if number < len(texts) else ""
        yield f"{row.style}\t{row.label if number == 0 else UNNAMED}\t{text}"


def edge_cell(link: Link, edge: Edge) -> tuple[Cell, str]:
    """Return the cell of a line: its states, and each line of its label."""
    return (line_key(link), 0), "\t".join([" ".join(edge.states), *_over(edge)])


def _over(edge: Edge) -> Iterator[str]:
    """Yield the label of a line, or the numbers of a contribution in rows and columns; then its hooks."""
    if not edge.grid:
        yield edge.formula
    widths = [max(map(len, column)) for column in zip(*edge.grid, strict=True)]
    for at, row in enumerate(edge.grid):
        numbers = (number.rjust(width, DIGIT) for number, width in zip(row, widths, strict=True))
        yield " ".join([edge.sign if at == 0 else DIGIT * len(edge.sign), *numbers]).rstrip()
    if edge.hooks:
        yield edge.hook_text


def dressed(
    shape: Structure, timeline: Timeline, moment: Moment, bare: Container[str] = ()
) -> Iterator[tuple[Cell, str]]:
    """Yield all cells of a structure's boxes and lines at a moment. Boxes that are `bare` have only their states."""
    boxes, edges = parts(shape, timeline, moment, bare=bare)
    for box in boxes:
        yield from box_cells(box, bare=box.key in bare)
    for link, edge in zip(shape.links, edges, strict=True):
        yield edge_cell(link, edge)


@dataclass(slots=True)
class Recorder:
    """A recorder of cells, which stores a text only if it differs from the last text of the cell."""

    changes: list[Change] = field(default_factory=list)
    now: dict[Cell, str] = field(default_factory=dict)

    def note(self, n: int, texts: Iterable[tuple[Cell, str]]) -> None:
        """Record the texts of cells at event `n`."""
        for cell, text in texts:
            if self.now.get(cell, "") != text:
                self.now[cell] = text
                self.changes.append((n, cell, text))


@dataclass(frozen=True, slots=True)
class Touched:
    """The nodes and lines that may change at a moment. Nodes in `marks` change again at the next moment."""

    nodes: Collection[int] = ()
    links: Collection[Link] = ()
    marks: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Look:
    """The inputs of the text in a node's box. `adds` is the event if it adds to a gradient here, or else 0.

    `after_pass` is set if a pass is over: then leaves without a gradient are marked. `writers` are the nodes that exist
    and wrote to the node's outputs.
    """

    state: NodeState | None
    failed: e.Failed | None
    acts: bool
    adds: int
    after_pass: bool
    writers: frozenset[int]


def nodes_in(timeline: Timeline, iteration: Iteration, shape: Structure) -> tuple[int, ...]:
    """Return the nodes of an iteration, and other nodes that its boxes represent, in order of creation."""
    nodes = {*timeline.nodes.of(iteration), *(node for place in shape.places for node in place.nodes)}
    return tuple(sorted(nodes, key=timeline.nodes.born))


class Changes:
    """The changes of one iteration: of its structure, and of the panels of its nodes.

    `nodes` are nodes whose panels are included even if they have no box.
    """

    def __init__(self, timeline: Timeline, shape: Structure, nodes: Iterable[int] = ()) -> None:
        self._timeline = timeline
        self._shape = shape
        self._panels = PanelRows(timeline)
        self._places: dict[int, list[Outline]] = {}
        self._input_links: dict[int, list[Link]] = {}
        self._gradients: dict[int, list[Link]] = {}
        self._nodes_by_storage: dict[int, set[int]] = {}
        self._looks: dict[str, Look] = {}
        self._nodes = list(dict.fromkeys([*(node for place in shape.places for node in place.nodes), *nodes]))
        self._known = frozenset(self._nodes)
        self._leaves = {node for node in self._nodes if timeline.info(node).created.kind != "op"}
        self._pass_ends = timeline.pass_ends(timeline.iterations[shape.iteration])
        for place in shape.places:
            for node in place.nodes:
                self._places.setdefault(node, []).append(place)
        self._failed = [place.node for place in shape.places if place.role == "failed"]
        for link in shape.links:
            self._file(link)
        for node in self._nodes:
            for output in timeline.info(node).created.outputs:
                self._nodes_by_storage.setdefault(output.storage, set()).add(node)

    def _file(self, link: Link) -> None:
        if link.kind == "gradient":
            self._gradients.setdefault(link.node, []).append(link)
        else:
            for user in {user for user, _ in link.uses}:
                self._input_links.setdefault(user, []).append(link)

    def between(self, low: int, high: int, progress: Callable[[int], object] = lambda n: None) -> list[Change]:
        """Return the changes from moment `low` to moment `high`. At `low` everything is new.

        `progress` is called with each moment.
        """
        recorder = Recorder()
        earlier, before = Touched(), self._timeline.at(low)
        for n in range(low, high + 1):
            progress(n)
            moment = self._timeline.at(n)
            if n > low and not isinstance(moment.event, e.BackwardStarted | e.BackwardFinished):
                moment.follow(before, self._concerned(moment))
            begins = n == self._timeline.iteration_at(n).start  # it ends the contributions of the pass before
            whole = n == low or begins or isinstance(moment.event, e.RequiresGradSet)
            here = self._everything if whole else self._touched(moment)
            self._note(recorder, moment, here, earlier, whole=whole)
            earlier, before = here, moment
        return recorder.changes

    def _note(self, recorder: Recorder, moment: Moment, here: Touched, earlier: Touched, *, whole: bool) -> None:
        """Record the cells that are touched `here`, and those that the previous event marked (`earlier`)."""
        nodes = self._nodes if whole else [node for node in here.nodes if node in self._known]
        places, bare = self._shape.places, set[str]()
        if whole:
            self._looks.clear()
            self._panels.forget()
        else:
            places, bare = self._changed_places(moment, {*nodes, *earlier.marks})
        links = self._shape.links if whole else tuple(dict.fromkeys((*here.links, *earlier.links)))
        if places or links:
            part = replace(self._shape, places=places, links=links)
            recorder.note(moment.n, dressed(part, self._timeline, moment, bare))
        for node, state in zip(nodes, moment.states(nodes), strict=True):
            rows = self._panels.rows(moment, node, state)
            recorder.note(moment.n, (((node, key), text) for key, text in rows))

    @property
    def _everything(self) -> Touched:
        return Touched(self._nodes, self._shape.links, self._known)

    def _concerned(self, moment: Moment) -> set[int]:
        """Return the nodes that an event may change. The event must not begin or end a pass."""
        event = moment.event
        living = self._nodes_by_storage.get(event.storage, ()) if isinstance(event, e.StorageWritten) else ()
        return {moment.node, *living}

    def _changed(self, moment: Moment) -> list[int]:
        """Return the nodes whose state differs from the moment before."""
        states = zip(moment.states(self._nodes), self._timeline.at(moment.n - 1).states(self._nodes), strict=True)
        return [node for node, (now, before) in zip(self._nodes, states, strict=True) if now != before]

    def _touched(self, moment: Moment) -> Touched:
        event = moment.event
        marks = frozenset((moment.node, moment.actor, moment.step))
        nodes, links = set(marks), self._reached(moment) if isinstance(event, OF_PASSES) else []
        match event:
            case e.NodeCreated(node=node, inputs=inputs, outputs=outputs):
                nodes.update(source for source, _ in inputs)
                nodes.update(*(self._nodes_by_storage.get(output.storage, ()) for output in outputs))
                links = self._input_links.get(node, [])
            case e.StorageWritten(storage=storage):
                nodes |= self._nodes_by_storage.get(storage, set())
            case e.HookRan(node=node):
                links = self._gradients.get(node, [])
            case e.GradSet(node=node):  # it may clear the contributions of a pass
                links = self._gradients.get(node, [])
            case e.Failed(node=node):
                nodes.update((node, *self._failed))
                marks = marks.union(self._failed)
                links = [link for link in self._shape.links if link.since == moment.n]
            case e.BackwardStarted() | e.BackwardFinished():
                nodes.update(changed := self._changed(moment))
                nodes |= self._leaves
                links = [link for node in changed for link in self._gradients.get(node, ())]
        return Touched(nodes, links, marks)

    def _reached(self, moment: Moment) -> list[Link]:
        """Return the gradient lines that an event reaches.

        They are all lines of its node if another pass has come to it, or more contributions than were expected: then no
        line brings the whole gradient.
        """
        links = self._gradients.get(moment.node, [])
        before, now = (self._timeline.at(n).state(moment.node) for n in (moment.n - 1, moment.n))
        if before is None or now is None or before.pass_nr != now.pass_nr:
            return links
        if [output.expected for output in before.outputs] != [output.expected for output in now.outputs]:
            return links
        event = moment.event
        return [link for link in links if isinstance(event, e.GradFlowed) and (event.source, event.slot) in link.uses]

    def _changed_places(self, moment: Moment, nodes: Collection[int]) -> tuple[tuple[Outline, ...], set[str]]:
        """Return the boxes of some nodes that look different now, and which of them differ only in their state."""
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
        after = any(end <= moment.n for end in self._pass_ends)
        state = moment.state(place.node)
        written_by = {output.written_by for output in state.outputs} - {0} if state is not None else set[int]()
        writers = frozenset(node for node in written_by if self._timeline.info(node).born <= moment.n)
        return Look(state, moment.failed, moment.actor == place.node, adds, after, writers)
