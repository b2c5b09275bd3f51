"""The lines between the boxes of an iteration's graph, and their labels: output, shape, and where it is broadcast."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

from gviz.explain.outgoing_gradients import Shape, broadcast_shape
from gviz.trace.graph_state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text

LinkKind = Literal["forward", "gradient", "view", "saved"]
Output = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Link:
    """A line from box `source`, an output of `node`, to box `target`, which uses it as input `slot` (-1: not an input).

    A gradient link runs beside its forward link, and is drawn from target to source. `uses` are the ``(user, slot)``
    that the line stands for: one, but for a line at the box of a closed module, where `slot` only counts lines.
    """

    source: str
    target: str
    kind: LinkKind
    output_nr: int
    slot: int
    node: int
    uses: tuple[Output, ...]
    tracked: bool = True
    label: str = ""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Which box each node has. A use that is a key of `chips` comes from a chip of the leaf, not from its own box; the
    uses in one closed module have one chip, that of the use in `shared`. No line leads to a box that stands `apart`: a
    closed optimizer uses every parameter."""

    of: Mapping[int, str]
    chips: Mapping[Output, int]
    shared: Mapping[Output, Output] = field(default_factory=dict)
    groups: Container[str] = frozenset()
    apart: Container[str] = frozenset()

    def source(self, node: int, user: int, slot: int) -> str:
        """The box that a line to a use begins at."""
        user, slot = self.shared.get((user, slot), (user, slot))
        return chip_key(node, user, slot) if (user, slot) in self.chips else self.of[node]


def box_key(node: int) -> str:
    """The key of a node's own box."""
    return f"n{node}"


def chip_key(node: int, user: int, slot: int) -> str:
    """The key of the box that stands for one use of a leaf."""
    return f"n{node}@n{user}.{slot}"


def merged(found: Iterable[Link], boxes: Boxes) -> list[Link]:
    """One line for all uses of an output within a closed module; none for what stays inside of it."""
    lines: dict[tuple[object, ...], Link] = {}
    counted: dict[tuple[str, str], dict[tuple[object, ...], int]] = {}
    for link in found:
        if link.source == link.target:
            continue
        key: tuple[object, ...] = (link.source, link.target, link.kind == "gradient", link.node, link.output_nr)
        if link.source in boxes.groups or link.target in boxes.groups:
            ways = counted.setdefault((link.source, link.target), {})
            link = replace(link, slot=ways.setdefault((link.node, link.output_nr), len(ways)))
        else:
            key = (*key, link.kind, link.slot)
        known = lines.get(key)
        lines[key] = link if known is None else _joined(known, link)
    return list(lines.values())


def _joined(one: Link, other: Link) -> Link:
    return replace(one, uses=(*one.uses, *other.uses), tracked=one.tracked or other.tracked)


def links(
    timeline: Timeline, infos: Mapping[int, NodeInfo], own: Sequence[NodeInfo], boxes: Boxes, *, backward: bool
) -> Iterator[Link]:
    """The lines to the boxes of the nodes `own`; with `backward` a gradient beside each that carries one."""
    for info in own:
        target = boxes.of.get(info.node)
        if target is None or target in boxes.apart:
            continue
        bases = {output.view_of for output in info.created.outputs} - {0, info.node}
        for slot, (node, output_nr) in enumerate(info.created.inputs):
            if node in infos and node in boxes.of:
                if boxes.of[node] == target and target in boxes.groups:  # within a collapsed call
                    continue
                source = boxes.source(node, info.node, slot)
                link = _link(timeline, infos, info, (node, output_nr), (source, target), slot, view=node in bases)
                if link.tracked and not _required(timeline, node, info):
                    link = replace(link, tracked=False)
                yield link
                if link.tracked and backward:
                    yield replace(link, kind="gradient", label="")
        for base in sorted(bases - {node for node, _ in info.created.inputs} & infos.keys() & boxes.of.keys()):
            uses = ((info.node, -1),)
            yield Link(boxes.of[base], target, "view", 0, -1, base, uses, tracked=False, label="view")


