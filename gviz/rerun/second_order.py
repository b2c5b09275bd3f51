"""What is known about the second derivatives of a function of the program, and why not more.

They are the derivatives of its backward, which is recorded if a pass keeps its graph (`create_graph`). A backward that
uses an input as a constant sends nothing back to it, which is wrong if its result depends on that input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gviz import emit
from gviz.errors import GvizError
from gviz.events import BackwardStarted, NodeCreated, StepFinished, StepStarted
from gviz.rerun.finite_differences import probe_of
from gviz.trace.timeline import Timeline

_ERROR = "error"
"""The operation that once_differentiable appends to the result; it raises an error if that is differentiated."""


@dataclass(frozen=True, slots=True)
class SecondOrder:
    """Whether second derivatives of a call are certainly wrong, and why, or why they were not checked."""

    verdict: Literal["wrong", "not tried"]
    why: str


_NO_GRAPH = SecondOrder("not tried", "no pass with create_graph went through it")
_ONCE = SecondOrder("not tried", "its backward ran without a graph, as under once_differentiable or no_grad")
_SAVED = SecondOrder("not tried", "torch.autograd.gradgradcheck(f, inputs) in the program tries them")
_CONSTANT = SecondOrder(
    "wrong",
    "what it is to send changes with its inputs, and its backward used none with its graph (saved_tensors)",
)


FIRST_ORDER_DIFFERS = SecondOrder("not tried", "the first ones differ")
"""The answer if the first derivatives are already wrong."""


def second_order(timeline: Timeline, node: int) -> SecondOrder:
    """Return what is known about the second derivatives of a call of a function of the program."""
    graphs = {
        event.pass_nr
        for _, event in timeline.select((BackwardStarted,))
        if isinstance(event, BackwardStarted) and event.create_graph
    }
    for started in timeline.events_of(node):
        event = timeline.event(started)
        if isinstance(event, StepStarted) and event.pass_nr in graphs:
            return _second_order_of_step(timeline, node, list(_operations_of(timeline, node, started)))
    return _NO_GRAPH


def _second_order_of_step(timeline: Timeline, node: int, created: Sequence[NodeCreated]) -> SecondOrder:
    """Return what is known from the operations of its backward in a pass that keeps its graph."""
    with_graph = any(one.requires_grad for one in created if timeline.op(one.op).name != _ERROR)
    if not with_graph and any(one.switched_off for one in created):
        return _ONCE
    own = {node, *(edge[0] for edge in timeline.info(node).created.inputs)}
    if any(edge[0] in own or not edge[0] for one in created for edge in one.inputs):  # or their origin is unknown
        return _SAVED
    try:
        return _CONSTANT if _depends_on_inputs(timeline, node) else _SAVED
    except GvizError:  # it cannot be run again
        return _SAVED


def _operations_of(timeline: Timeline, node: int, started: int) -> Iterator[NodeCreated]:
    """Yield the operations of a node's backward, in the step that an event began."""
    for _, event in timeline.select((NodeCreated, StepFinished), started):
        if isinstance(event, StepFinished) and event.node == node:
            return
        if isinstance(event, NodeCreated) and event.kind == "op":
            yield event


# Whether the outgoing gradient of a rule depends on the inputs

_FAR, _STEP = 0.1, 1e-6
_MOST = 16
"""The number of tested elements of each input."""

_CLOSE = 1e-3


def _depends_on_inputs(timeline: Timeline, node: int) -> bool:
    """Return whether the gradients of inputs that require one change when those inputs change.

    Raises GvizError if no pass went through the node, its numbers were not stored, or it cannot be run on its own.
    """
    operation, _ = probe_of(timeline, node, len(timeline))
    edges, arrays = operation.info.created.inputs, list(operation.arrays)
    slots = [slot for slot, edge in enumerate(edges) if edge[0] and timeline.info(edge[0]).created.requires_grad]
    slots = [slot for slot in slots if arrays[slot].dtype.kind == "f" and np.isfinite(arrays[slot]).all()]
    for slot in slots:
        arrays[slot] = arrays[slot] + _FAR * (1 + np.abs(arrays[slot]))
    elsewhere = replace(operation, arrays=arrays)
    with emit.silence():
        for slot in slots:
            places = range(min(arrays[slot].size, _MOST))
            here, there = (each.slopes([slot], places, _STEP).mean(axis=1) for each in (operation, elsewhere))
            size = max(np.abs(here).max(initial=0.0), np.abs(there).max(initial=0.0))
            if not np.allclose(here, there, rtol=0, atol=_CLOSE * size, equal_nan=True):
                return True
    return False
