"""The lines between the boxes of an iteration's graph, and their labels: output, shape, and broadcasting."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

from gviz.events import StorageWritten
from gviz.explain.display_names import mode_of
from gviz.explain.outgoing_gradients import Shape, broadcast_shape
from gviz.trace.graph_state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import shape_text

LinkKind = Literal["forward", "gradient", "view", "saved"]
Output = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Link:
    """A line from box `source`, an output of `node`, to box `target`, which uses it as input `slot` (-1: not an input).

    A gradient link runs next to its forward link, and its arrow leads from target to source. `uses` are the
    ``(user, slot)`` that the line represents. A line at the box of a collapsed module may represent several uses; its
    `slot` only counts lines. A line to a failed call has no uses, and exists `since` the event of the error.
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
    since: int = 0
    ends: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The node and its users: the nodes whose states its look depends on, kept because each moment asks for them."""

    def __post_init__(self) -> None:
        """Collect the ends."""
        object.__setattr__(self, "ends", (self.node, *dict.fromkeys(user for user, _ in self.uses)))


@dataclass(frozen=True, slots=True)
class Boxes:
    """The box of each node.

    A use that is a key of `chips` starts at a chip of the leaf, not at its own box. All uses in one collapsed module
    have one chip: the chip of the use in `shared`. No line leads to a box that is `apart`: a collapsed optimizer, which
    uses every parameter, and data that the graph does not use.
    """

    of: Mapping[int, str]
    chips: Mapping[Output, int]
    shared: Mapping[Output, Output] = field(default_factory=dict)
    groups: Container[str] = frozenset()
    apart: Container[str] = frozenset()

    def source(self, node: int, user: int, slot: int) -> str:
        """Return the box at which the line to a use begins."""
        user, slot = self.shared.get((user, slot), (user, slot))
        return chip_key(node, user, slot) if (user, slot) in self.chips else self.of[node]


def box_key(node: int) -> str:
    """Return the key of a node's own box."""
    return f"n{node}"


def chip_key(node: int, user: int, slot: int) -> str:
    """Return the key of the box that represents one use of a leaf."""
    return f"n{node}@n{user}.{slot}"


def merged(all_links: Iterable[Link], boxes: Boxes) -> list[Link]:
    """Return one line for all uses of an output in a collapsed module, and none for uses inside the same module."""
    lines: dict[tuple[object, ...], Link] = {}
    counted: dict[tuple[str, str], dict[tuple[object, ...], int]] = {}
    for link in all_links:
        if link.source == link.target:
            continue
        key: tuple[object, ...] = (link.source, link.target, link.kind == "gradient", link.node, link.output_nr)
        if link.source in boxes.groups or link.target in boxes.groups:
            numbers = counted.setdefault((link.source, link.target), {})
            link = replace(link, slot=numbers.setdefault((link.node, link.output_nr), len(numbers)))
        else:
            key = (*key, link.kind, link.slot)
        known = lines.get(key)
        lines[key] = link if known is None else _joined(known, link)
    return _bundled(lines.values(), boxes)


MOST_PARALLEL = 8
"""The most lines between two boxes. More of them, from a collapsed module or to one, are drawn as one line."""


def _bundled(lines: Collection[Link], boxes: Boxes) -> list[Link]:
    """Return the lines with one in the place of many parallel ones, which says how many they are.

    It shows the gradient of the last one: ``torch.stack`` of the losses of 600 steps has 600 inputs in one box.
    """
    parallel: dict[tuple[str, str, bool], list[Link]] = {}
    for link in lines:
        parallel.setdefault((link.source, link.target, link.kind == "gradient"), []).append(link)
    bundled: list[Link] = []
    replaced: set[Link] = set()
    for (source, target, is_gradient), bundle in parallel.items():
        if len(bundle) > MOST_PARALLEL and (source in boxes.groups or target in boxes.groups):
            labels = {link.label for link in bundle}
            label = f"{labels.pop() if len(labels) == 1 else ''} ×{len(bundle)}".lstrip()
            tracked = any(link.tracked for link in bundle)
            bundled.append(replace(bundle[-1], slot=0, tracked=tracked, label="" if is_gradient else label))
            replaced.update(bundle)
    return [*(link for link in lines if link not in replaced), *bundled]


def _joined(one: Link, other: Link) -> Link:
    return replace(one, uses=(*one.uses, *other.uses), tracked=one.tracked or other.tracked)


def links(
    timeline: Timeline, infos: Mapping[int, NodeInfo], own: Sequence[NodeInfo], boxes: Boxes, *, backward: bool
) -> Iterator[Link]:
    """Yield the lines to the boxes of the nodes `own`, and with `backward` the gradients over these lines."""
    for info in own:
        target = boxes.of.get(info.node)
        if target is None or target in boxes.apart:
            continue
        bases = {output.view_of for output in info.created.outputs} - {0, info.node}
        written = _written_statistics(timeline, info)
        if target in boxes.groups:  # not all of its results are the view
            bases = set()
        for slot, (node, output_nr) in enumerate(info.created.inputs):
            if node in infos and node in boxes.of:
                if boxes.of[node] == target and target in boxes.groups:  # inside a collapsed call
                    continue
                source = boxes.source(node, info.node, slot)
                link = _link(timeline, infos, info, (node, output_nr), (source, target), slot, view=node in bases)
                if node in written:
                    link = replace(link, label=f"{WRITES} {link.label.partition('→')[0]}".rstrip())
                if link.tracked and not _required(timeline, node, info):
                    link = replace(link, tracked=False)
                yield link
                if link.tracked and backward:
                    yield replace(link, kind="gradient", label="")
        for base in sorted(bases - {node for node, _ in info.created.inputs} & infos.keys() & boxes.of.keys()):
            if boxes.of[base] in boxes.groups:
                continue
            uses = ((info.node, -1),)
            yield Link(boxes.of[base], target, "view", 0, -1, base, uses, tracked=False, label="view")


