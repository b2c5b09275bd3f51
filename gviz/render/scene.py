"""Scenes: a moment as boxes, lines and words, with named styles. A scene has no colours and no coordinates.

`structure` defines the graph of an iteration once; `scene` fills it with the numbers and states of a moment. All
pictures, in files and in the terminal, are drawn from the same scene.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from rich.cells import cell_len

from gviz.events import GradFlowed, Marked
from gviz.explain.display_names import iteration_called, op_title, phase_words, title
from gviz.explain.failed_call import failed_call
from gviz.explain.hook_effects import HookEffect, hooks_after_rule
from gviz.explain.tracking import as_at, as_in
from gviz.render.boxes.box_size import LEAF_NUMBER, Outline, Role, message_rows, module_key, module_title
from gviz.render.boxes.details import cut_text, remark, source_line
from gviz.render.boxes.fold import Group
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.links import Link, LinkKind
from gviz.render.boxes.module_boxes import group_rows, group_states, group_status, inner_hooks, operation_list
from gviz.render.boxes.node_rows import (
    HOOK,
    NORM,
    Now,
    brief_rows,
    chip_rows,
    hook_names,
    node_rows,
    rows_with_comparison,
    saved_rows,
)
from gviz.render.boxes.row import Row
from gviz.render.boxes.state_words import State, state_word, states_of, status
from gviz.render.boxes.structure import Structure, structure
from gviz.render.boxes.tensors import DIGITS, Numbers, grid
from gviz.trace.graph_state import Contribution, NodeInfo, NodeState
from gviz.trace.navigation import through
from gviz.trace.node_gradients import all_in_their_iteration
from gviz.trace.timeline import Moment, Timeline
from gviz.values.plain_text import file_line, file_name, shown
from gviz.values.value import Value
from gviz.values.value_text import full, share

EdgeState = Literal["pending", "flowed", "now", "cut"]


@dataclass(frozen=True, slots=True)
class Edge:
    """One line, in the direction of its arrow: a gradient edge leads from the user of a tensor to its maker.

    `output_nr` is the number of an output of the tensor's maker, `slot` is the number of an input of its user (-1: not
    an input). Where several gradients meet, the numbers of a small one are the `grid` of its line; renderers that
    cannot draw that show `text`.
    """

    source: str
    target: str
    kind: LinkKind
    output_nr: int
    slot: int
    label: str
    states: tuple[EdgeState, ...]
    grid: Numbers = ()
    symbol: str = ""
    whole: bool = False
    hooks: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the label of the line in one line of text."""
        rows = " ".join(f"[{' '.join(row)}]" for row in self.grid)
        return f"{ADDED} {f'[{rows}]' if len(self.grid) > 1 else rows}" if rows else self.label

    @property
    def sign(self) -> str:
        """Return what the numbers of the line are: ``∂L/∂h =``, or ``∂L/∂h +=`` for one of several contributions."""
        if self.whole:
            return f"{self.symbol} =" if self.symbol else ""
        return f"{self.symbol} {ADDED}".lstrip()

    @property
    def formula(self) -> str:
        """Return the label as mathematics: ``∂L/∂h = 3``, ``|∂L/∂h| = 0.52``, ``∂L/∂h += 3``."""
        number = self.label.removeprefix(ADDED).strip()
        if not number or self.kind != "gradient":
            return self.label
        if number.startswith(NORM) and self.symbol and self.whole:
            return f"|{self.symbol}| = {number.removeprefix(NORM).strip()}"
        return f"{self.sign} {number}".lstrip()

    @property
    def hook_text(self) -> str:
        """Return ``hook clamp``: the hooks that changed this gradient; empty if there is none."""
        return f"{HOOK} {', '.join(self.hooks)}" if self.hooks else ""


ADDED = "+="
"""The sign before a contribution to a gradient."""

SYMBOL = "∂L/∂"
"""The sign before the name of a tensor for its gradient."""

LONGEST_SYMBOL = 10
"""The most characters of a name in the symbol of a gradient."""


def edge(link: Link, now: Now) -> Edge:
    """Return a line at the moment."""
    if link.kind == "gradient":
        return _gradient(link, now)
    born = any(now.states.get(user) is not None for user, _ in link.uses) or 0 < link.since <= now.moment.n
    states: tuple[EdgeState, ...] = () if born else ("pending",)
    if not link.tracked:
        states = (*states, "cut")
    return Edge(link.source, link.target, link.kind, link.output_nr, link.slot, link.label, states)


