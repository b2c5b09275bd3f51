"""Who wrote to the memory of a tensor: an operation, or an optimizer whose own arithmetic is not recorded."""

from __future__ import annotations

from gviz.events import OptimizerStepped
from gviz.trace.timeline import Timeline


def is_unseen(timeline: Timeline, owner: int, writer: int) -> bool:
    """Whether a write was no recorded operation: it is told of a tensor itself, as an optimizer of PyTorch does."""
    return writer in (0, owner) or timeline.info(writer).created.kind != "op"


def step_of(timeline: Timeline, node: int, seq: int) -> OptimizerStepped | None:
    """The step of an optimizer that wrote to a node by event `seq`, if it was one; it is told after its writes."""
    phase = timeline.phase_at(seq)
    if phase is None or phase.kind != "optimizer":
        return None
    steps = (event for _, event in timeline.select((OptimizerStepped,), seq, phase.end + 1))
    return next((step for step in steps if isinstance(step, OptimizerStepped) and node in step.parameters), None)
