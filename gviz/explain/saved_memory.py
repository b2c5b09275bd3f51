"""Memory that a graph saves for backward: which tensors, from when to when, and for which module and line.

A node saves tensors that its backward rule needs. They stay in memory until the rule has run, or the node is freed.
Example, with activations of 4 KiB each:

    x = data                # a leaf: the program keeps it anyway, it does not count
    a = x @ w               # saves x and w (leaves)
    h = torch.relu(a)       # saves its result h                4 KiB from here on
    y = h @ v               # saves h again: one memory          4 KiB
    z = torch.sigmoid(y)    # saves its result z                8 KiB, the peak
    z.sum().backward()      # releases z, then h                0

The account is exact for the inputs and results that the recording lists as saved by an operation (`OpSeen.saved`).
Tensors that share memory count once. Leaves and parameters do not count, because the program keeps them anyway. Tensors
that only the operation knows (the mean of a layer norm, the indices of a pooling) do not count either; their number is
`unknown`.

A checkpoint saves only its inputs, and computes the rest again during the backward pass. Only that second computation
shows which operations were in a checkpoint, so without a backward pass they count in full.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise, zip_longest

import msgspec

from gviz.events import Edge, NodeCreated, StepFinished
from gviz.explain.display_names import is_mask, label
from gviz.explain.finding import Finding, Number
from gviz.explain.source_frames import innermost
from gviz.explain.value_computation import saved_edge, saved_places
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import Iteration, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import bytes_text, count_text, shape_text
from gviz.values.plain_text import file_line

MOST_ROWS = 8
"""The most modules, lines and tensors in a report, the largest first."""

WORTH = 0.1
"""The least share of the peak that a checkpoint must save to be suggested."""


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A piece of memory that one or more nodes save for backward.

    `output` is the output that owns it, `nbytes` is its size, and `savers` are the nodes that save it. It is kept from
    event `start` until just before event `end`.
    """

    output: Edge
    nbytes: int
    savers: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The effect of checkpointing each of some modules: the peak would fall to about `peak` bytes.

    `operations` is the number of operations that would run a second time.
    """

    modules: tuple[str, ...]
    peak: int
    operations: int


class SavedMemory:
    """The memory that the graph of one iteration saves for backward, at every moment."""

    def __init__(self, timeline: Timeline, iteration: Iteration) -> None:
        self.timeline, self.iteration = timeline, iteration
        self.unknown = self.checkpointed = 0
        self.tensors = tuple(self._tensors())

    def _tensors(self) -> Iterator[SavedTensor]:
        timeline, (start, end) = self.timeline, (self.iteration.start, self.iteration.end)
        earlier, _ = timeline.nodes.with_saved(start - 1) if start > 1 else ((), 0)
        nodes = [*earlier, *(node for node in timeline.nodes.of(self.iteration) if timeline.nodes.born(node) >= start)]
        infos = {node: timeline.info(node) for node in dict.fromkeys(nodes)}
        released = {
            state.node: min(filter(None, (state.saved_freed, state.freed)), default=end + 1)
            for state in timeline.at(end).states([*infos])
            if state is not None
        }
        checkpoints = _Checkpoints(timeline, infos)
        self.checkpointed = len(checkpoints.inside)
        makers: dict[int, tuple[Edge, int, bool]] = {}
        savers: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for node, info in infos.items():
            if checkpoints.is_second(info):
                continue
            saved, until = [*self._saved_by(info)], released.get(node, end + 1)
            kept: Iterable[tuple[Edge | None, int, int]] = ((edge, info.born, until) for edge in saved)
            if node in checkpoints.inside:
                kept = checkpoints.kept(info, saved, until)
            for edge, since, last in kept:
                if edge is None:
                    self.unknown += 1
                elif (memory := _memory(timeline, edge, makers)) is not None:
                    savers[memory].append((node, since, last))
        for memory, users in savers.items():
            output, nbytes, is_leaf = makers[memory]
            if nbytes and not is_leaf:
                for first, until, holders in _merged(users):
                    if until > max(start, first):
                        yield SavedTensor(output, nbytes, holders, max(start, first), until)

    def _saved_by(self, info: NodeInfo) -> Iterator[Edge | None]:
        """Yield the outputs that a node saves; None for a tensor that only its operation knows."""
        created = info.created
        for place in saved_places(info, self._requires_grad):
            name = info.op.saved[place]
            edge = saved_edge(self.timeline, info, name)
            if edge is not None or name not in dict(created.attrs):
                yield edge

    def _requires_grad(self, node: int) -> bool:
        return self.timeline.nodes.created(node).requires_grad

    @cached_property
    def curve(self) -> tuple[tuple[int, int], ...]:
        """Return each event that changes the saved memory, with the bytes from it on."""
        return _curve((one.start, one.end, one.nbytes) for one in self.tensors)

    @cached_property
    def peak(self) -> tuple[int, int]:
        """Return the first event with the most bytes, and that number; (0, 0) if nothing is saved."""
        return max(self.curve, key=lambda point: (point[1], -point[0]), default=(0, 0))

    def at(self, n: int) -> list[SavedTensor]:
        """Return the saved tensors at moment `n`, the largest first."""
        return sorted((one for one in self.tensors if one.start <= n < one.end), key=lambda one: -one.nbytes)

    def by_module(self, n: int) -> Counter[str]:
        """Return the bytes at moment `n` of tensors made in each module, including those inside it, by path.

        The empty path is for tensors made outside of modules. If several nested modules contain everything else,
        only the innermost of them is listed.
        """
        kept: Counter[str] = Counter()
        for one in self.at(n):
            kept.update(dict.fromkeys(_paths(self.timeline.info(one.output[0]).scope) or [""], one.nbytes))
        inside = sum(one.nbytes for one in self.at(n)) - kept[""]
        around = [path for path, size in kept.items() if path and size == inside]
        return Counter({path: size for path, size in kept.items() if size and path not in around[:-1]})

    def by_line(self, n: int) -> Counter[Frame]:
        """Return the bytes at moment `n`, by the line of the program that made the tensor, if it is known."""
        kept: Counter[Frame] = Counter()
        for one in self.at(n):
            if (line := innermost(self.timeline.info(one.output[0]))) is not None:
                kept[msgspec.structs.replace(line, function="", column=-1, end_column=-1)] += one.nbytes
        return kept

    def checkpoint(self) -> Checkpoint | None:
        """Return the sibling modules whose checkpoints would lower the peak most; None if none would by a `WORTH`.

        A checkpoint keeps the inputs of a module and drops tensors that are only used inside, until the backward pass
        reaches the module and computes them again.
        """
        peak = self.peak[1]
        inside: defaultdict[str, list[SavedTensor]] = defaultdict(list)
        for one in self.tensors:
            scopes = [self.timeline.info(node).scope for node in (one.output[0], *one.savers)]
            for path in _paths(_common(scopes)):
                inside[path].append(one)
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for path, tensors in inside.items():
            if sum(one.nbytes for one in tensors) >= peak * WORTH / 2:
                groups[path.rpartition(".")[0]].append(path)
        best: Checkpoint | None = None
        for parent, paths in groups.items():
            if not parent and len(paths) == 1:
                continue  # the whole model: all of its memory would come back
            later: dict[SavedTensor, int] = {}
            for path in paths:
                back = min(one.end for one in inside[path])  # when the module's first backward rule has run
                later.update((one, max(one.start, back - 1)) for one in inside[path])
            points = _curve((later.get(one, one.start), one.end, one.nbytes) for one in self.tensors)
            lower = max((size for _, size in points), default=0)
            if lower <= peak * (1 - WORTH) and (best is None or lower < best.peak):
                best = Checkpoint(tuple(sorted(paths)), lower, self._operations(paths))
        return best

    def _operations(self, paths: Sequence[str]) -> int:
        infos = (self.timeline.info(node) for node in self.timeline.nodes.of(self.iteration))
        forward = (info.scope for info in infos if info.created.kind == "op" and info.created.during == (0, 0))
        return sum(any(f"{scope}.".startswith(f"{path}.") for path in paths) for scope in forward)


def _curve(kept: Iterable[tuple[int, int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the sum of sizes at each event that changes it.

    A size counts from its first event to its end, not included.
    """
    changes: Counter[int] = Counter()
    for start, end, size in kept:
        changes[start] += size
        changes[end] -= size
    events = sorted(changes)
    return tuple(zip(events, accumulate(changes[event] for event in events), strict=True))