def _gradient(link: Link, now: Now) -> Edge:
    """Return a gradient line: with its number if it represents one use, without a number if it represents several."""
    contributions = [now.contribution(link.node, link.output_nr, user, slot) for user, slot in link.uses]
    parts = [part for part in contributions if part is not None]
    single = parts[0].value if len(contributions) == len(parts) == 1 else None
    label = f"{ADDED} {share(single, LEAF_NUMBER, DIGITS)}" if single is not None else ""
    numbers = _addend(link, single, now) if single is not None else ()
    states: tuple[EdgeState, ...] = ("flowed",) if parts else ("pending",)
    if brings(now, link.node, link.output_nr, link.uses):
        states = ("flowed", "now")
    effects = _hooks(link, parts, now) if parts else []
    state = now.states[link.node]
    drawn = Edge(
        link.target,
        link.source,
        "gradient",
        link.output_nr,
        link.slot,
        label,
        states,
        numbers,
        symbol=_symbol(link, now),
        whole=state is not None and state.outputs[link.output_nr].expected == 1 and not effects,
    )
    if not now.options.marks:
        return drawn
    return replace(drawn, hooks=hook_names(effects), remarks=tuple(hook_words(effect, now) for effect in effects))


def hook_words(effect: HookEffect, now: Now) -> str:
    """Return what a hook changed, and where the program registered it."""
    return f"{effect.words(now.timeline)}{effect.registered(now.timeline)}"


def _symbol(link: Link, now: Now) -> str:
    """Return ``∂L/∂h`` for the gradient of an output that has a short name, and else an empty text."""
    info = now.timeline.info(link.node)
    name = info.name if cell_len(info.name) <= LONGEST_SYMBOL else info.name.rpartition(".")[2]
    if not name or cell_len(name) > LONGEST_SYMBOL or info.returned > 1:
        return ""
    return f"{SYMBOL}{shown(name)}"


def _hooks(link: Link, parts: Sequence[Contribution], now: Now) -> list[HookEffect]:
    """Return the hooks that changed what a line brings: those of its end, and those behind the rule of its start."""
    effects = [one for one in now.hooks(link.node) if one.ran.output_nr == link.output_nr]
    for part in parts:
        if now.hooked(part.source):
            effects += hooks_after_rule(now.timeline, part)
    return effects


def _addend(link: Link, part: Value, now: Now) -> Numbers:
    """Return the numbers of a small contribution if there are others.

    A single contribution is already in the box as the sum.
    """
    state = now.states[link.node]
    shape = now.options.grid(part.shape) if state is not None and state.outputs[link.output_nr].expected > 1 else None
    return grid(part, shape) if shape else ()


def brings(now: Now, node: int, output_nr: int, uses: Iterable[tuple[int, int]]) -> bool:
    """Return whether this event brings an output the gradient of one of its uses."""
    event = now.moment.event
    if not isinstance(event, GradFlowed) or (event.node, event.output_nr) != (node, output_nr):
        return False
    return any((event.source, event.slot) == use for use in uses)


__all__ = [
    "Box",
    "Edge",
    "Options",
    "Scene",
    "State",
    "parts",
    "scene",
    "structure",
]

UNTITLED = "computation graph"
"""The title of a graph whose program is unknown."""

States = Callable[[Sequence[int]], Sequence[NodeState | None]]


@dataclass(frozen=True, slots=True)
class Box:
    """One box: its node or nodes, its states and its text.

    * `status`: the most important state, as a word.
    * `width`, `height`: its room at any moment, in characters and rows.
    * `op`: the operation, if it is one.
    * `enclosing_modules`: keys and titles of the expanded modules around it, the outermost first.
    * `longest`: in a series of moments, the length of its longest row.
    * `is_data`: it represents operations that prepare data.
    """

    key: str
    node: int
    role: Role
    states: tuple[State, ...]
    title: str
    status: str
    rows: tuple[Row, ...]
    tooltip: str
    width: int
    height: int
    op: str = ""
    enclosing_modules: tuple[tuple[str, str], ...] = ()
    longest: int = 0
    is_data: bool = field(default=False, repr=False)  # without it, the id of a picture stays: a hash of the scene