def contracted(ways: Mapping[int, Sequence[Output]], boxes: Boxes) -> Iterator[Link]:
    """A line from each tensor that a node was made of through nodes that are left out."""
    for node, sources in ways.items():
        target = boxes.of.get(node)
        for slot, (source, output_nr) in enumerate(sources):
            if target is not None and target not in boxes.apart and source in boxes.of:
                use = (node, slot)
                yield Link(
                    boxes.of[source],
                    target,
                    "forward",
                    output_nr,
                    slot,
                    source,
                    (use,),
                    tracked=False,
                    label=CONTRACTED,
                )


CONTRACTED = "…"
"""What stands over a line that leads through nodes that are left out."""


def _required(timeline: Timeline, node: int, user: NodeInfo) -> bool:
    """Whether a node required a gradient when it was used: `requires_grad_()` may have come later."""
    if timeline.info(node).created.requires_grad:
        return True
    state = timeline.at(user.born).state(node)
    return state is not None and state.requires_grad


def _link(
    timeline: Timeline,
    infos: Mapping[int, NodeInfo],
    user: NodeInfo,
    edge: Output,
    ends: tuple[str, str],
    slot: int,
    *,
    view: bool,
) -> Link:
    node, output_nr = edge
    tracked = infos[node].created.requires_grad and user.created.requires_grad and not user.created.untracked
    label = "view" if view else line_label(timeline, infos, node, output_nr, user)
    return Link(*ends, "view" if view else "forward", output_nr, slot, node, ((user.node, slot),), tracked, label)


def other_ways(
    timeline: Timeline, iteration: Iteration, infos: Mapping[int, NodeInfo], boxes: Boxes, known: Iterable[Link]
) -> list[Link]:
    """The ways of gradients that no data went: a write in place into a view sends its gradient to the base."""
    seen = {use for link in known if link.kind == "gradient" for use in link.uses}
    nodes = [node for node in infos if node in boxes.of]
    before_ends = [end - 1 for end in timeline.pass_ends(iteration)]  # while it runs it is the pass a node is seen in
    found: list[Link] = []
    for moment in (*before_ends, iteration.end):
        for state in filter(None, timeline.at(moment).states(nodes)):
            for output_nr, output in enumerate(state.outputs):
                for part in output.parts:
                    use = (part.source, part.slot)
                    if part.source in infos and part.source in boxes.of and use not in seen:
                        seen.add(use)
                        ends = boxes.of[state.node], boxes.of[part.source]
                        found.append(Link(*ends, "gradient", output_nr, part.slot, state.node, (use,)))
    return found


def line_label(timeline: Timeline, infos: Mapping[int, NodeInfo], node: int, output_nr: int, user: NodeInfo) -> str:
    """The label of a line from an output of `node` to its user; empty for the only output, a scalar."""
    outputs = infos[node].created.outputs
    shape = _shape(timeline, infos, node, output_nr, user)
    words = [f"out {output_nr}"] if len(outputs) > 1 else []
    if shape:
        words.append(shape_text(shape) + _broadcast(timeline, infos, user, shape))
    return " ".join(words)


def _shape(
    timeline: Timeline, infos: Mapping[int, NodeInfo], node: int, output_nr: int, user: NodeInfo
) -> Shape | None:
    """The shape in which a node uses an output: a leaf may have got another since it was made."""
    value = infos[node].created.outputs[output_nr].value if node in infos else None
    value = timeline.given(node, output_nr, user.born) or value
    return value.shape if value is not None else None


def _broadcast(timeline: Timeline, infos: Mapping[int, NodeInfo], user: NodeInfo, shape: Shape) -> str:
    """``→(8,3)`` where elementwise arithmetic widens an input, because backward sums there."""
    shapes = (_shape(timeline, infos, node, output_nr, user) for node, output_nr in user.created.inputs)
    common = broadcast_shape(user, shapes)
    return f"→{shape_text(common)}" if common is not None and prod(common) > prod(shape) else ""
