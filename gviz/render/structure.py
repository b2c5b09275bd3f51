"""Which boxes and lines the graph of one iteration has. Independent of the moment: stepping never moves a box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gviz.events import BackwardStarted
from gviz.explain.kinds import as_in
from gviz.explain.names import MAX_TITLE, constant_value, title
from gviz.numbers import FEW, short
from gviz.plain_text import clipped
from gviz.render.calls import graph_of
from gviz.render.fold import ALL, Call, Filter, Folded, Group, fold
from gviz.render.links import Boxes, Link, Output, box_key, chip_key, links, merged, other_ways
from gviz.render.remarks import remark
from gviz.render.selection import shown_nodes
from gviz.trace.state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline

Role = Literal["leaf", "parameter", "constant", "op", "root", "chip", "module"]

STATUS_ROOM = 14
"""Characters beside the title, for the mark of the current node and the state as a word."""

MAX_OUTPUTS = 4
"""An op with more outputs shows so many and says how many there are."""


@dataclass(frozen=True, slots=True)
class Options:
    """What of an iteration is drawn. A leaf used more than once is split into one chip per use in graphs above
    `split_above` nodes: one box with many lines is what makes large pictures unreadable, and slow. What an optimizer
    computes to update the parameters is drawn only with `optimizer`. `wanted` closes modules or asks for a part."""

    split_above: int = 12
    optimizer: bool = False
    wanted: Filter = ALL


@dataclass(frozen=True, slots=True)
class Place:
    """A box to be placed: its title, and the room it needs at any moment, in characters and rows (title included).

    A chip stands for `node` where `user` uses it as input `slot`; for all other boxes both are 0. The box of a closed
    module stands for its `group`, and `node` is the last that the module made.
    """

    key: str
    node: int
    role: Role
    title: str
    width: int
    height: int
    user: int = 0
    slot: int = 0
    group: Group | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """All nodes that the box stands for."""
        return (self.node,) if self.group is None else (*self.group.inner, *self.group.parameters)


@dataclass(frozen=True, slots=True)
class Structure:
    """The boxes in order of creation and the lines of one iteration. `levels` is the length of the longest path."""

    iteration: int
    places: tuple[Place, ...]
    links: tuple[Link, ...]
    levels: int


def structure(
    timeline: Timeline, iteration: Iteration, options: Options | None = None, part: Sequence[int] | None = None
) -> Structure:
    """The graph of an iteration, or of a part of it: its own nodes, and the older ones they use, without inputs."""
    options = options or Options()
    infos, own = shown_nodes(timeline, iteration, part, optimizer=options.optimizer)
    infos = as_in(timeline, iteration, infos)
    own = [infos[info.node] for info in own]
    folded = fold(graph_of(timeline, infos.values()), options.wanted)
    roots, backward = _roots(timeline, iteration, own)
    boxes = _boxes(folded, infos, own, options)
    places = [_place(timeline, infos[node], iteration, roots, backward=backward) for node in folded.shown]
    places = _with_modules(places, [_module(infos, group, backward=backward) for group in folded.groups])
    places += [_chip(infos[node], user, slot) for (user, slot), node in boxes.chips.items()]
    lines = list(links(timeline, infos, own, boxes, backward=backward))
    # Only writes into views send gradients where no data went; in a part of a large graph no others are looked for,
    # because a parameter may have a hundred thousand contributions to look through.
    if backward and (part is None or any(info.op.grad_fn == "CopySlices" for info in own)):
        lines += other_ways(timeline, iteration, infos, boxes, lines)
    lines = merged(lines, boxes) if folded.groups else lines
    return Structure(iteration.index, tuple(places), tuple(lines), _levels(infos, own, boxes))


def module_key(call: Call) -> str:
    """The key of the box of a closed module call."""
    return f"m{call.scope}"


def _boxes(folded: Folded, infos: Mapping[int, NodeInfo], own: Sequence[NodeInfo], options: Options) -> Boxes:
    """Who has which box. A parameter inside of several closed calls has none: all its lines are inside, too."""
    of = {node: box_key(node) for node in folded.shown}
    count = Counter(node for group in folded.groups for node in group.parameters)
    for group in folded.groups:
        alone = (node for node in group.parameters if count[node] == 1)
        of |= dict.fromkeys((*group.inner, *alone), module_key(group.call))
    shown = set(folded.shown)
    chips = _chips(infos, [info for info in own if info.node in shown], options, len(folded.shown))
    return Boxes(of, chips, frozenset(module_key(group.call) for group in folded.groups))


def _with_modules(places: list[Place], modules: list[Place]) -> list[Place]:
    """The boxes in the order of what was made last in each."""
    return sorted((*places, *modules), key=lambda place: place.node) if modules else places


def _roots(timeline: Timeline, iteration: Iteration, own: Sequence[NodeInfo]) -> tuple[set[int], bool]:
    """The nodes that passes start from, or without a pass what nobody uses; and whether there is a pass."""
    passes = [p for p in timeline.phases if p.kind == "backward" and iteration.start <= p.start <= iteration.end]
    starts = [timeline.event(phase.start) for phase in passes]
    if starts:
        return {node for start in starts if isinstance(start, BackwardStarted) for node, _ in start.roots}, True
    used = {node for info in own for node, _ in info.created.inputs}
    return {info.node for info in own if info.created.kind == "op" and info.node not in used}, False


def _chips(infos: Mapping[int, NodeInfo], own: Sequence[NodeInfo], options: Options, boxes: int) -> dict[Output, int]:
    """For each ``(user, slot)`` that gets a chip, the leaf it stands for. The first use keeps the leaf's own box."""
    if boxes <= options.split_above:
        return {}
    seen: set[int] = set()
    chips: dict[Output, int] = {}
    for info in own:
        for slot, (node, _) in enumerate(info.created.inputs):
            if node in seen and node in infos and infos[node].created.kind != "op":
                chips[info.node, slot] = node
            seen.add(node)
    return chips


