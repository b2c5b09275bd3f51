"""The gradients that belong to a node at a moment: those of its own iteration, and those that its rule ran with.

What a pass of an earlier iteration brought to a node is stale, and is not shown as new.
"""

from __future__ import annotations

from bisect import bisect_right

from msgspec.structs import replace

from gviz import events as e
from gviz.events import GradSet
from gviz.trace.backward_pass import replacement
from gviz.trace.graph_state import NodeState
from gviz.trace.timeline import Timeline
from gviz.values.value import Value


def in_its_iteration(timeline: Timeline, n: int, state: NodeState | None) -> NodeState | None:
    """The node at moment `n` as its iteration shows it, without what a pass of an earlier one has brought.

    Nor what a pass has brought a leaf whose ``.grad`` was cleared after it. ``.grad`` stays. A result that this
    iteration does not use keeps what its own pass has brought it.
    """
    if state is None or not state.pass_nr:
        return state
    if _cleared(timeline, state):
        return _without(state)
    iteration, info = timeline.iteration_at(n), timeline.info(state.node)
    if info.iteration == iteration.index or timeline.pass_start(state.pass_nr) >= iteration.start:
        return state
    result = info.created.kind == "op" and info.created.requires_grad
    if result and state.node not in timeline.once(_used, iteration.index):
        return state
    return _without(state)


def _cleared(timeline: Timeline, state: NodeState) -> bool:
    """Whether ``zero_grad``, or ``.grad = None``, came after the pass was over."""
    at = state.outputs[0].grad_seq if state.step == "done" and state.outputs else 0
    event = timeline.event(at) if at > timeline.pass_start(state.pass_nr) else None
    return isinstance(event, GradSet) and event.how in ("none", "zero")


def _without(state: NodeState) -> NodeState:
    outputs = tuple(replace(output, incoming=None, parts=(), expected=0) for output in state.outputs)
    return replace(state, pass_nr=0, step="none", outputs=outputs)


def _used(timeline: Timeline, index: int) -> frozenset[int]:
    return frozenset(timeline.nodes.of(timeline.iterations[index]))


def step_grads(timeline: Timeline, started: int) -> tuple[Value | None, ...]:
    """The gradients that had arrived by the event `started`, or what a hook of the node has put in their place since.

    PyTorch calls the hooks of a node in the order in which they were added: the program's after that which says
    that the rule runs.
    """
    step = timeline.event(started)
    if not isinstance(step, e.StepStarted):
        return ()
    grads, events = dict(enumerate(step.grads)), timeline.events_of(step.node)
    for event in map(timeline.event, events[bisect_right(events, started) :]):
        if isinstance(event, e.HookRan):
            grads[event.output_nr] = replacement(event) or grads.get(event.output_nr)
        elif isinstance(event, e.StepStarted | e.StepFinished):
            break
    return tuple(grads.values())
