"""A step of an optimizer that found nothing to do, as backward was forgotten or everything is frozen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gviz.events import OptimizerStepped
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, made_at
from gviz.explain.neglected import all_frozen, steps_by, why_nothing
from gviz.explain.survey import Survey
from gviz.plain_text import file_line, shown
from gviz.site import Frame
from gviz.trace.timeline import Timeline

_NAMED = re.compile(r"^[ \t]*([A-Za-z_][\w.\[\]]*\.backward)[ \t]*(?:#.*)?$", re.MULTILINE)


def found(survey: Survey) -> Iterator[Finding]:
    """Steps that found no gradient: of frozen parameters, and any while the program has called no backward at all."""
    for seq in steps_by(survey.timeline, survey.end).idle:
        step = survey.timeline.event(seq)
        if not isinstance(step, OptimizerStepped) or not step.skipped:
            continue
        frozen = all_frozen(survey.timeline.at(seq), step)
        if frozen or not survey.passes:
            yield _finding(survey, seq, step, frozen=frozen)


def _finding(survey: Survey, seq: int, step: OptimizerStepped, *, frozen: bool) -> Finding:
    timeline = survey.timeline
    frames = timeline.stack(step.stack)
    text = f"the step{made_at(frames)} updates nothing: "
    if frozen:
        text += why_nothing(timeline.at(seq), step)
        then = "no optimizer for the rest" if survey.passes else "backward() before the step"
        fix = f"requires_grad_(True) on what is to learn, and {then}"
    else:
        text += "no backward pass has run, so there is no gradient"
        fix = _not_called(timeline, frames) or "call backward() on the loss before it"
    first = step.skipped[0]
    has = f"it has {label(timeline, first)}" + (f" and {len(step.skipped) - 1} more" * (len(step.skipped) > 1))
    parts = (Finding("beside", has, timeline.nodes.born(first), first, at=innermost(timeline.info(first))),)
    at, suspected = frames[0] if frames else None, bool(survey.passes)
    return Finding("empty-step", text, seq, first, parts, fix, at, suspected=suspected)


def _not_called(timeline: Timeline, frames: Sequence[Frame]) -> str:
    """What to write where the file of the step has a line that names ``backward`` without calling it."""
    text = (timeline.source(frames[0].path) if frames else None) or ""
    named = _NAMED.search(text)
    if named is None:
        return ""
    place = file_line(frames[0].path, text.count("\n", 0, named.start()) + 1)
    return f"{shown(named[1])}() at {place}, which names it and does not call it"


EMPTY_STEP = Kind(
    "empty-step",
    "warning",
    "a step of an optimizer without any backward pass before it, or of what is frozen",
    find=found,
)
