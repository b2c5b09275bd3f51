"""The origin of a nan or inf, and its path from there.

Idea. Start at a bad number and go back: from a value to the bad input of its operation, from a gradient to the bad
contribution, from a written tensor to its writer. Each step is earlier in time, so the walk ends: at an operation, a
rule or a write that made a bad number from good ones.

Example. ``loss`` is nan. Its input ``p * p.log()`` is nan, whose input ``p.log()`` is -inf, whose input ``p`` has a 0.
The inf first appears in ``log``; "it became nan in ``mul``" is a fact on the path.

Limits. The walk ends where the recording does: at the start of a kept part, or next to unrecorded modules. Then the
finding says so. An infinity in a mask is deliberate and is not reported.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from operator import attrgetter
from typing import Literal, TypeVar

import numpy as np

from gviz.events import (
    BackwardStarted,
    DataSet,
    GradAccumulated,
    GradCaptured,
    GradFlowed,
    GradSet,
    NodeCreated,
    OptimizerStarted,
    OptimizerStepped,
    StorageWritten,
    grad_left,
)
from gviz.explain.backward_passes import factor_of_loss, growing_losses, loss_scale, pass_started, row_text
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.findings.gradient_values.exploding_recurrence import CLIP, exploding_recurrence
from gviz.explain.findings.gradient_values.harmless_nan import (
    goes_into_softmax,
    is_a_mask,
    is_harmless,
    is_looked_for,
)
from gviz.explain.findings.gradient_values.nan_arithmetic import (
    element_text,
    formula_text,
    meeting_numbers,
    no_labels,
    sent_at_element,
    too_short,
    undefined_step,
    undefined_there,
)
from gviz.explain.findings.gradient_values.nan_remedies import (
    DIVERGING,
    LEAPT,
    LEFT_OUT,
    NO_ELEMENTS,
    NO_LABELS,
    NONZERO_NORM,
    OPTIMIZER_IN_HALF,
    SAFE_INPUT,
    TOO_SHORT,
    is_beyond,
    is_branch_of_where,
    is_of_size,
    is_written,
    logarithm_remedy,
    overflow,
    overflow_fix,
    remedy_edit,
    usual_remedy,
    written_fix,
)
from gviz.explain.findings.training_loop.loss_trend import STANDARDIZE, large_features, parameter_leap
from gviz.explain.findings.training_loop.monitor_alarms import command_before
from gviz.explain.grad_history import CLEARED, GradWrite, write_at
from gviz.explain.iteration_words import iteration_called
from gviz.explain.node_question import Question
from gviz.explain.operation_sets import MASKING
from gviz.explain.parameter_updates import is_unseen, resumed_at, step_of, step_words
from gviz.explain.pass_contributions import arriving_gradient, rule_words
from gviz.explain.program_text import called_function, line_text
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import with_keyword
from gviz.explain.source_frames import at_text, innermost, own_frame
from gviz.explain.tracking import RECORD_ALL, ancestors, is_partial
from gviz.explain.value_computation import Operand, computation
from gviz.source.call_stack import Frame
from gviz.trace.event_log import expect
from gviz.trace.graph_state import Contribution, NodeInfo, OutputState
from gviz.trace.timeline import Moment, Timeline
from gviz.values.plain_text import clipped, shown
from gviz.values.value import Value
from gviz.values.value_text import BAD, bad_text, short


def bad_value(question: Question) -> Finding | None:
    """Return the origin of a bad value: back over bad inputs, writes in place, and through the ``.grad`` of a leaf.

    If the node sends a bad gradient at this moment, return the origin of that.
    """
    if question.topic == "sent":
        return _bad_contribution(question)
    first = _first_in_a_row(question)
    if first == question.node:
        return _origin(question.timeline, ("value", question.node, question.moment.n))
    born = question.timeline.nodes.born(first)
    finding = _origin(question.timeline, ("value", first, born))
    if question.timeline.dropped.replaces(born):
        return finding
    return replace(finding, parts=(_since(question, first), *finding.parts))


def _first_in_a_row(question: Question) -> int:
    """Return the first bad node in the unbroken row of bad nodes that the line of this node made.

    A mask is infinite on purpose: the row begins after the last mask.
    """
    timeline, origins, place = (
        question.timeline,
        question.timeline.nodes.origins,
        question.timeline.nodes.place_of(question.node),
    )
    if question.info.created.kind != "op" or not question.info.created.stack:
        return question.node
    same = (origins.stack[:place] == origins.stack[place]) & (origins.op[:place] == origins.op[place])
    first, masks = question.node, is_a_mask(timeline, question.node)
    for earlier in reversed(same.nonzero()[0].tolist()):
        node = timeline.nodes[earlier]
        outputs = timeline.info(node).created.outputs
        if not any(bad_text(output.value) for output in outputs) or is_a_mask(timeline, node) is not masks:
            break
        first = node
    return first


def _since(question: Question, first: int) -> Finding:
    timeline, born = question.timeline, question.timeline.nodes.born(first)
    nth = bisect_right(timeline.iterations, born, key=attrgetter("start"))
    bad = "nan" if "nan" in bad_text(question.output.value) else "inf"
    if timeline.info(first).iteration == question.info.iteration:
        text = (
            f"{label(timeline, question.node)} is {bad}, and what its line makes is nan or inf each time since #{first}"
        )
    else:
        since = f"{iteration_called(timeline)} {timeline.iterations[max(nth - 1, 0)].number:,}"
        text = f"{label(timeline, question.node)} is {bad} each time since {since}; the first is #{first}"
    return Finding("since", text, born, first, at=innermost(timeline.info(first)))


def bad_gradient(question: Question) -> Finding:
    """Return the origin of a bad gradient: back over bad contributions, to the rule or value that made the first."""
    return _origin(question.timeline, ("grad", question.node, question.moment.n))


def _bad_contribution(question: Question) -> Finding | None:
    event = question.moment.event
    if not isinstance(event, GradFlowed) or not bad_text(event.part):
        return None
    return _origin(question.timeline, ("grad", event.node, question.moment.n))


def _origin(timeline: Timeline, place: Place) -> Finding:
    """Return the origin of one bad number. If the recording has an earlier one, add where that is.

    So a nan of the fourth iteration is not called the first, where a nan of the first iteration led to no other.
    """
    finding, earliest = _trace_back(timeline, place), timeline.error_index.first_bad()
    if not 0 < earliest < finding.event:
        return finding
    first = _trace_back(timeline, _place_of(timeline, earliest))
    if not first.node or not finding.node or (first.node, first.kind) == (finding.node, finding.kind):
        return finding
    where = f"{iteration_called(timeline)} {timeline.iteration_at(first.event).number:,}"
    text = f"the first of all is in {label_at(timeline, first.node)}, in {where}"
    earlier = Finding("earlier-nan", text, first.event, first.node, at=first.at)
    own = re.sub("^the first (.+?) appears", r"this \1 appears first", finding.text)
    return replace(finding, text=own, parts=(*finding.parts, earlier))


def first_bad_number(survey: Survey) -> Iterator[Finding]:
    """Yield the first nan or inf that reached a loss or a ``.grad``; or else, suspected, one that did not.

    Loss scaling may produce a gradient that overflows and is discarded before any step uses it: a ``GradScaler`` skips
    that step, and tries a smaller scale. That is no finding if later steps were taken.
    """
    timeline, seq = survey.timeline, survey.timeline.error_index.first_bad()
    skipped = _skipped_passes(survey) if seq else frozenset()
    first = next(_reached(survey, skipped), None) if seq else None
    if first is None and timeline.cut_off:  # by the nan with which it would have ended
        first = _place_of(timeline, len(timeline))
    if first is not None:
        finding = _trace_back(timeline, first)
        yield finding
        if finding.fix not in (DIVERGING, LEAPT, STANDARDIZE) and not finding.fix.startswith(
            CLIP
        ):  # one cause of all that follows
            yield from _further_sources(survey, skipped, finding)
    elif seq:
        stopped = _trace_back(timeline, _place_of(timeline, seq))
        if stopped.node and _overflows_by_scale(timeline, stopped.node):
            return
        if skipped and (stopped.kind == "nan-born-backward" or not stopped.text.startswith(_FIRST_NAN)):
            return
        is_meant = is_a_mask(timeline, stopped.node) or is_looked_for(timeline, stopped.node)
        if not is_meant and not is_harmless(survey, stopped):
            came_to = Finding("healed", _consequence(survey, stopped.event))
            yield replace(stopped, parts=(*stopped.parts, came_to), suspected=timeline.growing or bool(survey.passes))


def last_alarm(timeline: Timeline) -> str:
    """Return the last alarm of `gviz monitor` in words, with the iterations among which it began; else empty.

    Not every iteration is looked at. If the alarm is a nan or inf, those iterations of the range that are recorded
    whole show whether it had appeared before, appears in them, or comes later.
    """
    recorded = timeline.recorded_iterations
    if recorded is None or not recorded.alarms:
        return ""
    first, last = recorded.range_of_last_alarm
    whole = [(max(low, first), min(high, last)) for low, high in recorded.whole_ranges if low <= last and high >= first]
    if first < last and whole and re.search(r" is -?(nan|inf)", recorded.alarms[-1][1]):
        first, last = _narrowed(timeline, first, last, whole)
    return recorded.last_alarm_within(first, last)


def _narrowed(timeline: Timeline, first: int, last: int, whole: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the part of a range of iterations in which the first bad number appeared, by the `whole` ones of it."""
    survey = Survey(timeline)
    reached = next(_reached(survey, _skipped_passes(survey)), None)
    origin = _trace_back(timeline, reached).event if reached is not None else 0
    resumed = resumed_at(timeline, origin) if origin else 0
    number = resumed or (timeline.iteration_at(origin).number if origin else last)
    if origin and not resumed:
        return (number, number) if first <= number <= last else (first, last)
    first = max([first, *(min(high + 1, number) for low, high in whole if low < number)])
    return first, max(first, min(last, resumed - 1)) if resumed else last


