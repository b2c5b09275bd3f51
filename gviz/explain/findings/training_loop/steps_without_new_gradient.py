"""Optimizer steps that use no new gradient: without a backward pass, of frozen parameters only, or repeated."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from gviz.events import DataSet, GradAccumulated, GradSet, OptimizerStepped, StorageWritten
from gviz.explain.display_names import label
from gviz.explain.finding import Finding, Number
from gviz.explain.parameter_updates import all_frozen, step_of, steps_by, why_nothing
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import removed
from gviz.explain.source_frames import at_text, innermost
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import file_line, shown

# A step that found nothing to do: backward was forgotten, or everything is frozen

_NAMED = re.compile(r"^[ \t]*([A-Za-z_][\w.\[\]]*\.backward)[ \t]*(?:#.*)?$", re.MULTILINE)


def empty_step(survey: Survey) -> Iterator[Finding]:
    """Yield steps that found no gradient because their parameters are frozen, or no backward has ever run."""
    for seq in steps_by(survey.timeline, survey.end).idle:
        step = survey.timeline.event(seq)
        if not isinstance(step, OptimizerStepped) or not step.skipped:
            continue
        frozen = all_frozen(survey.timeline.at(seq), step)
        if frozen or not survey.passes:
            yield _empty_finding(survey, seq, step, frozen=frozen)


def _empty_finding(survey: Survey, seq: int, step: OptimizerStepped, *, frozen: bool) -> Finding:
    timeline = survey.timeline
    frames = timeline.stack(step.stack)
    text, uncalled = "this step updates nothing: ", ""
    if frozen:
        text += why_nothing(timeline.at(seq), step)
        then = "no optimizer for the rest" if survey.passes else "backward() before the step"
        fix = f"requires_grad_(True) on what is to learn, and {then}"
    else:
        text += "no backward pass has run"
        uncalled = _uncalled_backward(timeline, frames)
        fix = (
            f"{uncalled}, which names it and does not call it" if uncalled else "call backward() on the loss before it"
        )
    first = step.skipped[0]
    has = f"it has {label(timeline, first)}" + (f" and {len(step.skipped) - 1} more" * (len(step.skipped) > 1))
    parts: tuple[Finding, ...] = (
        Finding("beside", has, timeline.nodes.born(first), first, at=innermost(timeline.info(first))),
    )
    if uncalled:
        parts += (Finding("uncalled", f"not called: {uncalled}", seq),)
    at, suspected = frames[0] if frames else None, bool(survey.passes)
    return Finding("empty-step", text, seq, first, parts, fix, at, suspected=suspected)


def _uncalled_backward(timeline: Timeline, frames: Sequence[Frame]) -> str:
    """Return the call and its place, ``loss.backward() at train.py:9``, if the file only names ``backward`` there."""
    text = (timeline.source(frames[0].path) if frames else None) or ""
    named = _NAMED.search(text)
    if named is None:
        return ""
    return f"{shown(named[1])}() at {file_line(frames[0].path, text.count(chr(10), 0, named.start()) + 1)}"


# Two steps with one gradient: backward has brought nothing new in between
#
# Steps within a step are those of an optimizer that wraps another, and a closure may step by itself: only steps that
# follow each other count. A gradient that the program has set by itself since is a new one.


def repeated_step(survey: Survey) -> Iterator[Finding | None]:
    """Yield calls of ``step()`` that use only gradients that an earlier step has used already."""
    timeline = survey.timeline
    used: dict[int, int] = {}
    first: dict[int, tuple[int, int]] = {}
    counts: defaultdict[int, int] = defaultdict(int)
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node):
                used[node] = 0
            case GradSet(node=node):
                used.pop(node, None)
            case OptimizerStepped(parameters=parameters, raised="", stack=stack) if parameters:
                before = {used.get(node, 0) for node in parameters}
                is_own = 0 not in before and not any(_is_nested_step(timeline, seq, other) for other in before)
                if is_own and not _is_written_back(survey, parameters[0], max(before), seq):
                    first.setdefault(stack, (seq, max(before)))
                    counts[stack] += 1
                used |= {node: seq for node in parameters if node in used}
    for stack, (seq, earlier) in first.items():
        yield _repeated_finding(survey, seq, earlier, counts[stack])


def _is_written_back(survey: Survey, parameter: int, earlier: int, seq: int) -> bool:
    """Return whether the program wrote to a parameter between two steps, as a search that tries another length does."""
    record = survey.nodes.get(parameter)
    storages = {output.storage for output in record.created.outputs} if record is not None else set()
    timeline = survey.timeline
    started = next((step.said for step in timeline.contexts.steps_at(seq)), seq)
    return any(
        (isinstance(event, StorageWritten) and event.storage in storages)
        or (isinstance(event, DataSet) and event.node == parameter)
        for n, event in timeline.select((StorageWritten, DataSet), earlier + 1, started)
        if step_of(timeline, parameter, n) is None
    )


def _is_nested_step(timeline: Timeline, seq: int, earlier: int) -> bool:
    """Return whether the step that event `seq` ends began before event `earlier`, the end of another."""
    return any(step.said < earlier for step in timeline.contexts.steps_at(seq))


def _repeated_finding(survey: Survey, seq: int, earlier: int, count: int) -> Finding:
    timeline = survey.timeline
    step, before = timeline.event(seq), timeline.event(earlier)
    assert isinstance(step, OptimizerStepped)
    assert isinstance(before, OptimizerStepped)
    node = step.parameters[0]
    at, first = (next(iter(timeline.stack(event.stack)), None) for event in (step, before))
    often = f", {count} times" if count > 1 else ""
    text = f"this step uses gradients that an earlier step has used{often}"
    since = f"no backward has run since the step{at_text(timeline.stack(before.stack))} used the .grad of"
    part = Finding("used", f"{since} {label(timeline, node)}", earlier, node)
    same = at is not None and first is not None and (at.path, at.line) == (first.path, first.line)
    fix = "one step() after each backward()"
    edit = None if same or step.kind != before.kind else removed(timeline, at)
    numbers = (Number("repeated steps", count),)
    return Finding("repeated-step", text, seq, node, (part,), fix, at, numbers, suspected=count < 2, edit=edit)