def _place(timeline: Timeline, info: NodeInfo, iteration: Iteration, roots: set[int], *, backward: bool) -> Place:
    role = _role(info, roots)
    outputs = min(len(info.created.outputs), MAX_OUTPUTS)
    text = title(info)
    if role == "constant":
        number = constant_value(info)
        if number:
            return Place(box_key(info.node), info.node, role, number, len(number), 1)
        width = max(len(text), min(_value_width(info), 30) if len(info.created.outputs) else 0)
        return Place(box_key(info.node), info.node, role, text, width, 2)
    leaf = role in ("leaf", "parameter")
    grads = outputs if leaf or (info.created.requires_grad and not info.created.untracked) else 0
    height = 1 + outputs + grads + (leaf and backward) + bool(remark(timeline, info, iteration))
    return Place(box_key(info.node), info.node, role, text, max(len(text) + STATUS_ROOM, _value_width(info)), height)


def _value_width(info: NodeInfo) -> int:
    """Room for ``value`` and the widest value, and for ``incoming -6 (1 of 2)`` of a leaf."""
    values = [output.value for output in info.created.outputs]
    large = any(value is not None and value.size > FEW for value in values)
    known = max((len(short(value)) for value in values), default=0)
    least = {"op": 20, "constant": 0}.get(info.created.kind, 26)
    return max(least, min(len("value v1 ") + known, 30), 30 if large else 0)


def _role(info: NodeInfo, roots: set[int]) -> Role:
    if info.created.kind == "op":
        return "root" if info.node in roots else "op"
    return info.created.kind if info.created.requires_grad else "constant"


def _chip(info: NodeInfo, user: int, slot: int) -> Place:
    text = f"{clipped(info.title, MAX_TITLE - 8)} #{info.node}"
    height = 3 if info.created.requires_grad else 1
    width = max(len(text), 16 if height > 1 else 1)
    return Place(chip_key(info.node, user, slot), info.node, "chip", text, width, height, user, slot)


def _module(infos: Mapping[int, NodeInfo], group: Group, *, backward: bool) -> Place:
    """The box of a closed module: its nodes, what it made last and, if gradients flow, those of its parameters."""
    text = module_title(group.call)
    last = infos[group.inner[-1]]
    grads = backward and bool(group.parameters)
    width = max(len(text) + STATUS_ROOM, _value_width(last), 30)
    return Place(module_key(group.call), last.node, "module", text, width, 3 + grads, group=group)


def module_title(call: Call) -> str:
    """A closed module above its box: ``[+] blocks.0 Block``, without what all paths begin with."""
    path = call.path.partition(".")[2] or call.path
    kind = f" {call.kind}" if call.kind and call.kind != path else ""
    return f"[+] {clipped(path, MAX_TITLE)}{clipped(kind, MAX_TITLE)}"


def _levels(infos: Mapping[int, NodeInfo], own: Iterable[NodeInfo], boxes: Boxes) -> int:
    """The boxes on the longest path."""
    depth: dict[str, int] = {}
    for info in own:
        box = boxes.of.get(info.node)
        if box is not None:
            sources = {boxes.of[node] for node, _ in info.created.inputs if node in infos and node in boxes.of} - {box}
            depth[box] = max(depth.get(box, 0), 1 + max((depth.get(source, 1) for source in sources), default=0))
    return max(depth.values(), default=0)