_MOST_SOURCES, _MOST_TRACED = 5_000, 20
"""The most operations, and the most losses and gradients, among which further sources are searched."""


def _further_sources(survey: Survey, skipped: frozenset[int], first: Finding) -> Iterator[Finding]:
    """Yield the other places where nan or inf appeared that reached a loss or a ``.grad``, one for each expression.

    An operation is a source if it made a bad number out of good ones. Once a step has put a nan into parameters, the
    operations after it have a bad input. A backward rule is one on another line only: on the same it mostly follows.
    """
    timeline, places = survey.timeline, list(islice(_reached(survey, skipped), _MOST_TRACED))
    seen = {first.at}
    roots = [node for aspect, node, _ in places if aspect == "value"]
    bad = (node for node in (*roots, *ancestors(timeline, *roots)) if _is_bad_result(timeline, node))
    earliest_first = sorted(islice(bad, _MOST_SOURCES))
    forward = (
        _born(timeline, node)
        for node in earliest_first
        if (at := innermost(timeline.info(node))) is not None
        and at not in seen
        and not _bad_operand(timeline, node)
        and not is_a_mask(timeline, node)
    )
    backward = (_trace_back(timeline, place) for place in places if place[0] == "grad")
    for finding in chain(forward, backward):
        if finding.at is None or finding.at in seen or finding.kind not in ("nan-born", "nan-born-backward"):
            continue
        if finding.kind == "nan-born" or not any(_is_on_line(finding.at, at) for at in seen):
            seen.add(finding.at)
            yield replace(finding, text=finding.text.replace("the first ", "another ", 1))


def _is_on_line(at: Frame, other: Frame | None) -> bool:
    return other is not None and (at.path, at.line) == (other.path, other.line)


def _is_bad_result(timeline: Timeline, node: int) -> bool:
    """Check whether an operation of the program made a nan or inf."""
    created = timeline.info(node).created
    return created.kind == "op" and any(bad_text(output.value) for output in created.outputs)


def _consequence(survey: Survey, born: int) -> str:
    """Return the consequences of a bad number that first appeared at an event, as far as they are recorded."""
    if any(start > born for start, _ in survey.passes):
        return "it reached no loss and no .grad: something on the way has stopped it"
    where = "the program stands" if survey.timeline.growing else "the recording ends"
    return f"{where} before any backward from it: what becomes of it is not known"


