"""Scenes: a moment as boxes, lines and words, with named styles. A scene has no colours and no coordinates.

`structure` defines the graph of an iteration once; `scene` fills it with the numbers and states of a moment, which
`box_content` and `edge_content` take from the recording. All pictures, in files and in the terminal, are drawn from the
same scene.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from gviz.events import GradFlowed, Marked
from gviz.explain.display_names import title
from gviz.explain.iteration_words import iteration_called, phase_words
from gviz.explain.tracking import as_in
from gviz.render.boxes.box_content import Box, box, place_text
from gviz.render.boxes.drawn_nodes import has_gradients, has_leaf_gradients
from gviz.render.boxes.edge_content import Edge, edge
from gviz.render.boxes.full_detail_rows import source_line
from gviz.render.boxes.graph_structure import Structure
from gviz.render.boxes.shown_moment import RESULT, Now
from gviz.trace.graph_state import NodeInfo, NodeState
from gviz.trace.iteration_and_phase_ends import phase_end, through
from gviz.trace.node_gradients import all_in_their_iteration
from gviz.trace.timeline import Moment, Timeline
from gviz.values.plain_text import file_name

UNTITLED = "computation graph"
"""The title of a graph whose program is unknown."""

States = Callable[[Sequence[int]], Sequence[NodeState | None]]


LABELLED_EDGES = 60
"""The most lines with labels: more labels would hide the graph."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The content of a picture of one moment. `flow`, `compact` and `remark` are those of the options.

    A long chain may be folded into `columns`, as the text of a newspaper. With `hides_pending`, what the program has
    not made yet keeps its room but is invisible. A figure, which has no legend, has a `key`: the meaning of its
    letters. `result` is the sign for the result of the passes in the names of gradients.
    """

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    title: str
    caption: str
    levels: int
    code: str = ""
    flow: Literal["auto", "LR", "TB"] = "auto"
    compact: bool = False
    remark: str = ""
    columns: int = 1
    hides_pending: bool = field(default=False, repr=False)
    key: tuple[str, ...] = field(default=(), repr=False)
    result: str = RESULT

    @property
    def labels_lines(self) -> bool:
        """Whether there is room for the labels of lines."""
        return len(self.edges) <= LABELLED_EDGES and not self.compact


def scene(
    shape: Structure, timeline: Timeline, moment: Moment, *, tooltips: bool = False, other: States | None = None
) -> Scene:
    """Return the structure as it is at the moment. Tooltips take time and are optional.

    `other` returns the states of nodes in a what-if, which are shown next to the recorded ones.
    """
    boxes, edges = parts(shape, timeline, moment, tooltips=tooltips, other=other)
    title, code = program_title(timeline, (place.node for place in shape.places)), _code(timeline, moment)
    options = shape.options
    return Scene(
        boxes,
        edges,
        title,
        caption(timeline, moment),
        shape.levels,
        code,
        options.flow,
        options.compact,
        options.remark,
        result=shape.result,
    )


def parts(
    shape: Structure,
    timeline: Timeline,
    moment: Moment,
    *,
    tooltips: bool = False,
    other: States | None = None,
    bare: Container[str] = (),
) -> tuple[tuple[Box, ...], tuple[Edge, ...]]:
    """Return the boxes and lines of a scene, in the order of the structure's places and links.

    The boxes of nodes that are `bare` have no rows.
    """
    inside, ends = (place.nodes for place in shape.places), (link.ends for link in shape.links)
    nodes = list(dict.fromkeys(chain(chain.from_iterable(inside), chain.from_iterable(ends))))
    here = all_in_their_iteration(timeline, moment.n, moment.states(nodes))
    states = dict(zip(nodes, here, strict=True))
    before, bad = timeline.at(max(moment.n - 1, 0)), _first_bad(timeline, moment)
    branch = None if other is None else dict(zip(nodes, other(nodes), strict=True))
    iteration = timeline.iterations[shape.iteration]
    passes = timeline.pass_ends(iteration) if shape.options.marks else []
    after = any(end <= moment.n for end in passes)
    now = Now(
        timeline,
        moment,
        before,
        states,
        bad,
        shape.options,
        branch,
        after,
        shape.shown,
        has_gradients(timeline, iteration, shape.options),
        has_leaf_gradients(timeline, iteration, shape.options),
        shape.result,
    )
    boxes = tuple(box(place, shape, now, tooltips=tooltips, bare=place.key in bare) for place in shape.places)
    return boxes, tuple(edge(link, now) for link in shape.links)


def framed(scene: Scene, depth: int) -> Scene:
    """Return the scene with at most this many frames around a box, the outermost."""
    return replace(
        scene, boxes=tuple(replace(box, enclosing_modules=box.enclosing_modules[:depth]) for box in scene.boxes)
    )


def _first_bad(timeline: Timeline, moment: Moment) -> int:
    seq = timeline.error_index.first_bad()
    return timeline.at(seq).node if 0 < seq <= moment.n else 0


def caption(timeline: Timeline, moment: Moment) -> str:
    """Return the position in time: ``event 12/17, backward pass 2, b = mul #4 to x = mul #2, demo.py:4``.

    With several iterations it is ``iteration 3 of 20, backward``, followed by the event unless the pass is over. For a
    graph that was not recorded while it was built, it is ``as it stands``.
    """
    if isinstance(moment.event, Marked) and not moment.event.name:
        return "as it stands"
    words = [*_when(timeline, moment)]
    if moment.phase is not None:
        several = len(timeline.iterations) < 2 or len(timeline.pass_ends(timeline.iteration_at(moment.n))) > 1
        words.append(phase_words(timeline, moment, numbered=several))
    if moment.actor:
        info = _now(timeline, moment, moment.actor)
        to = moment.event.node if isinstance(moment.event, GradFlowed) and moment.event.source else 0
        words.append(title(info) + (f" to {title(_now(timeline, moment, to))}" if to else ""))
        words += [place_text(info)] if info.frames else []
    return ", ".join(words)


def _when(timeline: Timeline, moment: Moment) -> Iterator[str]:
    iterations, here = timeline.iterations, timeline.iteration_at(moment.n)
    if len(iterations) < 2:
        yield f"event {moment.n}/{len(timeline)}"
        return
    yield f"{iteration_called(timeline)} {here.number:,} of {timeline.iteration_count:,}"
    ends = moment.phase is not None and moment.n in (moment.phase.end, phase_end(timeline, moment.phase))
    if not ends and moment.n != through(timeline, here):
        yield f"event {moment.n}"


def _now(timeline: Timeline, moment: Moment, node: int) -> NodeInfo:
    """Return a node with its name in the iteration of a moment."""
    return as_in(timeline, timeline.iteration_at(moment.n), {node: timeline.info(node)})[node]


def _code(timeline: Timeline, moment: Moment) -> str:
    """Return the line of the program that made the node of this event: ``demo.py:4  b = x * a``."""
    info = timeline.info(moment.actor) if moment.actor else None
    return source_line(timeline, info) if info is not None and info.frames else ""


def program_title(timeline: Timeline, nodes: Iterable[int]) -> str:
    """Return the program's name, from the outermost frame of the first node that has one."""
    frames = next(filter(None, (timeline.info(node).frames for node in nodes)), ())
    return file_name(frames[-1].path) if frames else UNTITLED
