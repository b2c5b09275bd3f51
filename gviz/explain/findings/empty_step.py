"""A step of an optimizer that found nothing to do, as backward was forgotten or everything is frozen."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import OptimizerStepped
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, made_at
from gviz.explain.neglected import steps_by
from gviz.explain.survey import Survey


def found(survey: Survey) -> Iterator[Finding]:
    """The first steps with parameters that are in use, in a program that has called no backward at all."""
    if survey.passes:
        return
    for seq in steps_by(survey.timeline, survey.end).idle:
        step = survey.timeline.event(seq)
        if isinstance(step, OptimizerStepped) and step.skipped:
            yield _finding(survey, seq, step)


def _finding(survey: Survey, seq: int, step: OptimizerStepped) -> Finding:
    timeline, moment = survey.timeline, survey.timeline.at(seq)
    frames = timeline.stack(step.stack)
    frozen = not any(state and state.requires_grad for state in moment.states(step.skipped))
    text = f"the step{made_at(frames)} updates nothing: "
    if frozen:
        text += f"all {len(step.skipped)} parameters are frozen" if len(step.skipped) > 1 else "its parameter is frozen"
        fix = "requires_grad_(True) on what is to learn, and backward() before the step"
    else:
        text += "no backward pass has run, so there is no gradient"
        fix = "call backward() on the loss before it"
    first = step.skipped[0]
    has = f"it has {label(timeline, first)}" + (f" and {len(step.skipped) - 1} more" * (len(step.skipped) > 1))
    parts = (Finding("beside", has, timeline.nodes.born(first), first, at=innermost(timeline.info(first))),)
    return Finding("empty-step", text, seq, first, parts, fix, frames[0] if frames else None)


EMPTY_STEP = Kind("empty-step", "warning", "a step of an optimizer without any backward pass before it", find=found)
