"""A gradient that was cleared before the step that was to use it."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import DataSet, GradAccumulated, GradSet, OptimizerStepped, StorageWritten
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import label, made_at
from gviz.explain.survey import Survey
from gviz.trace.timeline import Timeline


def found(survey: Survey) -> Iterator[Finding | None]:
    """The first step of an optimizer that met only gradients which had just been cleared."""
    filled: dict[int, int] = {}
    cleared: dict[int, int] = {}
    owners: dict[int, int] = {}
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped, StorageWritten, DataSet):
        yield None
        match event:
            case GradAccumulated(node=node) if node in survey.nodes:
                filled[node] = seq
                owners[survey.nodes[node].created.outputs[0].storage] = node
                cleared.pop(node, None)
            case GradSet(node=node, how="none" | "zero") if node in filled:
                cleared[node] = seq
            case OptimizerStepped(raised="", parameters=parameters) if cleared and cleared.keys() >= {*parameters}:
                yield _finding(survey, seq, event, *min(cleared.items(), key=lambda pair: pair[1]), filled)
                return
            case StorageWritten(storage=storage) if owners.get(storage, 0) not in cleared:  # updated by hand
                filled.pop(owners.get(storage, 0), None)
            case DataSet(node=node) if node not in cleared:
                filled.pop(node, None)
            case OptimizerStepped():
                filled.clear()
                cleared.clear()


def _finding(
    survey: Survey, seq: int, step: OptimizerStepped, node: int, cleared: int, filled: dict[int, int]
) -> Finding:
    timeline = survey.timeline
    frames = timeline.stack(step.stack)
    name = label(timeline, node)
    text = f"the step{made_at(frames)} has nothing to go by: the .grad of {name} was cleared before it"
    parts = (
        Finding("accumulated", f"backward had brought the .grad of {name} here", filled[node], node),
        Finding("cleared", f"it was cleared{_at(timeline, cleared)}, and no backward came after", cleared, node),
    )
    fix = "zero_grad() before backward(), or after step()"
    return Finding("cleared-early", text, seq, node, parts, fix, frames[0] if frames else None)


def _at(timeline: Timeline, cleared: int) -> str:
    event = timeline.event(cleared)
    return (made_at(timeline.stack(event.stack)) if isinstance(event, GradSet) else "") or " here"


CLEARED_EARLY = Kind("cleared-early", "error", "gradients that were cleared before a step could use them", find=found)
