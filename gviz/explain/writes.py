"""Who wrote to the memory of a tensor: an operation, or an optimizer whose own arithmetic is not recorded."""

from __future__ import annotations

from gviz.events import DataSet, OptimizerStarted, OptimizerStepped, StorageWritten
from gviz.site import Frame
from gviz.trace.timeline import Timeline

Write = StorageWritten | DataSet


def writer_of(write: Write) -> int:
    """The node that wrote; that of the tensor itself, or 0, where it was no operation."""
    return write.writer if isinstance(write, DataSet) else write.node


def is_unseen(timeline: Timeline, owner: int, writer: int) -> bool:
    """Whether a write was no recorded operation: it is told of a tensor itself, as an optimizer of PyTorch does."""
    return writer in (0, owner) or timeline.info(writer).created.kind != "op"


def step_of(timeline: Timeline, node: int, seq: int) -> OptimizerStarted | OptimizerStepped | None:
    """The step of an optimizer that wrote to a node by event `seq`, if it was one; of an older trace, as it ends."""
    phase = timeline.phase_at(seq)
    for step in timeline.contexts.steps_at(seq):
        said, ended = timeline.event(step.said), timeline.event(step.end) if step.end else None
        if isinstance(ended, OptimizerStepped) and node not in ended.parameters:
            continue
        if isinstance(said, OptimizerStarted):
            return said
        in_phase = phase is not None and phase.kind == "optimizer" and step.end <= phase.end
        if isinstance(said, OptimizerStepped) and in_phase:
            return said
    return None


def written_at(timeline: Timeline, n: int, write: StorageWritten) -> tuple[Frame, ...]:
    """Where the program was at a write: at the operation that wrote, or at the step of the optimizer."""
    node = write.node
    if node not in timeline.nodes:
        return ()
    step = step_of(timeline, node, n) if timeline.info(node).created.kind != "op" else None
    return timeline.info(node).frames if step is None else timeline.stack(step.stack)