def _merged(users: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Yield the spans in which one memory is kept, with the nodes that keep it. `users` are node, start and end."""
    first = until = 0
    nodes: dict[int, None] = {}
    for node, start, end in sorted(users, key=lambda user: user[1]):
        if nodes and start > until:
            yield first, until, tuple(nodes)
            nodes = {}
        first, until = (min(first, start), max(until, end)) if nodes else (start, end)
        nodes[node] = None
    yield first, until, tuple(nodes)


def _memory(timeline: Timeline, edge: Edge, makers: dict[int, tuple[Edge, int, bool]]) -> int | None:
    """Return the storage of an output. `makers` gets the output that owns it, its bytes, and whether that is a leaf."""
    node, nr = edge
    created = timeline.nodes.created(node)
    if nr >= len(created.outputs):
        return None
    storage = created.outputs[nr].storage
    if storage not in makers:
        base, base_nr = _base(timeline, created, nr)
        value = base.outputs[base_nr].value
        is_leaf = base.kind != "op" and not is_mask(base)
        makers[storage] = (base.node, base_nr), value.nbytes if value is not None else 0, is_leaf
    return storage


def _base(timeline: Timeline, created: NodeCreated, nr: int) -> tuple[NodeCreated, int]:
    """Return the node and output whose memory an output is a view of, or the output itself."""
    seen = set()
    while (owner := created.outputs[nr].view_of) and owner not in seen:
        seen.add(owner)
        storage, base = created.outputs[nr].storage, timeline.nodes.created(owner)
        if not base.outputs:
            break  # a damaged trace
        created, nr = base, next((place for place, output in enumerate(base.outputs) if output.storage == storage), 0)
    return created, nr


class _Checkpoints:
    """Which nodes ran in a checkpoint, and the nodes that a backward pass computed again for them.

    A checkpoint runs its function again when backward needs one of its tensors, and stops when that is computed. The
    nodes of this second run are made during the backward step of one node, `needed`. In the same order, they repeat a
    part of the forward before it:

        forward    x #3   linear #4   gelu #5   gelu #6   linear #7       the function
        backward   step of #7: linear #9   gelu #10   gelu #11            #9 repeats #4, #10 #5, #11 #6

    One part repeats another if their operations and shapes are equal, and their inputs from outside are the same
    tensors, or numbers. Equal operations are not enough: a second ``gelu`` looks like the first, but its input is the
    first one's result. Modules and lines are not compared. The second run is called by the line of ``backward()``,
    perhaps without the modules around it.
    """

    def __init__(self, timeline: Timeline, infos: Mapping[int, NodeInfo]) -> None:
        # For each node in a checkpoint: the last node of its outermost checkpoint.
        self.inside: dict[int, int] = {}
        # For each such last node: the later runs. Each maps a forward node to the node that repeats it, if any.
        self.runs: defaultdict[int, list[dict[int, NodeInfo | None]]] = defaultdict(list)
        self._timeline = timeline
        self._again: set[int] = set()
        computed = sorted((info for info in infos.values() if _is_of_program(info.created)), key=lambda info: info.born)
        forward = [info for info in computed if info.created.during == (0, 0)]
        places = {info.node: place for place, info in enumerate(forward)}
        groups: defaultdict[Edge, list[NodeInfo]] = defaultdict(list)
        for info in computed:
            if info.created.during != (0, 0):
                groups[info.created.during].append(info)
        for (_, needed), again in groups.items():
            if needed not in places or not any(info.created.requires_grad for info in again):
                continue  # computed by a rule, without a graph
            end = places[needed] + 1
            for start in range(end - len(again), -1, -1):
                pairs = [*zip(forward[start:end], again, strict=False)]
                if self._repeats(pairs):
                    self.inside = dict.fromkeys((info.node for info in forward[start:end]), needed) | self.inside
                    self._again |= {second.node for second in again}
                    run = {first.node: second for first, second in zip_longest(forward[start:end], again)}
                    self.runs[self.inside[needed]].append(run)
                    break

    def _repeats(self, pairs: Sequence[tuple[NodeInfo, NodeInfo]]) -> bool:
        """Return whether the second node of each pair computes what the first one did."""
        inside = {second.node for _, second in pairs}
        for first, second in pairs:
            if _look(first) != _look(second):
                return False
            for edge, again in zip(first.created.inputs, second.created.inputs, strict=False):
                again = self._attached(again)
                if again[0] not in inside and not self._is_same(self._attached(edge), again):
                    return False
        return True

    def _attached(self, edge: Edge) -> Edge:
        """Return what an input was detached from, or the input itself."""
        while edge[0]:
            created = self._timeline.nodes.created(edge[0])
            if created.untracked != "detach" or not created.inputs or created.inputs[0][0] >= edge[0]:
                break  # the last only in a damaged trace
            edge = created.inputs[0]
        return edge

    def _is_same(self, edge: Edge, again: Edge) -> bool:
        """Return whether two inputs from outside are one tensor, or numbers, which each run makes again."""
        if edge == again or not (edge[0] and again[0]):
            return edge == again
        nodes = self._timeline.nodes
        return nodes.created(edge[0]).kind == nodes.created(again[0]).kind == "constant"

    def kept(self, info: NodeInfo, saved: Iterable[Edge | None], released: int) -> Iterator[tuple[Edge, int, int]]:
        """Yield what a checkpoint keeps for an operation in it, with the first and the last event.

        Tensors from outside are kept until the operation is released. A tensor made inside is computed again in each
        pass, and kept until the operation's own rule has run. In nested checkpoints the last run counts, because the
        run before keeps only the inputs of the inner one.

        A run stops at the last tensor that is needed, sometimes before that tensor's operation is recorded. Such a
        tensor counts as kept from the end of the run.
        """
        last = self.inside[info.node]
        for edge in info.created.inputs:
            if edge[0] and self.inside.get(edge[0]) != last:
                yield edge, info.born, released
        for edge in filter(None, saved):
            if self.inside.get(edge[0]) != last:
                continue
            latest: dict[int, tuple[Edge, int]] = {}
            for run in self.runs[last]:
                if edge[0] in run:
                    *_, end = filter(None, run.values())
                    second = run[edge[0]]
                    again = ((second.node, edge[1]), second.born) if second else (edge, end.born)
                    latest[end.created.during[0]] = again
            for tensor, since in latest.values():
                yield tensor, since, min(released, self._rule_end(info.node, since))

    def _rule_end(self, node: int, n: int) -> int:
        """Return the next event after moment `n` at which the node's backward rule ends."""
        timeline = self._timeline
        later = (seq for seq in timeline.events_of(node) if seq > n)
        return next((seq for seq in later if isinstance(timeline.event(seq), StepFinished)), len(timeline) + 1)

    def is_second(self, info: NodeInfo) -> bool:
        """Return whether a pass computed the node again. It is counted at the operation for which it was computed."""
        return info.node in self._again


def _is_of_program(created: NodeCreated) -> bool:
    """Return whether it is an operation or a dropout's mask. A detach does not count, because checkpoints add some."""
    return is_mask(created) or (created.kind == "op" and created.untracked != "detach")


def _look(info: NodeInfo) -> tuple[object, ...]:
    shapes = tuple(output.value.shape if output.value is not None else None for output in info.created.outputs)
    return info.created.kind, info.op.name, shapes


def _common(scopes: Sequence[str]) -> str:
    """Return the innermost module that contains all of these."""
    parts = [scope.split(".") for scope in scopes]
    shared = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        shared.append(level[0])
    return ".".join(shared)


def _paths(scope: str) -> list[str]:
    """Return a module and those around it: ``net``, ``net.layers``, ``net.layers.0``; empty outside of modules."""
    return [*accumulate(scope.split("."), "{}.{}".format)] if scope else []


# The report: `gviz why memory`, `gviz show TRACE memory`


def saved_memory(timeline: Timeline, n: int) -> SavedMemory:
    """Return the account of the iteration at moment `n`, or of the one before it if its graph saves nothing yet."""
    iteration = timeline.iteration_at(n)
    account = SavedMemory(timeline, iteration)
    while not account.tensors and iteration.index:
        iteration = timeline.iterations[iteration.index - 1]
        account = SavedMemory(timeline, iteration)
    return account


def memory_finding(timeline: Timeline, n: int) -> Finding:
    """Return the peak of the iteration at moment `n`, its composition, and the effect of a checkpoint."""
    account = saved_memory(timeline, n)
    event, peak = account.peak
    if not peak:
        return Finding("memory", f"no operation saves a tensor for backward up to event {n}", n)
    kept = account.at(event)
    text = (
        f"the graph of iteration {account.iteration.number} keeps up to {bytes_text(peak)} for backward: "
        f"{count_text(len(kept))} tensor{'s' if len(kept) != 1 else ''} at event {event}"
    )
    at = next((line for line, _ in account.by_line(event).most_common(1)), None)
    parts = [*_sections(account, event), *_reserves(account)]
    checkpoint = account.checkpoint()
    fix = ""
    if checkpoint is not None:
        count = len(checkpoint.modules)
        what = checkpoint.modules[0] if count == 1 else f"each of the {count} modules {_range(checkpoint.modules)}"
        fix = (
            f"torch.utils.checkpoint around {what}: the peak falls to about {bytes_text(checkpoint.peak)}, and "
            f"{checkpoint.operations} operations run twice"
        )
    return Finding("memory", text, event, kept[0].output[0], tuple(parts), fix, at, (Number("bytes", peak, event),))


def _sections(account: SavedMemory, n: int) -> Iterator[Finding]:
    """Yield the saved memory at an event: by module, by line, and the largest tensors."""
    timeline, kept = account.timeline, account.at(n)
    total = sum(one.nbytes for one in kept)
    modules, lines = account.by_module(n), account.by_line(n)
    if set(modules) - {""}:
        parts = [_part(name or "outside of modules", size, total) for name, size in modules.most_common(MOST_ROWS)]
        yield Finding("modules", f"by module, with what is inside of it{_left_out(len(modules))}", parts=tuple(parts))
    parts = [_part(file_line(at.path, at.line), size, total, at) for at, size in lines.most_common(MOST_ROWS)]
    yield Finding("lines", f"by line{_left_out(len(lines))}", parts=tuple(parts))
    tensors = tuple(_tensor(timeline, one, total) for one in kept[:MOST_ROWS])
    yield Finding("tensors", f"largest tensors{_left_out(len(kept))}", parts=tensors)


def _part(name: str, size: int, total: int, at: Frame | None = None) -> Finding:
    return Finding("part", f"{_share(size, total)}  {name}", at=at)


def _left_out(count: int) -> str:
    return f" ({MOST_ROWS} of {count})" if count > MOST_ROWS else ""


def _share(size: int, total: int) -> str:
    return f"{bytes_text(size):>9} {size / total:4.0%}"


def _tensor(timeline: Timeline, one: SavedTensor, total: int) -> Finding:
    node, nr = one.output
    value = timeline.nodes.created(node).outputs[nr].value
    shape = f" {shape_text(value.shape)}" if value is not None else ""
    by = ", ".join(label(timeline, saver) for saver in one.savers[:3])
    more = f" and {len(one.savers) - 3} more" if len(one.savers) > 3 else ""
    text = f"{_share(one.nbytes, total)}  {label(timeline, node)}{shape}, saved by {by}{more}"
    return Finding("tensor", text, one.start, node, at=innermost(timeline.info(node)))


def _reserves(account: SavedMemory) -> Iterator[Finding]:
    """Yield what the account leaves out."""
    if account.unknown:
        count = account.unknown
        yield Finding(
            "unknown",
            f"not counted: {count} saved tensor{'s' if count != 1 else ''} that the recording has no size of, such as "
            "the mean of a normalisation or the indices of a pooling",
        )
    if account.checkpointed:
        yield Finding("checkpoint", f"of {account.checkpointed} operations in a checkpoint only its inputs are counted")


def _range(modules: Sequence[str]) -> str:
    return f"{modules[0]} … {modules[-1]}"


_BLOCKS = " ▁▂▃▄▅▆▇█"


def curve_text(account: SavedMemory, width: int) -> str:
    """Return the saved bytes over the events of the iteration as bars, each the maximum of its share of the events."""
    start, end = account.iteration.start, account.iteration.end + 1
    width = min(width, end - start)
    highest, peak = [0] * width, account.peak[1]
    points = [*account.curve, (end, 0)]
    for (event, size), (until, _) in pairwise(points):
        first, last = (event - start) * width // (end - start), (max(event, until - 1) - start) * width // (end - start)
        for place in range(first, min(last, width - 1) + 1):
            highest[place] = max(highest[place], size)
    return "".join(_BLOCKS[-(-size * (len(_BLOCKS) - 1) // peak) if peak else 0] for size in highest)


def memory_text(timeline: Timeline, n: int, width: int) -> Iterator[str]:
    """Yield the report as lines of text: the peak, the curve, the saved memory at the peak, and a way to lower it."""
    finding = memory_finding(timeline, n)
    yield finding.text
    account = saved_memory(timeline, n)
    if account.tensors:
        yield ""
        curve = curve_text(account, width)
        yield curve
        left, right = f"event {account.iteration.start}", f"event {account.iteration.end}"
        yield f"{left}{right:>{max(len(right) + 1, len(curve) - len(left))}}"
    for section in finding.parts:
        yield ""
        yield section.text
        yield from (f"  {part.text}" for part in section.parts)
    if finding.fix:
        yield ""
        yield f"try: {finding.fix}"


def memory_data(timeline: Timeline, n: int) -> dict[str, object]:
    """Return the report for programs: sizes in bytes, and the curve as pairs of event and bytes from it on."""
    account = saved_memory(timeline, n)
    event, peak = account.peak
    checkpoint = account.checkpoint()
    return {
        "iteration": account.iteration.number,
        "peak": {"event": event, "bytes": peak},
        "curve": account.curve,
        "modules": dict(account.by_module(event).most_common()),
        "lines": {file_line(line.path, line.line): size for line, size in account.by_line(event).most_common()},
        "tensors": [
            {"node": one.output[0], "output": one.output[1], "bytes": one.nbytes, "saved_by": one.savers}
            for one in account.at(event)
        ],
        "not_counted": {"unknown": account.unknown, "checkpointed": account.checkpointed},
        "checkpoint": checkpoint
        and {"modules": checkpoint.modules, "peak": checkpoint.peak, "operations": checkpoint.operations},
    }