def _skipped_passes(survey: Survey) -> frozenset[int]:
    """Return the passes whose bad numbers were discarded: no step has used them, and other steps were taken.

    A step is one of an optimizer, or a write of the program to the parameter.
    """
    steps = list(survey.select(OptimizerStepped))
    stepped = {node for _, step in steps for node in step.parameters}
    skipped: set[int] = set()
    for seq, event in survey.accumulated:
        if bad_text(event.part):
            is_trained = event.node in stepped or _is_changed_later(survey, event.node, seq)
            if not is_trained or _is_used(survey, steps, event.node, seq):
                return frozenset(skipped - {event.pass_nr})  # explain this pass, and no later one
            skipped.add(event.pass_nr)
    return frozenset(skipped)


def _is_changed_later(survey: Survey, node: int, seq: int) -> bool:
    """Return whether a leaf without an optimizer has other, good numbers at the end than at an event."""
    end = survey.timeline.memory_value(node, 0, survey.end)
    return not bad_text(end) and end != survey.timeline.memory_value(node, 0, seq)


def _is_used(survey: Survey, steps: list[tuple[int, OptimizerStepped]], node: int, seq: int) -> bool:
    """Return whether a step has changed a parameter before its ``.grad``, which is bad since an event, was cleared.

    If the parameter itself is already bad, no step can be seen to change it; then earlier ones have.
    """
    timeline = survey.timeline
    value = timeline.memory_value(node, 0, seq)
    if bad_text(value):
        return True
    later = (n for n in timeline.events_of(node) if n > seq)
    changes = ((n, change) for n in later if isinstance(change := timeline.event(n), GradSet))
    cleared = next((n for n, change in changes if change.how in CLEARED), len(timeline) + 1)
    at = [n for n, step in steps if seq < n < cleared and node in step.parameters]
    if node not in survey.optimized:
        at = [min(cleared, len(timeline))]
    return any(timeline.memory_value(node, 0, n) != value for n in at)  # a fused step may skip by itself


def _reached(survey: Survey, skipped: frozenset[int]) -> Iterator[Place]:
    """Yield the bad losses, bad additions to a ``.grad`` and bad results of ``autograd.grad``, in order of time.

    Contributions of the `skipped` passes have reached nothing.
    """
    for seq, event in survey.select(BackwardStarted, GradAccumulated, GradCaptured):
        if isinstance(event, BackwardStarted | GradAccumulated) and event.pass_nr in skipped:
            continue
        match event:
            case GradAccumulated(node=node, part=gradient) | GradCaptured(node=node, value=gradient):
                if bad_text(gradient):
                    yield "grad", node, seq
            case BackwardStarted():
                roots = (node for node, nr in event.roots if node in survey.timeline.nodes)
                bad = (node for node in roots if bad_text(survey.timeline.memory_value(node, 0, seq)))
                yield from (("value", node, seq) for node in bad if not _overflows_by_scale(survey.timeline, node))


def _overflows_by_scale(timeline: Timeline, root: int) -> bool:
    """Return whether a loss is finite and overflows only as it is multiplied by the loss scale before a pass.

    The pass does not use the product: its gradients may all be finite, and else they are found themselves.
    """
    if factor_of_loss(timeline, root) == 1:
        return False
    losses = [timeline.info(source) for source, _ in timeline.info(root).created.inputs if source]
    return not any(bad_text(one.created.first_value) for one in losses if one.created.requires_grad)


def _place_of(timeline: Timeline, seq: int) -> Place:
    """Return the place of the bad number of an event: the value that it makes or writes, or else a gradient."""
    match timeline.event(seq):
        case NodeCreated(node=node) | StorageWritten(node=node) | DataSet(node=node):
            return "value", node, seq
        case BackwardStarted(roots=roots, seeds=seeds):
            seeded = ((node, seed) for (node, _), seed in zip(roots, seeds, strict=False))
            return "grad", worst(seeded) or roots[0][0], seq
        case event:
            return "grad", getattr(event, "node", 0), seq


# The walk back

_LAST_OF_ALL = "gviz record --on nan, which ends at the first one: with --last it keeps what led there"


def _trace_back(timeline: Timeline, place: Place) -> Finding:
    """Go back from place to place, each earlier than the one before, to where the bad number first appeared."""
    path: list[Place] = []
    while True:
        aspect, node, n = place
        source = _older(timeline, place) or (
            _back_from_value(timeline, node, n) if aspect == "value" else _back_from_gradient(timeline, node, n)
        )
        path.append(place)
        if isinstance(source, Finding):
            return replace(source, parts=(*source.parts, *_path_findings(timeline, path)))
        place = source


def _older(timeline: Timeline, place: Place) -> Finding | None:
    """Return a finding about a number that was bad before the kept part of the recording begins, or after a gap."""
    aspect, node, n = place
    dropped = timeline.dropped
    if not dropped.events and not dropped.gaps:
        return None
    output = _output_at(timeline.at(n), node, aspect)
    if output is None or (aspect == "grad" and _bad_part(output) is not None):
        return None
    value, since = (output.value, output.value_seq) if aspect == "value" else (output.grad, output.grad_seq)
    if not since or not dropped.replaces(since) or not bad_text(value):
        return None
    whose = label(timeline, node) if aspect == "value" else f"the .grad of {label(timeline, node)}"
    bad = "nan" if "nan" in bad_text(value) else "inf"
    again = dropped.again
    where, older = "where this recording begins", "it is older than the part that was kept"
    count = f"{dropped.events:,} events before it were dropped"
    if since > again:
        gap = dropped.gaps[bisect_right(dropped.gaps, since, key=attrgetter("start")) - 1]
        again, where, older = gap.end - 1, f"after event {gap.start - 1}", "it comes from iterations that were not kept"
        count = f"{gap.events:,} events were dropped there"
    text = titled(f"{{}} was {bad} already {where}", whose)
    return Finding("nan-born", text, again, node, (Finding("older", f"{older}: {count}", again, node),), _LAST_OF_ALL)


def _back_from_value(timeline: Timeline, node: int, n: int) -> Finding | Place:
    info = timeline.info(node)
    if leaf := dict(info.created.attrs).get("grad_of", 0):
        return "grad", int(leaf), n
    was_born_bad = not timeline.dropped.replaces(info.born) and any(
        bad_text(output.value) for output in info.created.outputs
    )
    return _back_from_operation(timeline, node) if was_born_bad else _back_from_write(timeline, node, n)


def _back_from_operation(timeline: Timeline, node: int, excluded: int = 0) -> Finding | Place:
    """Return the next place on the way back from a bad value that an operation made."""
    bad = _bad_operand(timeline, node, excluded)
    return ("value", bad, timeline.info(node).born - 1) if bad else _born(timeline, node)


