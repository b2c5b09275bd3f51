"""Moves in time from one moment of a timeline to another, and the moments worth showing for an iteration.

At both ends of a recording, ``n`` stays the same; that is not an error.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from gviz import events as e
from gviz.errors import GvizError
from gviz.trace.graph_state import Iteration, Phase
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped

Move = Callable[[Timeline, int], int]


def no_event(timeline: Timeline, text: str) -> GvizError:
    """Return the error for an event number that does not exist."""
    return GvizError(f"there is no event {clipped(text, 20)}", hint=f"events go from 0 to {len(timeline)}", exit_code=2)


def start(timeline: Timeline, n: int) -> int:
    """Move before the first event."""
    return 0


def end(timeline: Timeline, n: int) -> int:
    """Move after the last event."""
    return len(timeline)


def step(timeline: Timeline, n: int) -> int:
    """Move one event forward, past those of `gviz.events.SILENT`."""
    n += 1
    while n < len(timeline) and isinstance(timeline.event(n), e.SILENT):
        n += 1
    return min(n, len(timeline))


def reverse_step(timeline: Timeline, n: int) -> int:
    """Move one event back, past those of `gviz.events.SILENT`."""
    n -= 1
    while n > 0 and isinstance(timeline.event(n), e.SILENT):
        n -= 1
    return max(n, 0)


def next_node(timeline: Timeline, n: int) -> int:
    """Move one whole node forward: its creation, its backward step with all contributions, or a leaf's gradient.

    The end of an optimizer step counts too.
    """
    return _after(timeline.contexts.node_ends, n, len(timeline))


def reverse_next_node(timeline: Timeline, n: int) -> int:
    """Move one whole node back."""
    return _before(timeline.contexts.node_ends, n, 0)


def finish(timeline: Timeline, n: int) -> int:
    """Move to the end of the current module call, otherwise of the phase; from there to the end of the next phase."""
    _, _, left = timeline.contexts.scope_at(n)
    if left > n:
        return left
    return _after(sorted(phase.end for phase in timeline.phases), n, len(timeline))


def phase_end(timeline: Timeline, phase: Phase) -> int:
    """Return the last moment of a phase, before the program freed the graph of an earlier iteration.

    In ``loss = net(x)`` the variable holds the last loss until the new one exists. So the forward ends with freed
    nodes, and a moment among these would be about the earlier iteration. `finish` does not use it: a program that runs
    can only be paused where the next phase begins.
    """
    n = phase.end
    if phase.kind == "forward":
        while n > phase.start and isinstance(timeline.event(n), e.NodeFreed):
            n -= 1
    return n


def reverse_finish(timeline: Timeline, n: int) -> int:
    """Move to the start of the current module call, otherwise of the phase; from there to the start before that."""
    entered = timeline.contexts.scope_at(n)[1]
    if entered == n:
        entered = timeline.contexts.scope_at(n - 1)[1]
    return entered or reverse_phase(timeline, n)


def phase(timeline: Timeline, n: int) -> int:
    """Move to the start of the next phase."""
    return _after([phase.start for phase in timeline.phases], n, len(timeline))


def reverse_phase(timeline: Timeline, n: int) -> int:
    """Move to the start of the phase; from there to the start of the previous one."""
    return _before([phase.start for phase in timeline.phases], n, 0)


def continue_(timeline: Timeline, n: int) -> int:
    """Move to the next stop: an error, the first nan or infinity, or a mark; otherwise to the end."""
    return _after(stops(timeline), n, len(timeline))


def reverse_continue(timeline: Timeline, n: int) -> int:
    """Move to the previous stop, otherwise to the start."""
    return _before(stops(timeline), n, 0)


def to_node(timeline: Timeline, n: int, node: int) -> int:
    """Move to the next event of the node; stays if there is none."""
    return _after(timeline.events_of(node), n, n)


def reverse_to_node(timeline: Timeline, n: int, node: int) -> int:
    """Move to the previous event of the node; stays if there is none."""
    return _before(timeline.events_of(node), n, n)


def stops(timeline: Timeline) -> list[int]:
    """Return the moments at which `continue_` stops."""
    seqs = {*timeline.errors, *(seq for seq, _ in timeline.marks), timeline.error_index.first_bad()}
    return sorted(seqs - {0})


def _after(moments: Sequence[int], n: int, otherwise: int) -> int:
    at = bisect_right(moments, n)
    return moments[at] if at < len(moments) else otherwise


def _before(moments: Sequence[int], n: int, otherwise: int) -> int:
    at = bisect_left(moments, n)
    return moments[at - 1] if at else otherwise


def through(timeline: Timeline, iteration: Iteration) -> int:
    """Return the moment at which an iteration is complete: its end, before any evaluation that follows its passes.

    If an optimizer used the gradients, returns the moment before that, with the weights that gave these results and
    with their gradients.
    """
    return _before_step(timeline, iteration) or end_of(timeline, iteration, _evaluation(timeline, iteration) - 1)


def end_of(timeline: Timeline, iteration: Iteration, n: int = -1) -> int:
    """Return the end of an iteration (or its moment `n`), before the program freed its graph."""
    n = iteration.end if n < 0 else n
    while n > max(iteration.start, 1) and isinstance(timeline.event(n), e.NodeFreed | e.Printed | e.ScopeLeft):
        n -= 1
    return n


def _before_step(timeline: Timeline, iteration: Iteration) -> int:
    """Return the moment before an optimizer used the gradients of an iteration's last pass; 0 if none did."""
    passes = timeline.pass_ends(iteration)
    after = timeline.select((e.OptimizerStarted,), passes[-1], iteration.end + 1) if passes else iter(())
    return next((n - 1 for n, _ in after), 0)


def _evaluation(timeline: Timeline, iteration: Iteration) -> int:
    """Return the event with which an iteration starts to evaluate after its passes; 0 if it does not.

    Evaluation starts with data or a module call, and changes nothing that existed before. Operations that autograd
    tracks belong to it, unless the last pass created a graph itself, which then continues.
    """
    passes, begun = timeline.pass_ends(iteration), 0
    begins = [event.create_graph for _, event in timeline.select((e.BackwardStarted,), iteration.start, iteration.end)]
    nodes, memory = set[int](), set[int]()  # since then
    deciding = (e.NodeCreated, e.ScopeEntered, e.StorageWritten, e.DataSet)
    for n, event in timeline.select(deciding, passes[-1], iteration.end + 1) if passes else iter(()):
        match event:
            case e.NodeCreated(requires_grad=True, untracked="") if begins[-1:] != [False]:
                begun = 0
            case e.NodeCreated(kind="op", requires_grad=True, untracked=""):
                return begun or n
            case e.StorageWritten(storage=storage) if storage not in memory:
                begun = 0
            case e.DataSet(node=node) if node not in nodes:
                begun = 0
            case e.NodeCreated(kind="constant", attrs=()) | e.ScopeEntered() if not begun:
                begun = n
                nodes.clear()
                memory.clear()
        if isinstance(event, e.NodeCreated):
            nodes.add(event.node)
            memory.update(each.storage for each in event.outputs if not (each.version or each.view_of))
    return begun
