"""Clipping at the wrong time: before the backward pass, before unscaling, or after the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from gviz.events import (
    BackwardStarted,
    DataSet,
    Event,
    GradAccumulated,
    GradSet,
    NodeCreated,
    OptimizerStepped,
    StorageWritten,
    Warned,
)
from gviz.explain.backward_passes import loss_scale
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.errors.optimizer_parameters import used_up
from gviz.explain.findings.training_loop.gradient_clearing import in_short
from gviz.explain.parameter_updates import next_step
from gviz.explain.program_text import arguments, called_function, called_name, frame_of, receiver, statement_at
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import Edit, before, generator_read, moved
from gviz.explain.source_frames import at_text
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import shown

# Gradients that are clipped before backward: the clipping has nothing to clip

_READ = (NodeCreated, GradAccumulated, GradSet, OptimizerStepped, StorageWritten, DataSet)
CLIPPING = ("clip_grad_norm_", "clip_grad_value_")


# One state for the whole program, in two variables: `clipped` is the clipping that found no gradient at all, `late` is
# the clipping after which backward brought one.
# |
#   clipping without gradients -> clipped;  clipped + backward -> late;  late + update -> the finding
#   clipping with gradients -> neither


def clipped_early(survey: Survey) -> Iterator[Finding | None]:
    """Yield clippings that had nothing to clip or came before the gradients, and one of gradients still scaled."""
    yield from _clipped_nothing(survey)
    yield from _clipped_unseen(survey)
    yield from _clipped_before_backward(survey)
    yield from _clipped_while_scaled(survey)


def _clipped_nothing(survey: Survey) -> Iterator[Finding]:
    """Yield the clippings that were given no parameters, because their generator was used up: PyTorch warns of them."""
    timeline = survey.timeline
    for seq, event in timeline.select((Warned,)):
        frames = timeline.stack(event.stack)
        at = frames[0] if frames else None
        if _EMPTY_CLIPPING not in event.message or called_function(timeline, at) not in CLIPPING:
            continue
        text, read = "this clipping has nothing to clip: it gets no parameters", generator_read(timeline, at)
        if read is None:
            fix = "give it a list of the parameters, or net.parameters() anew each time"
            yield Finding("clipped-early", text, seq, fix=fix, at=at)
            continue
        text = titled("nothing to clip: {} is a generator that was already consumed", shown(read.name))
        fix = f"make it a list, which can be read again: {shown(read.name)} = list(...)"
        yield Finding("clipped-early", text, seq, 0, (used_up(read, seq),), fix, at, edit=read.edit)


def _clipped_unseen(survey: Survey) -> Iterator[Finding]:
    """Yield clippings next to a step that have touched no gradient, because they were given a generator used up.

    PyTorch warns only of some generators: not of ``filter`` and ``map``.
    """
    timeline = survey.timeline
    warned = {(at.path, at.line) for _, event in timeline.select((Warned,)) for at in timeline.stack(event.stack)[:1]}
    active = {event.stack for _, event in survey.select(GradSet)}
    lines = {(at.path, at.line) for stack in active for at in timeline.stack(stack)[:1]} | warned
    steps = {event.stack: seq for seq, event in survey.select(OptimizerStepped) if event.parameters}
    for stack, seq in steps.items():
        for at in _calls_in_block(timeline, next(iter(timeline.stack(stack)), None), *CLIPPING):
            read = generator_read(timeline, at) if (at.path, at.line) not in lines else None
            if read is None or read.first is None:
                continue
            lines.add((at.path, at.line))
            text = titled("nothing to clip: {} is a generator that was already consumed", shown(read.name))
            fix = f"make it a list, which can be read again: {shown(read.name)} = list(...)"
            yield Finding("clipped-early", text, seq, 0, (used_up(read, seq),), fix, at, edit=read.edit)


_EMPTY_CLIPPING = "`parameters` is an empty generator"


def _clipped_while_scaled(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first clipping of gradients that are still multiplied by the scale of the loss."""
    timeline, is_clipping = survey.timeline, partial(survey.timeline.once, clips)
    scaled: dict[int, tuple[int, float]] = {}
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case GradAccumulated(node=node, pass_nr=number):
                scale = timeline.once(loss_scale, number)
                if scale > 1:
                    scaled[node] = seq, scale
            case GradSet(node=node) if node in scaled:
                since, scale = scaled.pop(node)
                step = next_step(timeline, node, seq)
                if step and is_clipping(event.stack) and _is_divided_later(timeline, node, seq, step):
                    yield _scaled_finding(timeline, node, seq, since, scale)
                    return
            case OptimizerStepped():
                scaled.clear()


def _is_divided_later(timeline: Timeline, node: int, seq: int, step: int) -> bool:
    """Return whether a gradient is changed again between its clipping and the step, as ``unscale_`` does."""
    return any(seq < n < step and isinstance(timeline.event(n), GradSet) for n in timeline.events_of(node))


