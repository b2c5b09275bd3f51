"""An optimizer step with gradients that are still multiplied by the loss scale."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

from gviz.events import (
    GradAccumulated,
    GradSet,
    OptimizerStepped,
)
from gviz.explain.backward_passes import loss_scale, pass_started
from gviz.explain.display_names import label
from gviz.explain.finding import Finding, Number
from gviz.explain.program_text import (
    receiver,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import (
    statement_instead,
)
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number

_LEAST_OF_A_SCALER = 64


def scaled_step(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first step with gradients that are still scaled, by a power of 2 as of a ``GradScaler``."""
    timeline = survey.timeline
    scaled: dict[int, int] = {}
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node, pass_nr=number):
                scale = timeline.once(loss_scale, number)
                if scale >= _LEAST_OF_A_SCALER and scale == 2 ** round(log2(scale)):
                    scaled[node] = number
            case GradSet(node=node):
                scaled.pop(node, None)
            case OptimizerStepped(parameters=parameters, raised="") if scaled.keys() & {*parameters}:
                node = next(node for node in parameters if node in scaled)
                yield _scaled_step_finding(
                    timeline, event, seq, node, scaled[node], timeline.once(loss_scale, scaled[node])
                )
                return


def _scaled_step_finding(
    timeline: Timeline, event: OptimizerStepped, seq: int, node: int, pass_nr: int, scale: float
) -> Finding:
    frames, started = timeline.stack(event.stack), pass_started(timeline, pass_nr)
    call = next(iter(timeline.stack(started.stack)), None) if started is not None else None
    at = frames[0] if frames else None
    text = f"this step uses gradients still multiplied by the loss scale, {number(scale)}"
    part = Finding("used", f"nothing has divided the .grad of {label(timeline, node)} since backward", seq, node)
    fix = "scaler.step(optimizer), which divides them first, and then scaler.update()"
    scaler, stepped = receiver(timeline, call, "scale"), receiver(timeline, at, "step")
    edit = statement_instead(timeline, at, f"{scaler}.step({stepped})") if scaler and stepped else None
    numbers = (Number("loss scale", scale),)
    return Finding("scaled-step", text, seq, node, (part,), fix, at, numbers, suspected=True, edit=edit)