def _back_from_write(timeline: Timeline, node: int, n: int) -> Finding | Place:
    """Return the next place on the way back from a bad value that was written in place."""
    output = _output_at(timeline.at(n), node, "value")
    if output is None or output.value_seq <= timeline.info(node).born:
        since = titled("{} holds it, and it is not known since when", label(timeline, node))
        return Finding("nan-born", since, timeline.info(node).born, node)
    writer, seq = output.written_by, output.value_seq
    if not is_unseen(timeline, node, writer):
        source = _back_from_operation(timeline, writer, node)
        before = timeline.memory_value(node, 0, seq - 1)
        return ("value", node, seq - 1) if isinstance(source, Finding) and bad_text(before) else source
    owner = writer or node
    return _earlier(timeline, owner, seq) or _updated(timeline, owner, seq, output.value)


def _earlier(timeline: Timeline, node: int, seq: int) -> Place | None:
    """Return the bad number before an update: ``.grad`` or value, a nan first."""
    output = _output_at(timeline.at(seq - 1), node, "value")
    known = {"value": bad_text(output.value), "grad": bad_text(output.grad)} if output is not None else {}
    bad: list[Literal["value", "grad"]] = [aspect for aspect in ("value", "grad") if known.get(aspect)]
    aspect = next((aspect for aspect in bad if "nan" in known[aspect]), bad[0] if bad else None)
    return (aspect, node, seq - 1) if aspect else None


def _updated(timeline: Timeline, node: int, seq: int, value: Value | None) -> Finding:
    """Return the finding about an update that made a bad value from good numbers."""
    step, output = step_of(timeline, node, seq), _output_at(timeline.at(seq - 1), node, "value")
    if step is None and (iteration := resumed_at(timeline, seq)):
        return _made_in_a_gap(timeline, node, seq, iteration, value)
    frames = timeline.stack(step.stack) if step is not None else ()
    by = f"updated by {step_words(timeline, node, seq)}{at_text(frames)}" if step is not None else "updated in place"
    text = titled(f"{_first(value)} when {{}} is updated", label(timeline, node))
    parts = (Finding("used", by, seq, node), *(_numbers_before(node, output) if output is not None else ()))
    remedy = LEAPT if step is not None else ""
    if value is not None and value.dtype == "float16":
        remedy = OPTIMIZER_IN_HALF
    return Finding("nan-born", text, seq, node, parts, remedy, frames[0] if frames else None)


def _made_in_a_gap(timeline: Timeline, node: int, seq: int, iteration: int, value: Value | None) -> Finding:
    """Return the finding about a bad value that was there when the recording continued at an iteration."""
    name = label(timeline, node)
    text = titled(f"{_first(value)} in {{}}, before iteration {iteration:,}, not recorded", name)
    return Finding("nan-born", text, seq, node, fix=command_before(timeline, iteration))


def _numbers_before(node: int, output: OutputState) -> tuple[Finding, ...]:
    """Return the value and ``.grad`` before an update."""
    value = Finding("before", f"its value was {short(output.value)} before", output.value_seq, node)
    grad = Finding("before", f"its .grad was {short(output.grad)} before", output.grad_seq, node)
    return (value, grad) if output.grad is not None else (value,)


def _back_from_gradient(timeline: Timeline, node: int, n: int) -> Finding | Place:
    output = _output_at(timeline.at(n), node, "grad")
    part = None if _is_overwritten(timeline, output) else _bad_part(output)
    if part is None:
        return _before_accumulation(timeline, node, n, output.grad_seq if output is not None else 0)
    if not part.source:
        start = pass_started(timeline, timeline.at(part.seq).pass_nr)
        at = own_frame(timeline.stack(start.stack)) if start is not None else None
        seed = short(part.value).removeprefix(f"{BAD} ")
        return Finding("nan-seed", f"backward started with the gradient {seed}", part.seq, node, at=at)
    place = worst(_inputs_of_contribution(timeline, part))
    if place is not None and place[0] == "value" and _is_left_out(timeline, part):
        return _of_unused_elements(timeline, node, part, _trace_back(timeline, place))
    return place or _rule(timeline, node, part)


def _of_unused_elements(timeline: Timeline, node: int, part: Contribution, origin: Finding) -> Finding:
    """Return the finding about a rule that multiplies nan of elements that the loss does not use by zero.

    If untracked operations of the program made the nan, it is about them: their inputs can be mended. For data it is
    about the rule.
    """
    created = timeline.info(origin.node).created if origin.kind == "nan-born" and origin.node else None
    if created is None or created.kind != "op" or created.requires_grad:
        return replace(_rule(timeline, node, part), fix=LEFT_OUT, edit=None)
    user = timeline.info(part.source)
    rule = f"the loss does not use these elements, but the backward rule of {label_at(timeline, part.source)}"
    product = Finding(
        "rule", f"{rule} multiplies them by a gradient: 0 * nan", part.seq, part.source, at=innermost(user)
    )
    return replace(origin, parts=(*origin.parts[:1], product, *origin.parts[1:]))


def _is_left_out(timeline: Timeline, part: Contribution) -> bool:
    """Return whether a rule's inputs have a nan, and the incoming gradient and the loss have none."""
    arrived, started = arriving_gradient(timeline, part), pass_started(timeline, timeline.at(part.seq).pass_nr)
    roots = [timeline.info(node).created.first_value for node, _ in started.roots if node] if started else []
    values = (operand.value for operand in computation(timeline, part.source).operands)
    has_nan = any("nan" in bad_text(value) for value in values)
    return has_nan and bool(roots) and not any(map(bad_text, (arrived, *roots)))


def _is_overwritten(timeline: Timeline, output: OutputState | None) -> bool:
    """Return whether the program has written to a ``.grad`` since the last contribution."""
    seq = output.grad_seq if output is not None else 0
    written = seq > 0 and isinstance(timeline.event(seq), GradSet)
    return written and output is not None and all(part.seq < seq for part in output.parts)


