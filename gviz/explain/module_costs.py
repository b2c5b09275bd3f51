"""The cost of each module and node, for the Modules panel and for pictures: bytes saved for backward, or time.

The memory is what the graph saves for backward at its peak, at the node and in the modules that made each saved tensor:
the amounts of all boxes add up to the peak. See `gviz.explain.saved_memory`. The time is that of module calls, forward
and backward; only a recording with timed iterations has it, and no node has a time of its own. See
`gviz.explain.module_times`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, get_args

from gviz.errors import GvizError
from gviz.trace.timeline import Timeline
from gviz.values.number_text import bytes_text, seconds_text

CostKind = Literal["memory", "time"]
COST_KINDS: tuple[CostKind, ...] = get_args(CostKind)


@dataclass(frozen=True, slots=True)
class Costs:
    """Amounts of one kind: bytes, or nanoseconds. `total` is that of the whole iteration.

    The amount of a module includes the modules inside it.
    """

    kind: CostKind
    total: float
    by_module: Mapping[str, float]
    by_node: Mapping[int, float]
    by_call: Mapping[tuple[str, int], float]

    def of_nodes(self, nodes: Collection[int]) -> float:
        """Return the amount of some nodes; 0 if nodes have none."""
        return sum(self.by_node.get(node, 0) for node in nodes)

    def of_call(self, path: str, number: int) -> float:
        """Return the amount of one call of a module, counted from 1; 0 if it is unknown."""
        return self.by_call.get((path, number), 0)

    def text(self, amount: float) -> str:
        """Return an amount with its unit."""
        return bytes_text(round(amount)) if self.kind == "memory" else seconds_text(amount / 1e9)

    @property
    def words(self) -> str:
        """Return what the amounts are, in a sentence for the caption of a picture."""
        if self.kind == "memory":
            return f"memory: saved for backward at the peak, {self.text(self.total)} in all"
        return f"time: forward and backward of each module, of {self.text(self.total)} for the iteration"


def costs(timeline: Timeline, kind: CostKind, n: int) -> Costs | None:
    """Return the costs in the iteration at moment `n`; None if nothing is saved, or if no iteration was timed."""
    end = timeline.iteration_at(n).end
    return timeline.once(_memory if kind == "memory" else _time, end)


def _memory(timeline: Timeline, end: int) -> Costs | None:
    from gviz.explain.saved_memory import saved_memory  # imported here because every start of the debugger is faster

    account = saved_memory(timeline, end)
    event, peak = account.peak
    if not peak:
        return None
    by_node: Counter[int] = Counter()
    by_module: Counter[str] = Counter()
    for tensor in account.at(event):
        node = tensor.output[0]
        by_node[node] += tensor.nbytes
        scope = timeline.info(node).scope
        by_module.update(dict.fromkeys(accumulate(scope.split("."), "{}.{}".format) if scope else (), tensor.nbytes))
    return Costs("memory", peak, by_module, by_node, {})


def _time(timeline: Timeline, _: int) -> Costs | None:
    from gviz.explain.module_times import module_times  # imported here because every start of the debugger is faster

    times = module_times(timeline)
    if times is None:
        return None
    by_module: defaultdict[str, float] = defaultdict(float)
    by_call: dict[tuple[str, int], float] = {}
    numbers: Counter[str] = Counter()
    for call in times.calls:
        numbers[call.path] += 1
        by_call[call.path, numbers[call.path]] = call.total
        by_module[call.path] += call.total
    return Costs("time", times.total, by_module, {}, by_call)


def why_no_costs(timeline: Timeline, kind: CostKind, n: int) -> GvizError:
    """Return the error for a recording without such costs: why there are none, and how to record them."""
    if kind == "memory":
        return GvizError(f"no operation saves a tensor for backward up to event {n}", exit_code=2)
    from gviz.explain.module_times import why_no_times  # imported here because every start of the debugger is faster

    what, _, why = why_no_times(timeline).partition(": ")
    return GvizError(what, why=why, exit_code=2)
