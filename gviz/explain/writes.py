"""Who wrote to the memory of a tensor: an operation, or an optimizer whose own arithmetic is not recorded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from gviz.events import DataSet, Event, OptimizerStarted, OptimizerStepped, StorageWritten
from gviz.events.options import Option, options_in
from gviz.explain.options import options_text
from gviz.plain_text import shown
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
    return next((said for said, _ in _steps_of(timeline, node, seq)), None)


def options_of(timeline: Timeline, node: int, seq: int) -> dict[str, Option]:
    """What that step had its group of parameters set to; empty where that is not told."""
    for said, ended in _steps_of(timeline, node, seq):
        if isinstance(said, OptimizerStarted):
            return options_in(said.options, _group_of(node, said, ended))
    return {}


def by_step(timeline: Timeline, node: int, seq: int) -> str:
    """That step by its optimizer and options: ``SGD (lr=0.15, momentum=0.9)``; empty if none wrote to the node."""
    step, told = step_of(timeline, node, seq), options_text(options_of(timeline, node, seq))
    return f"{shown(step.kind)}{f' ({told})' * bool(told)}" if step is not None else ""


def _group_of(node: int, said: OptimizerStarted, ended: Event | None) -> int:
    """The group that a parameter is in, -1 if that is not known."""
    if len(said.options) < 2:
        return 0
    if not isinstance(ended, OptimizerStepped):
        return -1
    until = list(accumulate(ended.per_group))
    return bisect_right(until, ended.parameters.index(node)) if until else -1


def _steps_of(
    timeline: Timeline, node: int, seq: int
) -> Iterator[tuple[OptimizerStarted | OptimizerStepped, Event | None]]:
    """The steps that may have written to a node by event `seq`: what tells of each first, and its end."""
    phase = timeline.phase_at(seq)
    for step in timeline.contexts.steps_at(seq):
        said, ended = timeline.event(step.said), timeline.event(step.end) if step.end else None
        if isinstance(ended, OptimizerStepped) and node not in ended.parameters:
            continue
        if isinstance(said, OptimizerStarted):
            yield said, ended
        in_phase = phase is not None and phase.kind == "optimizer" and step.end <= phase.end
        if isinstance(said, OptimizerStepped) and in_phase:
            yield said, ended


def written_at(timeline: Timeline, n: int, write: StorageWritten) -> tuple[Frame, ...]:
    """Where the program was at a write: at the operation that wrote, or at the step of the optimizer."""
    node = write.node
    if node not in timeline.nodes:
        return ()
    step = step_of(timeline, node, n) if timeline.info(node).created.kind != "op" else None
    return timeline.info(node).frames if step is None else timeline.stack(step.stack)