def _inputs_of_contribution(timeline: Timeline, part: Contribution) -> Iterator[tuple[Place, Value | None]]:
    """Yield the inputs of a contribution: the incoming gradient, the inputs of its node, and its result."""
    node, born = part.source, timeline.info(part.source).born
    yield ("grad", node, part.seq), arriving_gradient(timeline, part)
    computed = computation(timeline, node)
    inputs = (one for one in computed.operands if one.node and not is_written(timeline, one.node, node))
    yield from ((("value", one.node, born - 1), one.value) for one in inputs)
    yield ("value", node, born), computed.result


def _before_accumulation(timeline: Timeline, node: int, n: int, seq: int) -> Finding | Place:
    """Return the next place on the way back from a bad ``.grad`` that an earlier pass or the program made."""
    if 0 < seq < n:
        return "grad", node, seq
    before = _output_at(timeline.at(n - 1), node, "grad") if seq else None
    if before is not None and bad_text(before.grad) and isinstance(timeline.event(seq), GradAccumulated):
        return "grad", node, n - 1
    source = _grad_source(timeline, seq) if seq else None
    return ("grad", *source) if source is not None else _written_by_program(timeline, node, seq)


def _written_by_program(timeline: Timeline, node: int, seq: int) -> Finding:
    """Return the finding about a bad ``.grad`` that the program wrote itself, with its line."""
    write = write_at(timeline, seq)
    if write is None or not write.frames:
        text = titled("the .grad of {} got it from outside the pass", label(timeline, node))
        return Finding("nan-born", text, seq, node)
    alike = _first_writes_of_loop(timeline, write)
    write, node = alike[0], expect(timeline, alike[0].seq, GradSet).node
    where = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ", where it is written"
    text = titled(f"{_first(write.after)} in the .grad of {{}}{where}", label(timeline, node))
    row = clipped(line_text(timeline, write.at).strip(), 120)
    line = Finding("write", f"written{at_text(write.frames)}: {row}", write.seq, node, at=write.at)
    others = [expect(timeline, one.seq, GradSet).node for one in alike[1:]]
    reasons, fix = _reason_of_write(timeline, write)
    parts = [*reasons, line, *_others_of_loop(timeline, write, others), *suspected_source(timeline, write)]
    return Finding("nan-born", text, write.seq, node, tuple(parts), fix, write.at)


def _first_writes_of_loop(timeline: Timeline, write: GradWrite) -> list[GradWrite]:
    """Return the writes of one loop over parameters that made good gradients bad: of each ``.grad`` its first.

    ``for p in net.parameters(): p.grad /= p.grad.norm()`` writes to one after the other. Which of them the walk back
    arrives at says nothing.
    """
    event = expect(timeline, write.seq, GradSet)
    others = (BackwardStarted, GradAccumulated, OptimizerStepped)
    start = max((n for n, _ in timeline.select(others, 1, write.seq)), default=1)
    end = min((n for n, _ in timeline.select(others, write.seq)), default=len(timeline) + 1)
    first = dict[int, GradWrite]()
    for seq, other in timeline.select((GradSet,), start, end):
        if other.stack != event.stack or other.node in first or not bad_text(other.value):
            continue
        one = write if other.node == event.node else write_at(timeline, seq)
        if one is not None and (other.node == event.node or not bad_text(one.before)):
            first[other.node] = one
    return list(first.values()) or [write]


def _others_of_loop(timeline: Timeline, write: GradWrite, others: Sequence[int]) -> Iterator[Finding]:
    if others:
        names = ", ".join(label(timeline, node) for node in others[:_MOST_OF_LOOP])
        more = f" and {len(others) - _MOST_OF_LOOP} more" if len(others) > _MOST_OF_LOOP else ""
        yield Finding("write", f"then the same line wrote to the .grad of {names}{more}", write.seq, others[0])


_MOST_OF_LOOP = 3


def _reason_of_write(timeline: Timeline, write: GradWrite) -> tuple[tuple[Finding, ...], str]:
    """Return that a line that wrote bad numbers to a ``.grad`` divides by 0, and the fix, if it does.

    The operation that made the numbers is the one on the same line with the same result.
    """
    event, near = expect(timeline, write.seq, GradSet), _NEAR_WRITE
    created = timeline.select((NodeCreated,), max(write.seq - near, 1), min(write.seq + near, len(timeline)) + 1)
    results = ((one, output.value) for _, one in created if one.kind == "op" for output in one.outputs)
    makers = (timeline.info(one.node) for one, value in results if value == event.value)
    maker = next((one.node for one in makers if write.at is not None and _is_on_line(write.at, innermost(one))), 0)
    if not maker:
        return (), ""
    origin = _trace_back(timeline, ("value", maker, timeline.info(maker).born))
    divisor = _zero_divisor(timeline, origin.node) if origin.node else ""
    if divisor:
        return (Finding("computed", f"{divisor}, and the line divides by it", origin.event, origin.node),), NONZERO_NORM
    return (), ""


_NEAR_WRITE = 10
"""The most events between a write to a ``.grad`` and the operation that made its numbers."""


def _zero_divisor(timeline: Timeline, node: int) -> str:
    """Return that a division is one by 0: ``#63 linalg_vector_norm is 0``; empty if it is not, or no division."""
    info, operands = timeline.info(node), computation(timeline, node).operands
    if info.op.base_name not in ("div", "true_divide", "reciprocal"):
        return ""
    divisor = operands[-1] if len(operands) == 2 or info.op.base_name == "reciprocal" else None
    if divisor is None:
        return "the divisor is 0" if dict(info.created.attrs).get("other") == 0 else ""
    stats = divisor.value.statistics() if divisor.value is not None else None
    if divisor.value is None or stats is None or not stats.zero:
        return ""
    name = label(timeline, divisor.node) if divisor.node else "the divisor"
    which = f" in {stats.zero} of {divisor.value.size} elements" if divisor.value.size > 1 else ""
    return f"{name} is 0{which}"


def suspected_source(timeline: Timeline, write: GradWrite) -> Iterator[Finding]:
    """Yield another bad ``.grad`` that the same line wrote to: the number may come from there."""
    other = _bad_grad_of_same_call(timeline, write)
    if other is not None:
        bad = bad_text(grad_left(timeline.event(other.filled)))
        text = f"the same line wrote to the .grad of {label(timeline, other.node)}, which held {bad}"
        born = _trace_back(timeline, ("grad", other.node, other.filled))
        origin = (replace(born, text=f"{born.text}, at {born.where}" if born.where else born.text),)
        may = "" if other.sure else ": it may have come from there"
        yield Finding("beside", f"{text}{may}", other.filled, other.node, origin if other.sure else ())


