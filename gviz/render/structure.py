"""Which boxes and lines the graph of one iteration has. Independent of the moment: stepping never moves a box."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gviz.events import BackwardStarted
from gviz.explain.kinds import as_in
from gviz.explain.names import MAX_TITLE, constant_value, title
from gviz.numbers import FEW, short
from gviz.plain_text import clipped
from gviz.render.line_labels import line_label
from gviz.render.remarks import remark
from gviz.render.selection import shown_nodes
from gviz.trace.state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline

Role = Literal["leaf", "parameter", "constant", "op", "root", "chip"]
LinkKind = Literal["forward", "gradient", "view"]
Output = tuple[int, int]

STATUS_ROOM = 14
"""Characters beside the title, for the mark of the current node and the state as a word."""

MAX_OUTPUTS = 4
"""An op with more outputs shows so many and says how many there are."""


@dataclass(frozen=True, slots=True)
class Options:
    """What of an iteration is drawn. A leaf used more than once is split into one chip per use in graphs above
    `split_above` nodes: one box with many lines is what makes large pictures unreadable, and slow. What an optimizer
    computes to update the parameters is drawn only with `optimizer`."""

    split_above: int = 12
    optimizer: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A box to be placed: its title, and the room it needs at any moment, in characters and rows (title included).

    A chip stands for `node` where `user` uses it as input `slot`; for all other boxes both are 0.
    """

    key: str
    node: int
    role: Role
    title: str
    width: int
    height: int
    user: int = 0
    slot: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """A line from box `source`, output `output_nr`, to box `target`, which uses it as input `slot` (-1: not an input).

    A gradient link runs beside its forward link, and is drawn from target to source.
    """

    source: str
    target: str
    kind: LinkKind
    output_nr: int
    slot: int
    tracked: bool = True
    label: str = ""


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
    roots, backward = _roots(timeline, iteration, own)
    chips = _chips(infos, own, options)
    places = [_place(timeline, info, iteration, roots, backward=backward) for info in infos.values()]
    places += [_chip(infos[node], user, slot) for (user, slot), node in chips.items()]
    links = list(_links(timeline, infos, own, chips, backward=backward))
    # Only writes into views send gradients where no data went; in a part of a large graph no others are looked for,
    # because a parameter may have a hundred thousand contributions to look through.
    if backward and (part is None or any(info.op.grad_fn == "CopySlices" for info in own)):
        links += _other_ways(timeline, iteration, infos, links)
    return Structure(iteration.index, tuple(places), tuple(links), _levels(infos, own))


def box_key(node: int) -> str:
    """The key of a node's own box."""
    return f"n{node}"


def _roots(timeline: Timeline, iteration: Iteration, own: Sequence[NodeInfo]) -> tuple[set[int], bool]:
    """The nodes that passes start from, or without a pass what nobody uses; and whether there is a pass."""
    passes = [p for p in timeline.phases if p.kind == "backward" and iteration.start <= p.start <= iteration.end]
    starts = [timeline.event(phase.start) for phase in passes]
    if starts:
        return {node for start in starts if isinstance(start, BackwardStarted) for node, _ in start.roots}, True
    used = {node for info in own for node, _ in info.created.inputs}
    return {info.node for info in own if info.created.kind == "op" and info.node not in used}, False


def _chips(infos: Mapping[int, NodeInfo], own: Sequence[NodeInfo], options: Options) -> dict[Output, int]:
    """For each ``(user, slot)`` that gets a chip, the leaf it stands for. The first use keeps the leaf's own box."""
    if len(infos) <= options.split_above:
        return {}
    seen: set[int] = set()
    chips: dict[Output, int] = {}
    for info in own:
        for slot, (node, _) in enumerate(info.created.inputs):
            if node in seen and node in infos and infos[node].created.kind != "op":
                chips[info.node, slot] = node
            seen.add(node)
    return chips


def _links(
    timeline: Timeline,
    infos: Mapping[int, NodeInfo],
    own: Sequence[NodeInfo],
    chips: Mapping[Output, int],
    *,
    backward: bool,
) -> Iterator[Link]:
    for info in own:
        bases = {output.view_of for output in info.created.outputs} - {0, info.node}
        for slot, (node, output_nr) in enumerate(info.created.inputs):
            if node in infos:
                source = _chip_key(node, info.node, slot) if (info.node, slot) in chips else box_key(node)
                link = _link(infos, info, (node, output_nr), source, slot, view=node in bases)
                if link.tracked and not _required(timeline, node, info):
                    link = replace(link, tracked=False)
                yield link
                if link.tracked and backward:
                    yield replace(link, kind="gradient", label="")
        for base in sorted(bases - {node for node, _ in info.created.inputs} & infos.keys()):
            yield Link(box_key(base), box_key(info.node), "view", 0, -1, tracked=False, label="view")


def _required(timeline: Timeline, node: int, user: NodeInfo) -> bool:
    """Whether a node required a gradient when it was used: `requires_grad_()` may have come later."""
    if timeline.info(node).created.requires_grad:
        return True
    state = timeline.at(user.born).state(node)
    return state is not None and state.requires_grad


def _link(infos: Mapping[int, NodeInfo], user: NodeInfo, edge: Output, source: str, slot: int, *, view: bool) -> Link:
    node, output_nr = edge
    tracked = infos[node].created.requires_grad and user.created.requires_grad and not user.created.untracked
    label = "view" if view else line_label(infos, node, output_nr, user)
    return Link(source, box_key(user.node), "view" if view else "forward", output_nr, slot, tracked, label)


def _other_ways(
    timeline: Timeline, iteration: Iteration, infos: Mapping[int, NodeInfo], links: Iterable[Link]
) -> Iterator[Link]:
    """The ways of gradients that no data went: a write in place into a view sends its gradient to the base."""
    known = {(link.target, link.slot) for link in links if link.kind == "gradient"}
    nodes = list(infos)
    before_ends = [end - 1 for end in timeline.pass_ends(iteration)]  # while it runs it is the pass a node is seen in
    for moment in (*before_ends, iteration.end):
        for state in filter(None, timeline.at(moment).states(nodes)):
            for output_nr, output in enumerate(state.outputs):
                for part in output.parts:
                    way = (box_key(part.source), part.slot)
                    if part.source in infos and way not in known:
                        known.add(way)
                        yield Link(box_key(state.node), way[0], "gradient", output_nr, part.slot)


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
    return Place(_chip_key(info.node, user, slot), info.node, "chip", text, width, height, user, slot)


def _chip_key(node: int, user: int, slot: int) -> str:
    return f"n{node}@n{user}.{slot}"


def _levels(infos: Mapping[int, NodeInfo], own: Iterable[NodeInfo]) -> int:
    depth: dict[int, int] = {}
    for info in own:
        depth[info.node] = 1 + max((depth.get(node, 1) for node, _ in info.created.inputs if node in infos), default=0)
    return max(depth.values(), default=0)