@dataclass(frozen=True, slots=True)
class Origins:
    """What an operation was computed from, through operations that are left out.

    `module` is the other module whose calls lie between; empty for none or several.
    """

    edges: tuple[Output, ...]
    module: str = ""


def contracted(infos: Mapping[int, NodeInfo], origins: Mapping[int, Origins], boxes: Boxes) -> Iterator[Link]:
    """Yield a line from each tensor that reaches a node through nodes that are left out.

    A collapsed module has no such line for a parameter inside: the line would say that what the module computes is
    used, where another call of the module was left out, for example one that has generated the data under no_grad.
    """
    for node, one in origins.items():
        target = boxes.of.get(node)
        for slot, (source, output_nr) in enumerate(one.edges):
            if boxes.of.get(source) in boxes.groups and infos[source].created.kind != "op":
                continue
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
                    label=f"{CONTRACTED} {one.module}".rstrip(),
                )


CONTRACTED = "…"
"""The beginning of the label of a line that leads through nodes that are left out; the name of their module follows."""


def _required(timeline: Timeline, node: int, user: NodeInfo) -> bool:
    """Return whether a node required a gradient when it was used: `requires_grad_()` may have come later."""
    if timeline.info(node).created.requires_grad:
        return True
    state = timeline.at(user.born).state(node)
    return state is not None and state.requires_grad


WRITES = "writes"
"""The beginning of the label of a line to a tensor that an operation only writes: its arrow points to the tensor."""


def is_write(label: str) -> bool:
    """Return whether the label of a line says that its end writes its start."""
    return label.split(" ", 1)[0] == WRITES


def _written_statistics(timeline: Timeline, info: NodeInfo) -> frozenset[int]:
    """Return the running statistics that a batch norm updates in training. It normalizes by those of the batch.

    The writes are the events after the one that made the node.
    """
    if mode_of(info) != "train" or "batch_norm" not in info.op.name:
        return frozenset()
    inputs = {node for node, _ in info.created.inputs}
    written = set()
    for seq in range(info.born + 1, len(timeline) + 1):
        event = timeline.event(seq)
        if not isinstance(event, StorageWritten):
            break
        written.add(event.node)
    return frozenset(written & inputs)


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


def operand_links(
    infos: Mapping[int, NodeInfo], boxes: Boxes, nodes: Sequence[int], target: str, since: int
) -> Iterator[Link]:
    """Yield the lines from the operands of a failed call to its box."""
    for slot, node in enumerate(nodes):
        value = infos[node].created.first_value
        label = shape_text(value.shape) if value is not None and value.shape else ""
        tracked = infos[node].created.requires_grad
        yield Link(boxes.of[node], target, "forward", 0, slot, node, (), tracked, label, since)


def gradient_only_links(
    timeline: Timeline, iteration: Iteration, infos: Mapping[int, NodeInfo], boxes: Boxes, known: Iterable[Link]
) -> list[Link]:
    """Return the lines of gradients that flow where no data flowed.

    For example, a write in place into a view sends its gradient to the base.
    """
    seen = {use for link in known if link.kind == "gradient" for use in link.uses}
    nodes = [node for node in infos if node in boxes.of]
    before_ends = [end - 1 for end in timeline.pass_ends(iteration)]  # a node shows the state of a running pass
    new_links: list[Link] = []
    for moment in (*before_ends, iteration.end):
        for state in filter(None, timeline.at(moment).states(nodes)):
            for output_nr, output in enumerate(state.outputs):
                for part in output.parts:
                    use = (part.source, part.slot)
                    if part.source in infos and part.source in boxes.of and use not in seen:
                        seen.add(use)
                        ends = boxes.of[state.node], boxes.of[part.source]
                        new_links.append(Link(*ends, "gradient", output_nr, part.slot, state.node, (use,)))
    return new_links


def line_label(timeline: Timeline, infos: Mapping[int, NodeInfo], node: int, output_nr: int, user: NodeInfo) -> str:
    """Return the label of a line from an output of `node` to its user.

    It is empty if the node has only one output, a scalar.
    """
    shape = _shape(timeline, infos, node, output_nr, user)
    words = [f"out {output_nr}"] if infos[node].returned > 1 or output_nr else []
    if shape:
        words.append(shape_text(shape) + _broadcast(timeline, infos, user, shape))
    return " ".join(words)


def _shape(
    timeline: Timeline, infos: Mapping[int, NodeInfo], node: int, output_nr: int, user: NodeInfo
) -> Shape | None:
    """Return the shape in which a node uses an output: a leaf may have got another shape since it was made."""
    value = infos[node].created.outputs[output_nr].value if node in infos else None
    value = timeline.assigned_data(node, output_nr, user.born) or value
    return value.shape if value is not None else None


def _broadcast(timeline: Timeline, infos: Mapping[int, NodeInfo], user: NodeInfo, shape: Shape) -> str:
    """Return ``→(8,3)`` where elementwise arithmetic widens an input, because backward sums there."""
    shapes = (_shape(timeline, infos, node, output_nr, user) for node, output_nr in user.created.inputs)
    common = broadcast_shape(user, shapes)
    return f"→{shape_text(common)}" if common is not None and prod(common) > prod(shape) else ""