def _scaled_finding(timeline: Timeline, node: int, seq: int, since: int, scale: float) -> Finding:
    event = timeline.event(seq)
    frames = timeline.stack(event.stack) if isinstance(event, GradSet) else ()
    text = f"gradients are clipped while multiplied by the loss scale, {number(scale)}"
    before, after = (timeline.at(n).state(node) for n in (seq - 1, seq))
    had = before.outputs[0].grad if before is not None else None
    has = after.outputs[0].grad if after is not None else None
    parts = (
        Finding("accumulated", f"the .grad of {label(timeline, node)} was {in_short(had)}", since, node),
        Finding(
            "used",
            f"clipping made it {in_short(has)}, which is then divided by {number(scale)}: almost nothing is left",
            seq,
            node,
        ),
    )
    fix = "scaler.unscale_(optimizer) before the clipping"
    numbers, at = (Number("loss scale", scale),), frames[0] if frames else None
    step = next_step(timeline, node, seq)
    edit = _unscaling_edit(timeline, step, at)
    return Finding("clipped-early", text, seq, node, parts, fix, at, numbers, edit=edit)


def _unscaling_edit(timeline: Timeline, step: int, at: Frame | None) -> Edit | None:
    """Return an edit with ``scaler.unscale_(optimizer)`` before the clipping.

    The names are those of the line ``scaler.step(optimizer)``.
    """
    event = timeline.event(step) if step else None
    frame = next(iter(timeline.stack(event.stack)), None) if isinstance(event, OptimizerStepped) else None
    scaler, names = receiver(timeline, frame, "step"), arguments(timeline, frame, "step")
    return before(timeline, at, f"{scaler}.unscale_({names[0]})") if scaler and names else None


def _clipped_before_backward(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first update whose gradients came after the clipping, which found none."""
    is_clipping = partial(survey.timeline.once, clips)
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
            case _ if late and _is_update(event, learned, filled):
                yield _clipped_finding(survey.timeline, late, seq)
                return


def _is_update(event: Event, learned: set[int], filled: set[int]) -> bool:
    """Return whether an event changes a leaf: one in a memory of `learned`, or one with a gradient."""
    match event:
        case StorageWritten(storage=storage):
            return storage in learned
        case DataSet(node=node):
            return node in filled
    return isinstance(event, OptimizerStepped)


def clipped_late(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first clipping after a step whose gradients are cleared before the next step could use them."""
    timeline, is_clipping = survey.timeline, partial(survey.timeline.once, clips)
    stepped: dict[int, int] = {}
    clipped: dict[int, int] = {}
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped):
        yield None
        match event:
            case OptimizerStepped(parameters=parameters):
                stepped |= dict.fromkeys(parameters, seq)
                for node in parameters:
                    clipped.pop(node, None)
            case GradAccumulated(node=node):
                stepped.pop(node, None)
            case GradSet(node=node, how="none" | "zero"):
                if node in clipped and node in stepped:
                    yield _late_finding(timeline, node, clipped[node], stepped[node])
                    return
            case GradSet(node=node) if node in stepped and is_clipping(event.stack) and _changes(timeline, seq, node):
                clipped[node] = seq


def _changes(timeline: Timeline, seq: int, node: int) -> bool:
    """Return whether an event changes a ``.grad``: a clipping to a large norm only measures it."""
    before, after = (timeline.at(n).state(node) for n in (seq - 1, seq))
    return before is None or after is None or before.outputs[0].grad != after.outputs[0].grad


def _late_finding(timeline: Timeline, node: int, seq: int, step: int) -> Finding:
    event, before = timeline.event(seq), timeline.event(step)
    assert isinstance(event, GradSet)
    assert isinstance(before, OptimizerStepped)
    frames, stepped = timeline.stack(event.stack), timeline.stack(before.stack)
    text = "gradients are clipped after the step, and cleared before another uses them"
    part = Finding(
        "used", f"the step{at_text(stepped)} used the .grad of {label(timeline, node)} unclipped", step, node
    )
    at, last = (next(iter(one), None) for one in (frames, stepped))
    edit = moved(timeline, at, last, ahead=True)
    fix = "clip between backward() and step()"
    return Finding("clipped-late", text, seq, node, (part,), fix, at, edit=edit)


def clips(timeline: Timeline, stack: int) -> bool:
    """Return whether the source line calls one of PyTorch's functions that clip gradients."""
    frames = timeline.stack(stack)
    return bool(frames) and called_function(timeline, frames[0]) in CLIPPING


def _clipped_finding(timeline: Timeline, clipped: int, used: int) -> Finding:
    event = timeline.event(clipped)
    assert isinstance(event, NodeCreated | GradSet)
    frames = timeline.stack(event.stack)
    text = "this clipping has nothing to clip: backward has brought no gradient yet"
    parts = (Finding("used", "what backward brought after it is used as it is", used),)
    fix = "clip between backward() and the update"
    started = next((one for seq, one in reversed(_passes(timeline, clipped, used))), None)
    call = next(iter(timeline.stack(started.stack)), None) if started is not None else None
    edit = moved(timeline, frames[0], call)
    return Finding("clipped-early", text, clipped, event.node, parts, fix, frames[0], edit=edit)


def _passes(timeline: Timeline, start: int, end: int) -> list[tuple[int, BackwardStarted]]:
    """Return the backward passes that began between two events."""
    return list(timeline.select((BackwardStarted,), start, end))


# What the program's source code shows


def _calls_in_block(timeline: Timeline, at: Frame | None, *names: str) -> Iterator[Frame]:
    """Yield the lines that only call one of these functions, in the block of the statement at a frame."""
    source = statement_at(timeline, at)
    if source is None or at is None:
        return
    text, here = source
    for one in here.block:
        is_call = isinstance(one, ast.Expr | ast.Assign) and isinstance(one.value, ast.Call)
        if is_call and any(isinstance(part, ast.Call) and called_name(part) in names for part in ast.walk(one)):
            yield frame_of(at, one.lineno, text)
