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
    with their gradients. If the program only reads gradients there, for example to print norms, it is before that.
    """
    n = _before_step(timeline, iteration) or end_of(timeline, iteration, _evaluation(timeline, iteration) - 1)
    readings, before = gradient_readings(timeline, iteration), n
    ends = timeline.pass_ends(iteration)
    while readings and before > ends[-1]:
        event = timeline.event(before)
        if getattr(event, "node", 0) in readings:
            n = before - 1
        elif not isinstance(event, e.NodeFreed | e.Printed | e.ScopeLeft):
            break
        before -= 1
    return end_of(timeline, iteration, n) if readings else n


def gradient_readings(timeline: Timeline, iteration: Iteration) -> frozenset[int]:
    """Return the nodes that only read gradients after the passes of an iteration, such as norms that are printed.

    Nothing else uses them. A gradient that the program clips is changed, and does not count.
    """
    return timeline.once(_gradient_readings, iteration)


def _gradient_readings(timeline: Timeline, iteration: Iteration) -> frozenset[int]:
    passes = timeline.pass_ends(iteration)
    after = (e.NodeCreated, e.StorageWritten)
    events = timeline.select(after, passes[-1], iteration.end + 1) if passes else iter(())
    users: dict[int, list[int]] = {}
    memory = set[int]()  # of readings: what is written there is no gradient
    readings: dict[int, bool] = {}  # node -> whether it is more than a number
    for _, event in events:
        if isinstance(event, e.StorageWritten) and event.storage not in memory:
            readings.pop(event.node, None)
        if not isinstance(event, e.NodeCreated):
            continue
        attrs = dict(event.attrs)
        for node in {*(node for node, _ in event.inputs), *(output.view_of for output in event.outputs)}:
            users.setdefault(node, []).append(event.node)
        if event.kind == "constant":
            if "grad_of" in attrs or attrs.get("number") is True:
                readings[event.node] = "grad_of" in attrs
        elif event.kind == "op" and event.inputs and not event.requires_grad:
            sources = [node for node, _ in event.inputs]
            are_read = [readings.get(node, _is_gradient(timeline, node)) for node in sources]
            if any(are_read) and all(node in readings or _is_gradient(timeline, node) for node in sources):
                readings[event.node] = True
                memory.update(output.storage for output in event.outputs if not (output.version or output.view_of))
    for node in reversed([*readings]):
        own = users.get(node, [])
        if not all(user in readings for user in own) or not (readings[node] or own):
            del readings[node]
    return frozenset(readings)


def _is_gradient(timeline: Timeline, node: int) -> bool:
    """Return whether a node is the ``.grad`` of a leaf, which may be older than the pass."""
    return bool(node) and "grad_of" in dict(timeline.info(node).created.attrs)


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