def _bad_operand(timeline: Timeline, node: int, excluded: int = 0) -> int:
    """Return the input of a node whose value was bad when it was used; 0 if none was, except as a written number."""
    known = _known_operands(timeline, node)
    inputs = ((o.node, o.value) for o in known if o.node and o.node != excluded)
    return worst((source, value) for source, value in inputs if not is_written(timeline, source, node)) or 0


def _known_operands(timeline: Timeline, node: int) -> Iterator[Operand]:
    """Yield the inputs of a node with known values; an input without a recorded value is replaced by its own inputs."""
    seen, waiting = {node}, [node]
    while waiting:
        for operand in computation(timeline, waiting.pop()).operands:
            value = operand.value
            if value is not None and value.is_known:
                yield operand
            elif operand.node not in seen and operand.node:
                seen.add(operand.node)
                waiting.append(operand.node)


def _born(timeline: Timeline, node: int) -> Finding:
    info = timeline.info(node)
    result = info.created.first_value
    where = element_text(timeline, info)
    how = (computation(timeline, node).without_shapes if where else formula_text(timeline, node)) or _data_words(
        timeline, info, result
    )
    numbers = Finding("computed", f"{where}{': ' * bool(where)}{how}", info.born, node)
    if _is_blind(timeline, node):
        text = titled(f"{_first(result)} in {{}}, or before it", label(timeline, node))
        older = Finding("older", "it may be older: not all that went into it was recorded", info.born, node)
        return Finding("nan-born", text, info.born, node, (numbers, older), RECORD_ALL, innermost(info))
    text = titled(f"{_first(result)} in {{}}{_share(result)}", label(timeline, node))
    if info.op.base_name not in MASKING and (remedy := written_fix(timeline, node)):
        meeting = meeting_numbers(timeline, node)
        numbers = replace(numbers, text=f"{numbers.text}{f': {meeting}' * bool(meeting)}")
        return Finding("nan-born", text, info.born, node, (numbers,), remedy, innermost(info))
    if reason := no_labels(timeline, node):
        part = Finding("computed", reason, info.born, node)
        fix = NO_ELEMENTS if "no element" in reason else NO_LABELS
        return Finding("nan-born", text, info.born, node, (part, numbers), fix, innermost(info))
    if reason := too_short(timeline, node):
        part, at = Finding("computed", reason, info.born, node), innermost(info)
        edit = with_keyword(timeline, at, "ctc_loss", "zero_infinity", "True")
        return Finding("nan-born", text, info.born, node, (part, numbers), TOO_SHORT, at, edit=edit)
    if (undefined := undefined_step(timeline, node)) is not None:
        part = Finding("computed", undefined.words, info.born, node)
        return Finding("nan-born", text, info.born, node, (part,), undefined.fix, innermost(info), edit=undefined.edit)
    remedy = usual_remedy(timeline, info, result)
    grown = tuple(_grown(timeline, node, info.born)) if remedy == DIVERGING else ()
    leap = parameter_leap(timeline, node, info.born) if is_of_size(remedy) else None
    beyond = overflow(info, result, (operand.value for operand in computation(timeline, node).operands))
    facts = (numbers, *grown, *((Finding("overflow", beyond, info.born, node),) if beyond else ()))
    scale = large_features(timeline, node) if grown or leap is not None else None
    clipped_never = exploding_recurrence(timeline, node, info.born) if is_of_size(remedy) and not scale else None
    if clipped_never is not None:
        fix, edit = clipped_never.fix, clipped_never.edit
        facts = (replace(clipped_never, fix="", edit=None), *facts)
        return Finding("nan-born", text, info.born, node, facts, fix, innermost(info), edit=edit)
    if leap is not None or scale is not None:
        facts = (*((scale,) if scale is not None else ()), *facts, *((leap,) if leap is not None else ()))
        return Finding(
            "nan-born", text, info.born, node, facts, LEAPT if scale is None else STANDARDIZE, innermost(info)
        )
    if beyond and remedy != DIVERGING:
        remedy = overflow_fix(backward=False, scale=1)
    elif result is not None and result.dtype == "float16" and (steps := timeline.contexts.steps_at(info.born)):
        step = timeline.event(steps[0].said)
        kind = step.kind if isinstance(step, OptimizerStarted | OptimizerStepped) else "optimizer"
        facts, remedy = (*facts, Finding("used", f"in the step of {shown(kind)}", info.born, node)), OPTIMIZER_IN_HALF
    elif is_branch_of_where(timeline, node):
        remedy = SAFE_INPUT
    if (
        info.op.base_name in MASKING
        and goes_into_softmax(timeline, node)
        and (own := _own_position_hidden(timeline, info))
    ):
        return replace(own, parts=(*own.parts, *facts))
    edit = remedy_edit(timeline, info, remedy)
    if remedy != SAFE_INPUT and (of_logarithm := logarithm_remedy(timeline, info)) is not None:
        remedy, edit = of_logarithm
    return Finding("nan-born", text, info.born, node, facts, remedy, innermost(info), edit=edit)


def _own_position_hidden(timeline: Timeline, info: NodeInfo) -> Finding | None:
    """Return what is wrong with a causal mask that hides the diagonal, too: its first row hides everything.

    The finding is at the line that makes the triangle.
    """
    operands = [timeline.info(source) for source, _ in info.created.inputs if source]
    masks = [(one, one.created.first_value) for one in operands if one.created.first_value is not None]
    mask, value = next(((one, value) for one, value in masks if value and value.dtype == "bool"), (None, None))
    array = timeline.array(value) if value is not None else None
    if mask is None or array is None or array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] < 2:
        return None
    rows = array.reshape(-1, *array.shape[-2:])
    if not (rows == np.triu(np.ones(array.shape[-2:], bool))).all():
        return None
    hides = f"{label_at(timeline, mask.node)} also hides each position from itself: its first row hides every position"
    part = Finding("mask", hides, mask.born, mask.node)
    makers = (timeline.info(one) for one in (mask.node, *ancestors(timeline, mask.node)))
    maker = next((one for one in makers if one.op.base_name in ("triu", "tril")), None)
    if maker is None:
        return None
    at = innermost(maker)
    diagonal = "1" if maker.op.base_name == "triu" else "0"
    edit = with_keyword(timeline, at, maker.op.base_name, "diagonal", diagonal)
    text = titled("the mask of {} hides the whole first row, whose softmax is nan", label(timeline, info.node))
    return Finding("nan-born", text, info.born, info.node, (part,), _DIAGONAL, at, edit=edit)


