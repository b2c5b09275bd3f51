"""What a ``.grad`` held before a pass added to it."""

from __future__ import annotations

from dataclasses import dataclass

from gviz.events import GradAccumulated, GradSet
from gviz.trace.state import OutputState
from gviz.trace.timeline import Timeline
from gviz.values import Value


@dataclass(frozen=True, slots=True)
class Accumulation:
    """``.grad``: `before` (there since pass `since`, 0: not from a pass, by event `event`) += `part`."""

    before: Value
    part: Value
    since: int
    event: int


def accumulation(timeline: Timeline, node: int, output: OutputState) -> Accumulation | None:
    """How the ``.grad`` of a leaf came to be, if there was one before."""
    event = timeline.event(output.grad_seq) if output.grad_seq else None
    if not isinstance(event, GradAccumulated) or event.value is None:
        return None
    state = timeline.at(output.grad_seq - 1).state(node)
    old = state.outputs[0] if state is not None else None
    if old is None or old.grad is None:
        return None
    setter = timeline.event(old.grad_seq) if old.grad_seq else None
    since = setter.pass_nr if isinstance(setter, GradAccumulated) else 0
    return Accumulation(old.grad, event.part, since, old.grad_seq)


def passes_added(timeline: Timeline, node: int, seq: int) -> list[tuple[int, GradAccumulated]]:
    """The passes whose gradients make up the ``.grad`` of event `seq`, the first first; none if it is more than these.

    A program may have set or changed it in between.
    """
    added: list[tuple[int, GradAccumulated]] = []
    for earlier in reversed([n for n in timeline.events_of(node) if n <= seq]):
        event = timeline.event(earlier)
        if isinstance(event, GradAccumulated):
            added.insert(0, (earlier, event))
            if event.value is None:
                return added
        elif isinstance(event, GradSet):
            return []
    return []
