"""Gradients clipped before backward brings them: the clipping has nothing to clip."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gviz.events import DataSet, Event, GradAccumulated, GradSet, NodeCreated, OptimizerStepped, StorageWritten
from gviz.explain.expressions import called
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import made_at
from gviz.explain.survey import Survey
from gviz.trace.timeline import Timeline

_READ = (NodeCreated, GradAccumulated, GradSet, OptimizerStepped, StorageWritten, DataSet)
_CLIPPING = ("clip_grad_norm_", "clip_grad_value_")


def found(survey: Survey) -> Iterator[Finding | None]:
    """The first update whose gradients came after the clipping, which met none."""
    is_clipping = partial(survey.timeline.once, _clips)
    filled: set[int] = set()
    learned: set[int] = set()
    clipped = late = 0
    for seq, event in survey.select(*_READ):
        yield None
        if isinstance(event, NodeCreated | GradSet) and is_clipping(event.stack):
            clipped, late = (0, 0) if filled else (clipped or seq, late)
        match event:
            case GradSet(node=node, how="none" | "zero"):
                filled.discard(node)
            case GradSet(node=node):
                filled.add(node)
            case GradAccumulated(node=node) if node in survey.nodes:
                filled.add(node)
                learned.update(output.storage for output in survey.nodes[node].created.outputs)
                clipped, late = 0, late or clipped
            case _ if late and _updates(event, learned, filled):
                yield _finding(survey.timeline, late, seq)
                return


def _updates(event: Event, learned: set[int], filled: set[int]) -> bool:
    """Whether an event says that a leaf was changed: one in the memories of `learned`, or with a gradient."""
    match event:
        case StorageWritten(storage=storage):
            return storage in learned
        case DataSet(node=node):
            return node in filled
    return isinstance(event, OptimizerStepped)


def _clips(timeline: Timeline, stack: int) -> bool:
    """Whether the line that was running calls one of PyTorch's functions that clip gradients."""
    frames = timeline.stack(stack)
    return bool(frames) and called(timeline, frames[0]) in _CLIPPING


def _finding(timeline: Timeline, clipped: int, used: int) -> Finding:
    event = timeline.event(clipped)
    assert isinstance(event, NodeCreated | GradSet)
    frames = timeline.stack(event.stack)
    text = f"the clipping{made_at(frames)} has nothing to clip: no gradient is there before backward brings it"
    parts = (Finding("used", "what backward brought after it is used as it is", used),)
    fix = "clip between backward() and the update"
    return Finding("clipped-early", text, clipped, event.node, parts, fix, frames[0])


CLIPPED_EARLY = Kind(
    "clipped-early", "warning", "gradients that were clipped before a pass has brought them", find=found
)