LABELLED_EDGES = 60
"""The most lines with labels: more labels would hide the graph."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The content of a picture of one moment. `flow`, `compact` and `remark` are those of the options.

    A long chain may be folded into `columns`, as the text of a newspaper.
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
    passes = timeline.pass_ends(timeline.iterations[shape.iteration]) if shape.options.marks else []
    after = any(end <= moment.n for end in passes)
    now = Now(timeline, moment, before, states, bad, shape.options, branch, after, shape.shown)
    boxes = tuple(_box(place, shape, now, tooltips=tooltips, bare=place.key in bare) for place in shape.places)
    return boxes, tuple(edge(link, now) for link in shape.links)


def _box(place: Outline, shape: Structure, now: Now, *, tooltips: bool, bare: bool) -> Box:
    if place.role == "chip":
        return _chip(place, now)
    if place.role == "saved":
        return _saved(place, now)
    if place.role == "failed":
        return _failed(place, shape, now)
    if place.group is not None:
        return _module(place, place.group, now)
    return _of_node(place, shape, now, tooltips=tooltips, bare=bare)


def _chip(place: Outline, now: Now) -> Box:
    states: tuple[State, ...] = () if now.states[place.node] is not None else ("pending",)
    if brings(now, place.node, 0, [(place.user, place.slot)]):
        states = ("receiving",)
    rows = rows_with_comparison(lambda place, now: chip_rows(place, now.states[place.node], now), place, now)
    return _boxed(place, states, "", rows, f"{place.title}: the same tensor as box #{place.node}")


def _saved(place: Outline, now: Now) -> Box:
    state, rows = now.states[place.node], saved_rows(place, now.timeline.info(place.node), now)
    if state is not None and state.saved == "freed":
        return _boxed(place, ("freed",), "freed", rows, "")
    return _boxed(place, () if state is not None else ("pending",), "", rows, "")


def _failed(place: Outline, shape: Structure, now: Now) -> Box:
    failed = failed_call(now.timeline, now.timeline.iterations[shape.iteration])
    if failed is None or failed.seq > now.moment.n:
        return _boxed(place, ("pending",), "", (), "")
    rows = tuple(Row(text, "bad") for text in message_rows(failed, now.options)) if place.height > 1 else ()
    states: tuple[State, ...] = ("current", "error") if failed.seq == now.moment.n else ("error",)
    return _boxed(place, states, state_word(states), rows, failed.quoted)


def _module(place: Outline, group: Group, now: Now) -> Box:
    states = group_states(group, now)
    rows = rows_with_comparison(lambda place, now: group_rows(place, group, now), place, now)
    hooks = (hook_words(effect, now) for effect in inner_hooks(group, now)) if now.options.marks else ()
    held = group.call.path if group.preparation is None else operation_list(group, now.timeline)
    box = _boxed(place, states, group_status(group, states, now), rows, "\n".join([held, *hooks]))
    return replace(box, is_data=True) if group.preparation is not None else box


def _of_node(place: Outline, shape: Structure, now: Now, *, tooltips: bool, bare: bool) -> Box:
    info, state = now.timeline.info(place.node), now.states[place.node]
    states = states_of(info, state, now)
    if bare:
        return _boxed(place, states, status(info, states, now), (), "")
    note = remark(now.timeline, info, now.timeline.iterations[shape.iteration])
    if note and "cut" in states:
        note = cut_text(info)
    rows = rows_with_comparison(lambda place, now: _rows(place, info, now, note), place, now)
    tip = tooltip(as_at(info, state), state) if tooltips else ""
    name = op_title(info) if info.created.kind == "op" else ""
    return _boxed(place, states, status(info, states, now), rows, tip, name)


def _rows(place: Outline, info: NodeInfo, now: Now, note: str) -> tuple[Row, ...]:
    state = now.states[place.node]
    brief = now.options.density == "brief"
    return brief_rows(place, info, state, now) if brief else node_rows(place, info, state, now, note)


def _boxed(place: Outline, states: tuple[State, ...], word: str, rows: tuple[Row, ...], tip: str, op: str = "") -> Box:
    around = _around(place)
    return Box(
        place.key, place.node, place.role, states, place.title, word, rows, tip, place.width, place.height, op, around
    )


def _around(place: Outline) -> tuple[tuple[str, str], ...]:
    return tuple(
        (module_key(call), module_title(call, FRAME_NAME).removeprefix("[+] ")) for call in place.enclosing_calls
    )


FRAME_NAME = 44
"""The most characters of a module's path in the title of its frame, which is wider than the boxes in it."""


def framed(scene: Scene, depth: int) -> Scene:
    """Return the scene with at most this many frames around a box, the outermost."""
    return replace(
        scene, boxes=tuple(replace(box, enclosing_modules=box.enclosing_modules[:depth]) for box in scene.boxes)
    )


def _first_bad(timeline: Timeline, moment: Moment) -> int:
    seq = timeline.error_index.first_bad()
    return timeline.at(seq).node if 0 < seq <= moment.n else 0


def tooltip(info: NodeInfo, state: NodeState | None) -> str:
    """Return the exact values of a node, one per line."""
    lines = [title(info)]
    for number, output in enumerate(state.outputs if state is not None else ()):
        which = f" {number}" if len(info.created.outputs) > 1 else ""
        lines.append(f"value{which}: {full(output.value)}")
        if output.incoming is not None:
            lines.append(f"incoming gradient{which}: {full(output.incoming)}")
        if output.grad is not None:
            lines.append(f".grad{which}: {full(output.grad)}")
    if info.frames:
        lines.append(place_text(info))
    return "\n".join(lines)


def place_text(info: NodeInfo) -> str:
    """Return where the program made a node: ``demo.py:4``."""
    frame = info.frames[0]
    return file_line(frame.path, frame.line)


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
    ends = moment.phase is not None and moment.n == moment.phase.end
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
