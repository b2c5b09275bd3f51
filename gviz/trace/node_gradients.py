"""The gradients of a node at a moment: those of its own iteration, and those its backward rule received.

Contributions from a pass of an earlier iteration are stale and are not shown as new.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gviz import events as e
from gviz.events import GradSet
from gviz.trace.graph_state import Iteration, NodeState
from gviz.trace.timeline import Timeline
from gviz.values.value import Value


def in_its_iteration(timeline: Timeline, n: int, state: NodeState | None) -> NodeState | None:
    """Return the node at moment `n` without contributions from passes of earlier iterations.

    Also drops contributions to a leaf whose ``.grad`` was cleared afterwards. ``.grad`` itself stays. A result that
    this iteration does not use keeps the contributions of its own pass.
    """
    (shown,) = all_in_their_iteration(timeline, n, (state,))
    return shown


def all_in_their_iteration(
    timeline: Timeline, n: int, states: Iterable[NodeState | None]
) -> Iterator[NodeState | None]:
    """Yield what `in_its_iteration` returns for each of several states."""
    iteration = timeline.iteration_at(n)
    known = timeline.once(_known_states, iteration.index)
    for state in states:
        if state is None or not state.pass_nr:
            yield state
            continue
        kept = known.get(id(state))
        if kept is None or kept[0] is not state:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[id(state)] = kept = state, _in_iteration(timeline, iteration, state)
        yield kept[1]


_MOST_KNOWN = 100_000


def _known_states(timeline: Timeline, index: int) -> dict[int, tuple[NodeState, NodeState]]:
    """Return a cache of an iteration, by the identity of a state: a state is one object as long as it does not change.

    Its own reference to the state keeps the identity valid.
    """
    del timeline, index
    return {}


def _in_iteration(timeline: Timeline, iteration: Iteration, state: NodeState) -> NodeState:
    if _cleared(timeline, state):
        return _without(state)
    info = timeline.info(state.node)
    if info.iteration == iteration.index or timeline.pass_start(state.pass_nr) >= iteration.start:
        return state
    result = info.created.kind == "op" and info.created.requires_grad
    if result and state.node not in timeline.once(_used, iteration.index):
        return state
    return _without(state)


def _cleared(timeline: Timeline, state: NodeState) -> bool:
    """Return whether ``zero_grad``, or ``.grad = None``, followed the pass."""
    at = state.outputs[0].grad_seq if state.step == "done" and state.outputs else 0
    event = timeline.event(at) if at and at > timeline.pass_start(state.pass_nr) else None
    return isinstance(event, GradSet) and event.how in ("none", "zero")


def _without(state: NodeState) -> NodeState:
    outputs = tuple(replace(output, incoming=None, parts=(), expected=0) for output in state.outputs)
    return replace(state, pass_nr=0, step="none", outputs=outputs)


def _used(timeline: Timeline, index: int) -> frozenset[int]:
    return frozenset(timeline.nodes.of(timeline.iterations[index]))


def step_grads(timeline: Timeline, started: int) -> tuple[Value | None, ...]:
    """Return the incoming gradients at event `started`, or what a hook of the node has replaced them by since.

    PyTorch calls the hooks of a node in the order of registration: the program's hooks run after the one that records
    the start of the backward rule.
    """
    step = timeline.event(started)
    if not isinstance(step, e.StepStarted):
        return ()
    grads, events = dict(enumerate(step.grads)), timeline.events_of(step.node)
    for event in map(timeline.event, events[bisect_right(events, started) :]):
        if isinstance(event, e.HookRan):
            grads[event.output_nr] = e.left(event, "replaced") or grads.get(event.output_nr)
        elif isinstance(event, e.StepStarted | e.StepFinished):
            break
    return tuple(grads.values())
