"""Which nodes a backward pass will reach, which of them it did not reach because of an error, and its seed gradients.

The search follows the edges of the graph from the roots, as the graph is when the pass starts. It is one sweep over the
columns of an index, from the newest node to the oldest, because inputs have smaller ids than the nodes that use them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from gviz.events import BackwardFinished, BackwardStarted, Edge
from gviz.trace.event_log import EventLog, expect
from gviz.trace.graph_state import OutputState, Step
from gviz.trace.index.search_index import Index
from gviz.trace.tensor_storage import FindArray
from gviz.values.value import Array, Value, capture


class Reach:
    """The part of the graph that one pass covers: its `nodes`. `arriving` yields each output once per contribution,
    seeds included.
    """

    def __init__(self, nodes: Iterable[int], arriving: Callable[[], Iterable[Edge]]) -> None:
        self.nodes = frozenset(nodes)
        self._arriving = arriving

    @cached_property
    def expected(self) -> Mapping[Edge, int]:
        """The number of contributions that will arrive at each output, counted on first use."""
        return Counter(self._arriving())


def swept(index: Index, start: int, started: BackwardStarted) -> Reach:
    """Return what the pass that begins at event `start` will reach.

    The inputs of a node are created before it, so a sweep from the newest edge on visits every node after all its
    users. Only edges of the pass's own iteration are swept, since the pass needs nearly all of them. Older edges are
    walked.
    """
    seqs, sources, targets, output_nrs, carries = index.tables.edges
    iterations = index.tables.iterations.start
    first, end = seqs.searchsorted((iterations[iterations.searchsorted(start) - 1], start)).tolist()
    recent = np.flatnonzero(carries[first:end])[::-1] + first
    from_nodes = sources[recent].tolist()
    reached = {node for node, _ in started.roots}
    rows = []
    for row, source, target in zip(recent.tolist(), from_nodes, targets[recent].tolist(), strict=True):
        if source in reached:
            reached.add(target)
            rows.append(row)
    rows += _walked(index, reached.difference(from_nodes), reached, end)
    taken = np.array(rows, np.int64)
    if started.inputs:
        reached = _leading_to({node for node, _ in started.inputs} & reached, index, np.sort(taken))
        taken = taken[np.isin(sources[taken], list(reached)) & np.isin(targets[taken], list(reached))]
    roots = [edge for edge in started.roots if edge[0] in reached]
    return Reach(reached, lambda: [*roots, *zip(targets[taken].tolist(), output_nrs[taken].tolist(), strict=True)])


def _walked(index: Index, nodes: set[int], reached: set[int], end: int) -> Iterator[int]:
    """Yield the rows of edges before row `end` that are reachable from these nodes. Adds their targets to `reached`."""
    targets, carries = index.tables.edges.target, index.tables.edges.carries
    todo = list(nodes)
    while todo:
        for number in index.lists["edges_from"].of_key(todo.pop()).tolist():
            row = number - 1
            if row < end and carries[row]:
                yield row
                target = int(targets[row])
                if target not in reached:
                    reached.add(target)
                    todo.append(target)


def _leading_to(targets: set[int], index: Index, rows: Array) -> set[int]:
    """Return the nodes that lead to a target over these edges, which are in order of time, and the targets."""
    edges, leading = index.tables.edges, set(targets)
    for source, target in zip(edges.source[rows].tolist(), edges.target[rows].tolist(), strict=True):
        if target in leading:
            leading.add(source)
    return leading


class FailedPasses:
    """The ends of failed passes, by the nodes that these passes covered. Few programs have any."""

    def __init__(self, log: EventLog, index: Index, reach: Callable[[int], Reach]) -> None:
        self._log = log
        self._index = index
        self._reach = reach
        self._known = 0
        self._ends: dict[int, list[int]] = {}

    def before(self, node: int, n: int) -> int:
        """Return the last event up to `n` at which a pass that covered the node ended with an error, or 0."""
        if len(self._index.tables.failed_passes.seq) > self._known:
            self._catch_up()
        ends = self._ends.get(node, ())
        position = bisect_right(ends, n)
        return ends[position - 1] if position else 0

    def _catch_up(self) -> None:
        ends = self._index.tables.failed_passes.seq[self._known :].tolist()
        for end in ends:
            for node in self._reach(expect(self._log, end, BackwardFinished).pass_nr).nodes:
                self._ends.setdefault(node, []).append(end)
        self._known += len(ends)


def standing(step: Step, pass_nr: int, *, leaf: bool, failed: bool, outputs: Sequence[OutputState]) -> Step:
    """Return the state of a node in a pass whose `step` is known. A leaf is running once all contributions have
    arrived.

    If an error ended the pass, a running node has failed, and a node that received nothing is not part of the pass.
    """
    if pass_nr == 0:
        return "none"
    if step != "pending":
        return "failed" if failed and step == "running" else step
    if not any(out.parts for out in outputs):
        return "none" if failed else "pending"
    complete = all(len(out.parts) >= out.expected for out in outputs)
    return "running" if leaf and complete and not failed else "waiting"


def seed_sum(seeds: Sequence[Value], find_array: FindArray) -> Value | None:
    """Return the gradient with which a pass starts at one root: the sum if the root was given several times."""
    if len(seeds) < 2:
        return seeds[0] if seeds else None
    arrays = [array for array in map(find_array, seeds) if array is not None and array.shape == seeds[0].shape]
    if len(arrays) < len(seeds) or seeds[0].dtype == "bfloat16":
        return Value(seeds[0].dtype, seeds[0].shape)
    return capture(sum(arrays[1:], arrays[0]))
