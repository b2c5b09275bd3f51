"""The nodes of an iteration that a picture shows: the program's graph without the arithmetic inside its optimizer.

A picture of a large graph shows only the nodes that autograd tracks. A view of a very large graph shows one part, so
that the layout takes little time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gviz.events import BackwardStarted, Edge, GradAccumulated, GradSet
from gviz.render.boxes.edges import Origins
from gviz.render.boxes.graph_options import Content, Options
from gviz.render.boxes.node_states import writes_in_place
from gviz.trace.graph_state import Iteration, NodeInfo
from gviz.trace.iteration_and_phase_ends import gradient_readings
from gviz.trace.timeline import Timeline

PART = 2000
"""Nodes of one part of a graph that is shown in parts."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The nodes of one iteration, divided into parts of `PART` nodes in order of creation."""

    nodes: tuple[int, ...]

    def __len__(self) -> int:
        return max(-(-len(self.nodes) // PART), 1)

    def holding(self, node: int) -> int:
        """Return the number of the part that contains a node."""
        return min(max(bisect_right(self.nodes, node) - 1, 0) // PART, len(self) - 1)

    def part(self, index: int) -> tuple[int, ...]:
        """Return the nodes of one part."""
        return self.nodes[index * PART : (index + 1) * PART]


def shown_nodes(
    timeline: Timeline,
    iteration: Iteration,
    part: Sequence[int] | None = None,
    *,
    content: Content,
    also: int = 0,
    passes: bool = True,
    readings: bool = True,
) -> tuple[dict[int, NodeInfo], list[NodeInfo]]:
    """Return the nodes to show, in order of creation, and those of them that were made in `part` or in the iteration.

    The other nodes are older ones that these use. `also` is a node that is never left out.
    """
    infos = {node: timeline.info(node) for node in (timeline.nodes.of(iteration) if part is None else part)}
    own = [info for info in infos.values() if part is not None or info.iteration == iteration.index]
    left_out = {
        *_left_out(timeline, iteration, own, content),
        *(() if passes else _of_passes(timeline, iteration, own)),
        *(() if readings else gradient_readings(timeline, iteration)),
    } - {also}
    if part is None and content != "all":
        infos |= {node: timeline.info(node) for node in _data_inputs(timeline, infos, iteration)}
        infos = {node: infos[node] for node in sorted(infos)}
    if part is None and not left_out:
        return infos, own
    own = [info for info in own if info.node not in left_out]
    kept = {info.node for info in own}.union(node for info in own for node, _ in info.created.inputs)
    kept |= {output.view_of for info in own for output in info.created.outputs}
    kept.discard(0)
    nodes = {node: infos.get(node) or timeline.info(node) for node in sorted(kept)}
    if part is None and content == "followed":
        ends = {source for one in inputs_through_untracked(timeline, nodes, own).values() for source, _ in one.edges}
        nodes = {node: infos.get(node) or timeline.info(node) for node in sorted(kept | ends)}
    return nodes, own


def reached(infos: Mapping[int, NodeInfo], iteration: Iteration) -> list[NodeInfo]:
    """Return older operations that a pass of an iteration goes through, such as the generator of a GAN."""
    older = (info for info in infos.values() if info.iteration != iteration.index and info.created.kind == "op")
    return [
        info for info in older if info.created.requires_grad and any(node in infos for node, _ in info.created.inputs)
    ]


def _data_inputs(timeline: Timeline, infos: Mapping[int, NodeInfo], iteration: Iteration) -> Iterator[int]:
    """Yield the data that these operations were made from."""
    for info in reached(infos, iteration):
        for node, _ in info.created.inputs:
            if node and node not in infos and timeline.info(node).created.kind != "op":
                yield node


def inputs_through_untracked(
    timeline: Timeline, infos: Mapping[int, NodeInfo], own: Sequence[NodeInfo]
) -> dict[int, Origins]:
    """Return the origins of each untracked operation whose inputs are left out.

    For example, in ``net((x - mean).t())`` the origin of ``t`` is `x`. A Python number does not count. Next to other
    origins, what another module holds or makes for itself does not count either: parameters that it uses, the first
    state of a recurrent layer. ``teacher(x)`` under no_grad leads from `x` to its result, through ``teacher``.
    """
    own_nodes = {info.node for info in own}
    origins: dict[int, Origins] = {}
    for node, info in infos.items():
        if node in own_nodes or info.created.kind != "op" or info.created.requires_grad:
            continue
        waiting, seen = [(edge, info) for edge in info.created.inputs], {node}
        given, of_modules, modules = dict[Edge, None](), dict[Edge, None](), set[str]()
        while waiting:
            edge, user = waiting.pop(0)
            source = timeline.info(edge[0]) if edge[0] else None
            if source is None or edge[0] in seen:
                continue
            seen.add(edge[0])
            if source.created.kind == "op" and edge[0] not in infos:
                modules.add(_module(source))
                waiting += [(one, source) for one in source.created.inputs]
            elif dict(source.created.attrs).get("number") is not True:
                is_of_another = _module(user) not in ("", _module(info)) and _is_of_module(source, user)
                (of_modules if is_of_another else given)[edge] = None
        if given or of_modules:
            modules -= {"", _module(info)}
            origins[node] = Origins(tuple(given or of_modules), modules.pop() if len(modules) == 1 else "")
    return origins


def _is_of_module(leaf: NodeInfo, user: NodeInfo) -> bool:
    """Return whether a leaf is a parameter or buffer of the module whose call uses it, or a constant of that call."""
    if leaf.created.kind in ("op", "parameter"):
        return leaf.created.kind == "parameter"
    holder = leaf.name.rpartition(".")[0]  # a path in the model, with or without the model or its variable
    paths = {holder, holder.partition(".")[2]} - {""}
    return _module(leaf) == _module(user) or not paths.isdisjoint((user.scope, user.scope.partition(".")[2]))


def _module(info: NodeInfo) -> str:
    """Return the variable of the outermost module in whose call a node was made; empty if there is none."""
    return info.scope.partition(".")[0] if info.created.scope else ""


def _left_out(timeline: Timeline, iteration: Iteration, own: Sequence[NodeInfo], content: Content) -> Collection[int]:
    if content == "all":
        return ()
    if content == "followed" and any(info.created.requires_grad for info in own):
        return {info.node for info in own} - _followed(own)
    stepping = {info.node for info in own if timeline.contexts.step_of(info)}
    return stepping | updates(timeline, iteration, own) | _sources_of_leaves(own)


def _of_passes(timeline: Timeline, iteration: Iteration, own: Sequence[NodeInfo]) -> set[int]:
    """Return what backward passes computed for themselves, in hooks, custom functions and recomputations.

    A hook of a module may run between two backward rules; a node then has no rule, but it was made during the pass. A
    graph of gradients (``create_graph=True``) that the program uses afterwards does not count.
    """
    passes = timeline.phases_in(iteration, "backward")
    starts = [phase.start for phase in passes]
    used: set[int] = set()
    nodes: set[int] = set()
    for info in reversed(own):
        at = bisect_left(starts, info.born) - 1
        is_of_pass = bool(info.created.during[0]) or (at >= 0 and info.born < passes[at].end)
        if is_of_pass and info.node not in used:
            nodes.add(info.node)
        else:
            used.update(node for node, _ in info.created.inputs)
            used.update(output.view_of for output in info.created.outputs)
    return nodes


def _sources_of_leaves(own: Sequence[NodeInfo]) -> set[int]:
    """Return the nodes that became leaves, ``nn.Parameter(torch.zeros(2) + 0.5)``, and the nodes that only they use.

    They are untracked values without other users, in memory that a later leaf has.
    """
    leaves: dict[int, int] = {}  # memory -> the last leaf in it
    users: dict[int, set[int]] = {}
    for info in own:
        if info.created.kind != "op" and info.created.requires_grad:
            leaves.update((output.storage, info.node) for output in info.created.outputs)
        for node in {*(node for node, _ in info.created.inputs), *(o.view_of for o in info.created.outputs)}:
            users.setdefault(node, set()).add(info.node)
    sources: set[int] = set()
    for info in reversed(own):
        used = users.get(info.node, set())
        is_origin = not used and any(leaves.get(output.storage, 0) > info.node for output in info.created.outputs)
        if not info.created.requires_grad and (is_origin or (used and used <= sources)):
            sources.add(info.node)
    return sources


def _followed(own: Sequence[NodeInfo]) -> set[int]:
    """Return the nodes that require a gradient, and the nodes between two of those: there the gradient is cut off."""
    followed = {info.node for info in own if info.created.requires_grad}
    descendants, ancestors = set(followed), set(followed)
    for info in own:
        if any(node in descendants for node, _ in info.created.inputs):
            descendants.add(info.node)
    for info in reversed(own):
        if info.node in ancestors:
            ancestors.update(node for node, _ in info.created.inputs)
    return followed | (descendants & ancestors)


def roots_of(timeline: Timeline, iteration: Iteration) -> set[int]:
    """Return the nodes from which the passes of an iteration start."""
    starts = [timeline.event(phase.start) for phase in timeline.phases_in(iteration, "backward")]
    return {node for start in starts if isinstance(start, BackwardStarted) for node, _ in start.roots}


def has_gradients(timeline: Timeline, iteration: Iteration, options: Options) -> bool:
    """Return whether the boxes of an iteration have rows for gradients: in a picture, if a pass was recorded in it.

    In the terminal they always have room: the pass of a running program may come. A figure of a moment before all
    passes has none.
    """
    return not options.marks or (bool(timeline.phases_in(iteration, "backward")) and not options.before_pass)


def has_leaf_gradients(timeline: Timeline, iteration: Iteration, options: Options) -> bool:
    """Return whether the boxes of leaves have a row for ``.grad``, which may be of an earlier iteration."""
    end = iteration.start if options.before_pass else iteration.end
    return has_gradients(timeline, iteration, options) or timeline.once(_has_grads, end)


def _has_grads(timeline: Timeline, end: int) -> bool:
    return any(True for _ in timeline.select((GradAccumulated, GradSet), 1, end + 1))


def updates(timeline: Timeline, iteration: Iteration, own: Sequence[NodeInfo]) -> frozenset[int]:
    """Return the nodes of update steps written by hand, ``p -= lr * p.grad``.

    They are writes into leaves after a pass, and nodes that only these use.
    """
    phases = timeline.phases_in(iteration, "after backward", "optimizer")
    spans = [(phase.start, phase.end) for phase in phases]
    after = {info.node: info for info in own if any(start <= info.born <= end for start, end in spans)}
    users: dict[int, set[int]] = {}
    for info in own:
        for node, _ in info.created.inputs:
            users.setdefault(node, set()).add(info.node)
    nodes: set[int] = set()
    for node, info in reversed(after.items()):
        used = users.get(node, set())
        if _steps(timeline, info) or (used and used <= nodes and not info.created.requires_grad):
            nodes.add(node)
    return frozenset(nodes)


def _steps(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether a node writes a new value into a leaf, and autograd does not record it."""
    inputs = info.created.inputs
    if info.created.requires_grad or not inputs or not writes_in_place(timeline, info.created):
        return False
    target = timeline.info(inputs[0][0]).created
    return target.kind != "op" and target.requires_grad


def shown_ends(timeline: Timeline, low: int, high: int) -> list[int]:
    """Return the moments ``low..high`` at which a node is finished, without the arithmetic inside optimizers."""
    start = max(low, 1)
    nodes = timeline.columns(start, high + 1).node.tolist()
    ends = timeline.contexts.node_ends
    ends = ends[bisect_left(ends, start) : bisect_right(ends, high)]
    of_nodes = ((n, nodes[n - start]) for n in ends)
    return [n for n, node in of_nodes if not node or not timeline.contexts.step_of(timeline.info(node))]
