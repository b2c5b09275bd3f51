"""The gradients with which the rule of a node ran."""

from __future__ import annotations

from bisect import bisect_right

from gviz import events as e
from gviz.trace.passes import replacement
from gviz.trace.timeline import Timeline
from gviz.values import Value


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
