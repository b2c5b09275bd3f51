"""What is known of the second derivatives of a function of the program, and why no more.

They are those of its backward, which is recorded where a pass keeps its graph (`create_graph`): a backward that uses an
input as a constant sends nothing back to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gviz.errors import GvizError
from gviz.events import BackwardStarted, NodeCreated, StepFinished, StepStarted
from gviz.trace.timeline import Timeline
from gviz.whatif.bent import is_bent

_ERROR = "error"
"""The operation that once_differentiable puts behind what was sent, to raise where that is differentiated."""


@dataclass(frozen=True, slots=True)
class SecondOrder:
    """Whether second derivatives of a call are surely wrong, and why that is so, or why they were not tried."""

    verdict: Literal["wrong", "not tried"]
    why: str


_NO_GRAPH = SecondOrder("not tried", "no pass with create_graph went through it")
_ONCE = SecondOrder("not tried", "its backward ran without a graph, as under once_differentiable or no_grad")
_SAVED = SecondOrder("not tried", "torch.autograd.gradgradcheck(f, inputs) in the program tries them")
_CONSTANT = SecondOrder(
    "wrong",
    "what it is to send changes with its inputs, and its backward used none with its graph (saved_tensors)",
)


OF_WRONG = SecondOrder("not tried", "the first ones differ")
"""What is said of them where the gradients are no derivatives."""


def second_order(timeline: Timeline, node: int) -> SecondOrder:
    """What is known of the second derivatives of a call of a function of the program."""
    graphs = {
        event.pass_nr
        for _, event in timeline.select((BackwardStarted,))
        if isinstance(event, BackwardStarted) and event.create_graph
    }
    for started in timeline.events_of(node):
        event = timeline.event(started)
        if isinstance(event, StepStarted) and event.pass_nr in graphs:
            return _of_step(timeline, node, list(_made_in(timeline, node, started)))
    return _NO_GRAPH


def _of_step(timeline: Timeline, node: int, made: Sequence[NodeCreated]) -> SecondOrder:
    """What is known by what its backward made in a pass that keeps its graph."""
    with_graph = any(one.requires_grad for one in made if timeline.op(one.op).name != _ERROR)
    if not with_graph and any(one.switched_off for one in made):
        return _ONCE
    own = {node, *(edge[0] for edge in timeline.info(node).created.inputs)}
    if any(edge[0] in own or not edge[0] for one in made for edge in one.inputs):  # or it is not known what that was
        return _SAVED
    try:
        return _CONSTANT if is_bent(timeline, node) else _SAVED
    except GvizError:  # it cannot be run again
        return _SAVED


def _made_in(timeline: Timeline, node: int, started: int) -> Iterator[NodeCreated]:
    """What the backward of a node made, in the step that an event began."""
    for _, event in timeline.select((NodeCreated, StepFinished), started):
        if isinstance(event, StepFinished) and event.node == node:
            return
        if isinstance(event, NodeCreated) and event.kind == "op":
            yield event