_DIAGONAL = "leave the diagonal out of what is hidden: torch.triu(..., diagonal=1)"


def _data_words(timeline: Timeline, info: NodeInfo, result: Value | None) -> str:
    """Return a description of a bad value that no operation made."""
    if is_beyond(info, result, line_text(timeline, innermost(info))):
        return "it is a number beyond float16, which has none above 65504"
    return f"it is {info.created.kind} data"


def _grown(timeline: Timeline, node: int, n: int) -> Iterator[Finding]:
    """Yield the fact that the loss grew from pass to pass before a number became too large."""
    if values := growing_losses(timeline, n):
        text = (
            f"the loss had grown from {iteration_called(timeline)} to {iteration_called(timeline)}: {row_text(values)}"
        )
        yield Finding("grew", text, n, node)


def _rule(timeline: Timeline, node: int, part: Contribution) -> Finding:
    """Return the finding about a rule that made a bad contribution from good numbers."""
    info, where = timeline.info(part.source), sent_at_element(timeline, part)
    blind = _is_blind(timeline, part.source)
    name = label(timeline, part.source)
    text = titled(f"{_first(part.value)} in the backward rule of {{}}{', or before it' * blind}", name)
    rule = f"on the way to {label(timeline, node)}{', ' * bool(where)}{where}{rule_words(timeline, part)}"
    facts = (Finding("rule", rule, part.seq, part.source), *_inputs(timeline, part.source))
    if undefined := undefined_there(timeline, info):
        facts = (Finding("undefined", undefined, part.seq, part.source), *facts)
    remedy = RECORD_ALL if blind else usual_remedy(timeline, info, part.value)
    beyond = overflow(info, part.value, (operand.value for operand in computation(timeline, part.source).operands))
    if beyond and not blind:
        facts = (facts[0], Finding("overflow", beyond, part.seq, part.source), *facts[1:])
        remedy = overflow_fix(backward=True, scale=loss_scale(timeline, timeline.at(part.seq).pass_nr))
    elif not blind and is_branch_of_where(timeline, part.source):
        remedy = SAFE_INPUT
    edit = remedy_edit(timeline, info, remedy)
    return Finding("nan-born-backward", text, part.seq, part.source, facts, remedy, innermost(info), edit=edit)


def _is_blind(timeline: Timeline, node: int) -> bool:
    """Return whether an input of a node is unknown because only a part of the program was recorded."""
    values = (operand.value for operand in computation(timeline, node).operands)
    return is_partial(timeline) and any(value is None or not value.is_known for value in values)


def _inputs(timeline: Timeline, node: int) -> tuple[Finding, ...]:
    """Return the inputs of the node."""
    how, text = computation(timeline, node), formula_text(timeline, node)
    if len(text) > _LONGEST_FORMULA:  # the shapes of many arrays say as much as their numbers
        text = how.text
    return (Finding("computed", f"forward it was {text}", how.event, node),) if text else ()


_LONGEST_FORMULA = 240

_FIRST_NAN = "the first nan"


def _first(value: Value | None) -> str:
    """``the first nan appears``, or the first inf."""
    text = bad_text(value)
    if not text:
        return "the first nan or inf appears"
    return f"{_FIRST_NAN if 'nan' in text else f'the first {text.split()[1].rstrip(chr(44))}'} appears"


def _share(value: Value | None) -> str:
    """How many of the elements are bad: `` (2 of 6 elements)``; empty for a single number."""
    text = bad_text(value)
    if value is None or not text or value.size == 1:
        return ""
    return f" ({text if ',' in text else text.split()[0]} of {value.size} elements)"


# Places: the value or gradient of a node at a moment

T = TypeVar("T")

Aspect = Literal["value", "grad"]

Place = tuple[Aspect, int, int]
"""A bad number on the path: the value or gradient of a node, at a moment."""


def _bad_at(timeline: Timeline, place: Place) -> Value | None:
    """Return the bad value or gradient at a place."""
    aspect, node, n = place
    output = _output_at(timeline.at(n), node, aspect)
    if output is None or aspect == "value":
        return output.value if output is not None else None
    part = _bad_part(output)
    return part.value if part is not None else output.grad


def _bad_part(output: OutputState | None) -> Contribution | None:
    """Return the contribution that brought the first nan, or else an inf, to an output."""
    return worst((part, part.value) for part in output.parts) if output is not None else None


def worst(pairs: Iterable[tuple[T, Value | None]]) -> T | None:
    """Return the first element with a nan, or else with an inf."""
    bad = [(one, text) for one, value in pairs if (text := bad_text(value))]
    return next((one for one, text in bad if "nan" in text), bad[0][0] if bad else None)


def _output_at(moment: Moment, node: int, aspect: Aspect) -> OutputState | None:
    """Return the output of a node whose value or gradient is bad at a moment, or else its first, or else None."""
    state = moment.state(node)
    outputs = state.outputs if state is not None else ()
    bad = worst((output, value) for output in outputs for value in _values_of(output, aspect))
    return bad or next(iter(outputs), None)


def _values_of(output: OutputState, aspect: Aspect) -> Iterator[Value | None]:
    """Yield the values of an output, or its gradients."""
    if aspect == "value":
        yield output.value
    else:
        yield from (part.value for part in output.parts)
        yield output.grad


# A write that put a bad number into a ``.grad``: its own, or that of another that the same call wrote to


@dataclass(frozen=True, slots=True)
class _OtherGrad:
    """The ``.grad`` of another `node`, bad since event `filled`, to which the same line wrote.

    `sure` is true if its number surely went into the write: one call clipped both by their common norm.
    """

    node: int
    filled: int
    sure: bool


def _grad_source(timeline: Timeline, seq: int) -> tuple[int, int] | None:
    """Return the bad ``.grad`` that surely went into the one written by event `seq`: its node and moment."""
    event = timeline.event(seq)
    if not isinstance(event, GradSet):
        return None
    write = write_at(timeline, seq)
    if write is None or _stayed(timeline, write):
        return event.node, seq - 1
    other = _bad_grad_of_same_call(timeline, write)
    return (other.node, other.filled) if other is not None and other.sure else None


def _bad_grad_of_same_call(timeline: Timeline, write: GradWrite) -> _OtherGrad | None:
    """Return another bad ``.grad`` of the same call that went into a write, surely or possibly."""
    event = expect(timeline, write.seq, GradSet)
    others = [
        _OtherGrad(node, filled, _is_norm_of(timeline, write, filled) and _in_one_call(timeline, write, at))
        for node, filled, at in _written_alike(timeline, event, write.seq)
    ]
    return next((one for one in others if one.sure), others[0] if others and bad_text(write.after) else None)


def _written_alike(timeline: Timeline, write: GradSet, seq: int) -> Iterator[tuple[int, int, int]]:
    """Yield the other bad gradients of the last pass that the same call stack wrote to: node, bad since, written at."""
    starts = [phase.start for phase in timeline.phases if phase.kind == "backward" and phase.start < seq]
    for filled, event in timeline.select((GradAccumulated,), starts[-1] if starts else 1, seq):
        node = expect(timeline, filled, GradAccumulated).node
        later = ((n, e) for n in timeline.events_of(node) if n > filled and isinstance(e := timeline.event(n), GradSet))
        at, after = next(later, (0, None))
        if after is not None and node != write.node and after.stack == write.stack and bad_text(grad_left(event)):
            yield node, filled, at


def _is_norm_of(timeline: Timeline, write: GradWrite, filled: int) -> bool:
    """Return whether a write looks like scaling by a nan norm (all nan) or an infinite one (all zero)."""
    bad, stats = bad_text(grad_left(timeline.event(filled))), write.after.statistics() if write.after else None
    return (
        stats is not None
        and write.after is not None
        and (stats.nan if "nan" in bad else stats.zero) == write.after.size
    )


def _in_one_call(timeline: Timeline, write: GradWrite, other: int) -> bool:
    """Return whether one call of ``clip_grad_norm_`` made both writes: no new tensor is computed between them."""
    between = timeline.select((NodeCreated,), min(write.seq, other), max(write.seq, other))
    return called_function(timeline, write.at) == "clip_grad_norm_" and all(
        output.version for _, event in between for output in event.outputs
    )


def _stayed(timeline: Timeline, write: GradWrite) -> bool:
    """Return whether each bad element was bad before the write; without arrays, whether the counts are equal."""
    before, after = write.before, write.after
    if before is None or after is None or not bad_text(before) or before.shape != after.shape:
        return False
    old, new = timeline.array(before), timeline.array(after)
    if old is not None and new is not None:
        return bool((np.isfinite(new) | ~np.isfinite(old)).all())
    return expect(timeline, write.seq, GradSet).how == "in place" and _bad_counts(before) == _bad_counts(after)


def _bad_counts(value: Value) -> tuple[int, int]:
    stats = value.statistics()
    return (stats.nan, stats.inf) if stats is not None else (0, 0)


# The path from there: what the number became, what passed it on, and how far


def _path_findings(timeline: Timeline, path: list[Place]) -> Iterator[Finding]:
    """Yield the facts about a path whose last place is where the number first appeared."""
    yield from _became(timeline, path)
    yield from _carried(timeline, path)
    yield from _spread(timeline, path)


def _became(timeline: Timeline, path: list[Place]) -> tuple[Finding, ...]:
    """Return where an infinity became a nan, on a path that ends at the infinity."""
    texts = [bad_text(_bad_at(timeline, place)) for place in path]
    if "nan" in texts[-1]:
        return ()
    if "nan" not in "".join(texts):
        return _whole_rows(timeline, path)
    last = max(i for i, text in enumerate(texts) if "nan" in text)
    where, node, n = _changed(timeline, path[last], path[last + 1])
    return (Finding("became-nan", f"it became nan in {where}", n, node, at=innermost(timeline.info(node))),)


def _whole_rows(timeline: Timeline, path: list[Place]) -> tuple[Finding, ...]:
    """Return where whole rows of -inf became -inf, on a path that ends at the infinities of a mask."""
    for _, node, _ in reversed(path[:-1]):
        info = timeline.info(node)
        if info.op.base_name == "logsumexp" and (rows := meeting_numbers(timeline, node)):
            text = f"it is still -inf in {label_at(timeline, node)}: {rows}"
            return (Finding("became-inf", text, info.born, node, at=innermost(info)),)
    return ()


def _changed(timeline: Timeline, place: Place, before: Place) -> tuple[str, int, int]:
    """Return how one bad number turned into the next, in words, with its node and event."""
    aspect, node, n = place
    part = _bad_part(_output_at(timeline.at(n), node, aspect)) if aspect == "grad" else None
    if part is not None and part.source:
        where = f"the backward rule of {label_at(timeline, part.source)}{rule_words(timeline, part)}"
        return where, part.source, part.seq
    if aspect == "grad" or before[1] == node:
        return f"the {'.grad' if aspect == 'grad' else 'update'} of {label(timeline, node)}", node, n
    how = ": ".join(filter(None, (computation(timeline, node).text, meeting_numbers(timeline, node))))
    return f"{label_at(timeline, node)}{f': {how}' if how else ''}", node, timeline.info(node).born


def _carried(timeline: Timeline, path: list[Place]) -> Iterator[Finding]:
    """Yield the line that passed a bad number from one ``.grad`` to others, for example clipping by the total norm."""
    for (aspect, node, n), (_, source, _) in pairwise(path):
        write = timeline.event(n)
        if aspect == "grad" and source != node and isinstance(write, GradSet) and _grad_source(timeline, n):
            frames = timeline.stack(write.stack)
            line = line_text(timeline, frames[0] if frames else None).strip()
            text = f"from the .grad of {label(timeline, source)} to that of others{at_text(frames)}: {line}"
            yield Finding("carried", clipped(text, 120), n, node, at=frames[0] if frames else None)


def _spread(timeline: Timeline, path: list[Place]) -> tuple[Finding, ...]:
    nodes = list(dict.fromkeys(node for _, node, _ in reversed(path[:-1]) if node != path[-1][1]))
    if not nodes:
        return ()
    names = [label(timeline, node) for node in nodes]
    shown_names = names if len(names) <= 6 else [*names[:3], f"{len(names) - 5} more", *names[-2:]]
    return (Finding("spread", f"from there it spread through {', '.join(shown_names)}", 0, nodes[-1]),)
