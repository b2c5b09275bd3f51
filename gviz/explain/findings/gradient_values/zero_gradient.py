"""A gradient that is zero everywhere: the operation that made it so, and the reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from gviz.events import GradAccumulated, GradFlowed, ScopeEntered
from gviz.explain.backward_passes import pass_started, start_of_pass
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.model.recurrent_output import reverse_direction
from gviz.explain.grad_history import is_zero
from gviz.explain.hook_effects import HOOK_FIX, HookEffect, hook_finding, zeroing_hook, zeroing_hook_after_rule
from gviz.explain.node_question import Question
from gviz.explain.operation_sets import (
    CLAMPS,
    DRAWS,
    DROPOUTS,
    FLAT,
    LISTS,
    LOSSES,
    PRODUCTS,
    SAME_NUMBERS,
    SELECTIONS,
    SOFTMAXES,
    STEPPING,
    ZERO_GRADIENT_REGIONS,
    multiplies,
)
from gviz.explain.parameter_initialization import InitialWrite, initial_write, writes_zeros, written_at
from gviz.explain.pass_contributions import arriving_gradient, contributions
from gviz.explain.program_text import (
    line_text,
)
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import difference_with, renamed_call, without_call
from gviz.explain.source_edit import operand as operand_edit
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import ancestors, descendants
from gviz.explain.value_computation import Operand, computation
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import Contribution, NodeInfo, OutputState
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.plain_text import file_line, shown
from gviz.values.value import Value
from gviz.values.value_text import grad

_TINY = 1e-6
_LEAST_ZERO = ZERO_GRADIENT_REGIONS | LOSSES | {"clamp", "clamp_min", "maximum", "pow", "square", "abs"}
"""Operations whose result is no loss any more if it is 0: a satisfied hinge, the square of no error."""

_CLAMPED_FIX = "widen the border, or clamp later"


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why a rule sends zero: in the title, and in more words what that `means`."""

    kind: str
    says: str
    fix: str
    means: str = ""


_UNKNOWN = _Reason("masked", "makes zero of what arrives", "look at the numbers that it multiplies by")
_ADDED_UP = _Reason("cancelled", "adds up what arrives to zero", "")


def zero(question: Question) -> Finding | None:
    """Go back over zero contributions to the rule that made the first of them from a nonzero gradient."""
    output = question.output
    value = output.incoming if output.grad is None else output.grad
    if not is_zero(value) or not output.parts:
        return None
    return _origin_of_zeros(question.timeline, question, output)


def _origin_of_zeros(timeline: Timeline, question: Question, output: OutputState) -> Finding | None:
    part: Contribution = output.parts[0]
    last = output.parts[-1].seq
    hook = zeroing_hook(timeline, question.node, timeline.at(last).pass_nr, question.moment.n)
    if hook is not None:
        return _zeroed_by_hook(timeline, question, hook)
    lost = _underflow(timeline, part)
    if lost is not None:
        return _underflowed(timeline, question.node, *lost)
    if not all(is_zero(one.value) for one in output.parts):
        return _cancelled(timeline, question.node, output.parts)
    if (unread := reverse_direction(question)) is not None:
        return unread
    end = _end_of(timeline, part)
    if not end.part.source:
        text = titled("the gradient of {} is zero: backward was started with zero", label(timeline, question.node))
        return Finding("masked", text, end.part.seq, question.node, at=innermost(question.info))
    if end.hook is not None:
        return _zeroed_by_hook(timeline, question, end.hook)
    if end.size:
        return _zeroed_by_rule(timeline, question, end.part, end.size)
    return _cancelled(timeline, end.part.source, end.cancel) if end.cancel else None


class _End(NamedTuple):
    """The first zero contribution of a path, and its cause.

    Its rule may have run with a nonzero gradient of `size` elements. The contributions at its source may `cancel` each
    other. Or a `hook` returned zero.
    """

    part: Contribution
    size: int = 0
    cancel: Sequence[Contribution] = ()
    hook: HookEffect | None = None


def _end_of(timeline: Timeline, part: Contribution) -> _End:
    """Return the contribution at which the zeros begin. Paths from many leaves join; each part is walked once."""
    known, walked = timeline.once(_known_ends, 0), list[int]()
    end = known.get(part.seq)
    while end is None:
        walked.append(part.seq)
        end, part = _step_back(timeline, part)
        end = end or known.get(part.seq)
    known.update(dict.fromkeys(walked, end))
    return end


def _known_ends(timeline: Timeline, _: int) -> dict[int, _End]:
    """Return an empty cache: the event of a contribution -> the end of its path."""
    return {}


def _step_back(timeline: Timeline, part: Contribution) -> tuple[_End | None, Contribution]:
    """Return the end of the path if it ends at this contribution, and the contribution before it."""
    if not part.source:
        return _End(part), part
    got = arriving_gradient(timeline, part)
    if got is not None and not is_zero(got):
        return _End(part, got.size, hook=zeroing_hook_after_rule(timeline, part)), part
    hook = zeroing_hook(timeline, part.source, timeline.at(part.seq).pass_nr, part.seq)
    if hook is not None:
        return _End(part, hook=hook), part
    state = timeline.at(part.seq).state(part.source)
    above = next((out.parts for out in state.outputs if out.parts), ()) if state is not None else ()
    if not above:
        return _End(part), part
    return (None, above[0]) if all(is_zero(one.value) for one in above) else (_End(part, cancel=above), part)


# Underflow: a gradient below the least number of float16 or bfloat16 becomes zero
# |
# The zeros need not begin where the whole gradient is zero. If its elements are near 5e-9, as those of a mean of
# squares, 99.8 % may become zero in float16 at one operation, and the rest a few operations later. So the path is
# walked back over all operations, and the first one in the short type at which most zeros appear is named. Its numbers
# must be so small that the type explains the zeros: a mask that lets nothing through is no underflow.

_LEAST = {"float16": 2.0**-24, "bfloat16": 2.0**-133}
"""The least positive number of each short type."""

_FAR = 2**10
_FAR_BEFORE = 2**18
"""Zeros count as underflow if the largest number is at most this many times the least one, in the outgoing gradient
(`_FAR`) and in the incoming one (`_FAR_BEFORE`).
"""


def _underflow(timeline: Timeline, part: Contribution) -> tuple[Contribution, Value] | None:
    """Return the contribution at which most zeros of a short type appear, and its incoming gradient, or None.

    Paths from many leaves join; each contribution is examined once.
    """
    known, walked = timeline.once(_known_underflows, 0), list[Contribution]()
    while part.source and part.seq not in known:
        walked.append(part)
        state = timeline.at(part.seq).state(part.source)
        above = next((out.parts for out in state.outputs if out.parts), ()) if state is not None else ()
        if not above:
            break
        part = above[0]
    underflow = known.get(part.seq)
    for one in reversed(walked):
        if underflow is None and one.value.dtype in _LEAST:
            got = arriving_gradient(timeline, one)
            underflow = (one, got) if got is not None and _underflows(timeline, one, got) else None
        known[one.seq] = underflow
    return underflow


def _known_underflows(timeline: Timeline, _: int) -> dict[int, tuple[Contribution, Value] | None]:
    """Return an empty cache: the event of a contribution -> where a path over it underflows."""
    return {}


def _underflows(timeline: Timeline, part: Contribution, got: Value) -> bool:
    least = _LEAST[part.value.dtype]
    if timeline.info(part.source).op.base_name in ZERO_GRADIENT_REGIONS | SELECTIONS:
        return False
    sent, arrived = part.value.statistics(), got.statistics()
    if sent is None or arrived is None or not part.value.size or not got.size:
        return False
    appeared = sent.zero / part.value.size - arrived.zero / got.size
    largest, before = (max(abs(stats.min), abs(stats.max)) for stats in (sent, arrived))
    return appeared >= 0.5 and largest <= _FAR * least and 0 < before <= _FAR_BEFORE * least


def underflows(survey: Survey) -> Iterator[Finding | None]:
    """Yield rules that send mostly zeros in float16 or bfloat16 for nonzero gradients: each line once.

    The gradient of a leaf may still be nonzero: it lacks the part that has underflowed.
    """
    timeline, seen = survey.timeline, set[int]()
    if not any(output.value is not None and output.value.dtype in _LEAST
               for record in survey.nodes.values() for output in record.created.outputs[:1]):  # fmt: skip
        return
    for seq, flowed in timeline.select((GradFlowed,)):
        record = survey.nodes.get(flowed.source)
        if record is None or flowed.part.dtype not in _LEAST or record.created.stack in seen:
            continue
        yield None
        stats, part = flowed.part.statistics(), Contribution(flowed.source, flowed.slot, flowed.part, seq)
        if stats is None or 2 * stats.zero < flowed.part.size:
            continue
        got = arriving_gradient(timeline, part)
        if got is not None and _underflows(timeline, part, got):
            seen.add(record.created.stack)
            yield _underflowed(timeline, 0, part, got)


def _underflowed(timeline: Timeline, node: int, part: Contribution, got: Value) -> Finding:
    info, dtype = timeline.info(part.source), part.value.dtype
    stats, arrived = part.value.statistics(), got.statistics()
    share = 100 * stats.zero / part.value.size if stats is not None else 100.0
    sends = f"{number(share, 3)}% of what {label_at(timeline, info.node)} sends back is zero"
    text = titled(f"{number(share, 3)}% of what {{}} sends back underflows {dtype}", label(timeline, info.node))
    if node:
        names = label(timeline, node), label(timeline, info.node)
        text = titled(f"the gradient of {{}} is zero: {{}} underflows {dtype}", *names)
    largest = max(abs(arrived.min), abs(arrived.max)) if arrived is not None else 0.0
    least = f"the least number of {dtype} is {number(_LEAST[dtype], 2)}"
    fact = f"{sends}; {least}; the largest gradient that arrives there is {number(largest, 2)}"
    numbers = (Number("share of zeros sent back", share / 100, part.seq),)
    parts = (Finding("share", fact, part.seq, info.node),)
    return Finding("underflow", text, part.seq, info.node, parts, _UNDERFLOW_FIX, innermost(info), numbers)


_UNDERFLOW_FIX = "scale the loss with torch.amp.GradScaler, or compute this part in float32"


def _zeroed_by_hook(timeline: Timeline, question: Question, hook: HookEffect) -> Finding:
    """Return the finding about a hook that replaced a gradient by zero, at the node or at one that sends to it."""
    text = titled(
        "the gradient of {} is zero: the hook {} makes it so", label(timeline, question.node), shown(hook.ran.name)
    )
    parts = (hook_finding(timeline, hook),)
    at = hook.at(timeline) or innermost(timeline.info(hook.ran.node))
    return Finding("changed-by-hook", text, hook.seq, hook.ran.node, parts, HOOK_FIX, at, suspected=True)


def _cancelled(timeline: Timeline, node: int, parts: Sequence[Contribution]) -> Finding:
    """Return the finding about contributions whose sum is zero: they cancel each other, or cancel earlier passes.

    An example is the last bias of a critic that is trained with the difference of two means.
    """
    which = f"its {len(parts)} contributions cancel" if len(parts) > 1 else "it cancels what passes before had added"
    text = titled(f"the gradient of {{}} is zero: {which}", label(timeline, node))
    if (difference := _equal_terms(timeline, parts)) is not None:
        return _cancelled_at(timeline, node, parts, difference, text)
    if (score := _score_of_draw(timeline, node, parts)) is not None:
        return _draw_finding(timeline, node, parts, *score, text)
    if (estimator := _straight_through(timeline, node, parts)) is not None:
        return _estimator_finding(timeline, node, parts, *estimator)
    sources = [timeline.info(part.source) for part in parts if part.source]
    lines = {(one.path, one.line): one for one in map(innermost, sources) if one is not None}
    # all contributions from one line: the gradient cancels there, not where the tensor was made
    at = next(iter(lines.values())) if len(lines) == 1 and len(parts) > 1 else innermost(timeline.info(node))
    part_findings = contributions(timeline, parts)
    return Finding("cancelled", text, parts[-1].seq, node, part_findings, _ADDED_UP.fix, at, suspected=True)


def _straight_through(timeline: Timeline, node: int, parts: Sequence[Contribution]) -> tuple[NodeInfo, NodeInfo] | None:
    """Return the sum ``w + (q - w)`` and the difference in it, which send a gradient `g` and ``-g`` to `node`.

    If nothing else arrives there, ``q`` is `node` rounded, or something that was selected by it.
    """
    infos = {part.source: timeline.info(part.source) for part in parts if part.source}
    for difference in infos.values():
        terms = [source for source, _ in difference.created.inputs]
        if difference.op.base_name != "sub" or len(terms) != 2 or terms[1] != node:
            continue
        for total in infos.values():
            if total.op.base_name == "add" and {one for one, _ in total.created.inputs} == {node, difference.node}:
                return total, difference
    return None


def _estimator_finding(
    timeline: Timeline, node: int, parts: Sequence[Contribution], total: NodeInfo, difference: NodeInfo
) -> Finding:
    """Return the finding about a straight-through estimator whose difference is not detached."""
    names = label(timeline, node), label(timeline, total.node)
    text = titled("the gradient of {} is zero: {} sends it twice, with both signs", *names)
    sent = f"{label_at(timeline, difference.node)} sends back the negative of what the sum sends"
    before = (timeline.info(one) for one in ancestors(timeline, difference.node) if one in timeline.nodes)
    sent += ", and rounding sends 0" if any(one.op.base_name in STEPPING for one in before) else ""
    part = Finding("operand", sent, difference.born, difference.node, at=innermost(difference))
    at = innermost(total)
    edit = difference_with(timeline, at, ".detach()")
    fix = "detach the difference: w + (q - w).detach() sends the gradient straight through"
    return Finding("masked", text, parts[-1].seq, node, (part,), fix, at, edit=edit)


def _equal_terms(timeline: Timeline, parts: Sequence[Contribution]) -> NodeInfo | None:
    """Return the difference of two equal results at which the paths of two contributions meet.

    The difference is 0, and its gradient goes into both terms with opposite signs.
    """
    if len(parts) != 2 or not all(part.source for part in parts):
        return None
    one, other = (descendants(timeline, part.source, parts[-1].seq) for part in parts)
    for node in sorted(one & other, key=timeline.nodes.born):
        info = timeline.info(node)
        value = info.created.first_value
        stats = value.statistics() if value is not None else None
        terms = [source for source, _ in info.created.inputs]
        if info.op.base_name != "sub" or stats is None or stats.min or stats.max or len(terms) != 2:
            continue
        if (terms[0] in one and terms[1] in other) or (terms[0] in other and terms[1] in one):
            return info
    return None


def _score_of_draw(timeline: Timeline, node: int, parts: Sequence[Contribution]) -> tuple[NodeInfo, NodeInfo] | None:
    """Return a draw ``a = mean + noise`` and the ``a - mean`` of its log probability, if they cancel for the mean."""
    infos = [timeline.info(part.source) for part in parts if part.source]
    for difference in infos:
        terms = [source for source, _ in difference.created.inputs]
        if difference.op.base_name != "sub" or len(terms) != 2 or terms[1] != node:
            continue
        draw = timeline.info(terms[0])
        while draw.op.base_name in SAME_NUMBERS and draw.created.inputs and draw.created.inputs[0][0]:
            draw = timeline.info(draw.created.inputs[0][0])
        if draw.op.base_name == "add" and node in (source for source, _ in draw.created.inputs):
            return draw, difference
    return None


def _draw_finding(
    timeline: Timeline, node: int, parts: Sequence[Contribution], draw: NodeInfo, difference: NodeInfo, text: str
) -> Finding:
    """Return the finding about the log probability of a draw through which the gradient flows, too.

    The noise is the same whatever the mean is, and so is the log probability of the draw.
    """
    one, other = label_at(timeline, draw.node), label_at(timeline, difference.node)
    means = f"it comes through the draw, {one}, and with the other sign through its log probability, {other}"
    part = Finding("draw", means, draw.born, draw.node, at=innermost(difference))
    at = innermost(draw)
    edit = renamed_call(timeline, at, "rsample", "sample")
    if edit is not None:
        fix = "sample() instead of rsample(): the score function needs a draw without a gradient"
    else:
        fix = "detach() the draw in its log probability: the score function needs a draw without a gradient"
        at = innermost(difference)
        edit = operand_edit(timeline, at, 0, ".detach()")
    return Finding("cancelled", text, parts[-1].seq, node, (part,), fix, at, suspected=True, edit=edit)


def _cancelled_at(
    timeline: Timeline, node: int, parts: Sequence[Contribution], difference: NodeInfo, text: str
) -> Finding:
    """Return the finding about a difference whose two terms are equal and both depend on a parameter."""
    terms = [timeline.info(source) for source, _ in difference.created.inputs]
    names = " and ".join(label_at(timeline, term.node) for term in terms)
    sent = f"their difference sends it {grad(parts[0].value)} and the negative of that"
    equal = f"{names} are equal, and both depend on it: {sent}"
    part = Finding("operand", equal, difference.born, difference.node, at=innermost(terms[-1]))
    fix = "detach() the term that is to be a constant, as the old log-probabilities of a policy are"
    return Finding("cancelled", text, parts[-1].seq, node, (part,), fix, innermost(difference))


def _zeroed_by_rule(timeline: Timeline, question: Question, part: Contribution, arrived_size: int) -> Finding:
    """Return the finding about a rule that changed a gradient to zero: because of its input, or of its other factor."""
    info = timeline.info(part.source)
    culprit = _zero_operand(timeline, info, part.slot)
    if culprit is not None:
        if (stuck := _both_zero(timeline, question, part, culprit)) is not None:
            return stuck
        info = _origin(timeline, culprit)
    dead = info.op.base_name in ZERO_GRADIENT_REGIONS
    reason = _of_zeros(info) if culprit is not None and not dead else _reason(timeline, info)
    if culprit is not None and (user := timeline.info(part.source)).op.base_name in DROPOUTS:
        info, reason = user, _DROPPED
    if reason is _UNKNOWN and part.value.size < arrived_size:
        reason = _ADDED_UP
        if (masked := _masked_data(timeline, question, part, info)) is not None:
            return masked
    if (term := _spent_term(timeline, info, timeline.at(part.seq).pass_nr)) is not None:
        return _spent(timeline, question, part, term)
    if dead and _inactive(info) == 1.0 and _is_maximized(timeline, info, timeline.at(part.seq).pass_nr):
        return _hinge_the_wrong_way(timeline, question, part, info)
    share = _inactive(info)
    value = info.created.first_value
    is_number = culprit is not None and info.created.kind != "op" and value is not None and value.size == 1
    if is_number:  # a single number that is 0, as an input of a neuron may be, stops only its own factor
        reason = replace(reason, fix="")
    names = label(timeline, question.node), label(timeline, info.node)
    text = titled(f"the gradient of {{}} is zero: {{}} {reason.says}", *names)
    numbers = (Number("share of zeros in its result", share, info.born),) if share is not None else ()
    how = computation(timeline, info.node).text
    facts = (
        [reason.means, f"{number(100 * share, 3)}% of its result is zero" * (reason.kind == "dead-units")]
        if share is not None
        else [reason.means]
    )
    means = "; ".join(filter(None, facts))
    parts = (
        (Finding("share", f"{label_at(timeline, info.node)}: {means}", info.born, info.node, at=innermost(info)),)
        if means
        else ()
    )
    parts = (*parts, Finding("computed", f"it computed {how}", info.born, info.node)) if how else parts
    at, suspected = innermost(info), reason.kind == "cancelled" or is_number
    is_leaf = culprit is not None and info.created.kind != "op"
    if is_leaf and (written := written_at(timeline, info, writes_zeros)) is not None:
        write = f"it was written to at {file_line(written.path, written.line)}"
        parts, at = (*parts, Finding("write", write, info.born, info.node, at=written)), written
    if reason.kind == "dead-units" and share == 1.0 and (tiny := _tiny_weight(timeline, info)) is not None:
        parts, at = (tiny, *parts), tiny.at
        reason = replace(reason, fix="an initialization by the size of the layer, such as nn.init.kaiming_uniform_")
    return Finding(reason.kind, text, part.seq, info.node, parts, reason.fix, at, numbers, suspected)


# A product whose factors are all zero: no parameter in it can ever begin to learn


def _both_zero(timeline: Timeline, question: Question, part: Contribution, culprit: NodeInfo) -> Finding | None:
    """Return the finding about a product of two trained factors that are both zero, as LoRA's A and B may be.

    It is the same for each parameter of the product: each gets only the zeros of the other factor as its gradient.
    """
    product = timeline.info(part.source)
    own = next((one for one in computation(timeline, product.node).operands if one.slot == part.slot), None)
    if own is None or not own.node or not _holds_zeros(timeline, own):
        return None
    factors = [_zero_leaves(timeline, node, product.born) for node in (own.node, culprit.node)]
    leaves = list(dict.fromkeys(leaf for factor in factors for leaf in factor))
    pass_nr = timeline.at(part.seq).pass_nr
    if (
        question.node not in factors[0]
        or not factors[1]
        or not all(_stays_zero(timeline, one, pass_nr) for one in leaves)
    ):
        return None
    lines = ((_zero_line(timeline, leaf), leaf) for leaf in leaves)  # weights first: zeros are usual for a bias
    by_line = sorted(lines, key=lambda pair: (_is_vector(timeline, pair[1]), _order(pair[0]), pair[1]))
    (at, first), *others = by_line
    others.sort(key=lambda pair: (pair[1] in factors[0]) is (first in factors[0]))  # one of the other factor first
    names = label(timeline, first), label(timeline, others[0][1])
    text = titled("{} and {} are both zero, so neither gets a gradient", *names)
    if len(others) > 1:
        text = titled(f"{{}}, {{}} and {len(others) - 1} more are zero, so none gets a gradient", *names)
    where = f"they meet in {label_at(timeline, product.node)}, where each is multiplied by the zeros of the other"
    parts = [Finding("share", f"{where}: neither can ever change", product.born, product.node, at=innermost(product))]
    for frame, leaf in ((at, first), *others):
        starts = f"{label(timeline, leaf)} starts with zeros" + at_text((frame,) if frame is not None else ())
        parts.insert(-1, Finding("operand", starts, timeline.info(leaf).born, leaf, at=frame))
    numbers = [value.size for leaf in leaves if (value := timeline.info(leaf).created.first_value) is not None]
    fix = "start one of the two factors with random numbers, and only the other with zeros: their product is still 0"
    return Finding(
        "masked", text, product.born, first, (parts[-1], *parts[:-1]), fix, at, suspected=set(numbers) == {1}
    )


def _is_vector(timeline: Timeline, leaf: int) -> bool:
    value = timeline.info(leaf).created.first_value
    return value is not None and len(value.shape) < 2


def _order(at: Frame | None) -> tuple[str, int]:
    return (at.path, at.line) if at is not None else ("", 0)


def _zero_line(timeline: Timeline, leaf: int) -> Frame | None:
    """Return the line that made the zeros of a parameter."""
    info = timeline.info(leaf)
    return written_at(timeline, info, writes_zeros) or innermost(info)


def _stays_zero(timeline: Timeline, leaf: int, pass_nr: int) -> bool:
    """Return whether all that a pass added to the ``.grad`` of a leaf is zero."""
    added = [event for event in map(timeline.event, timeline.events_of(leaf)) if isinstance(event, GradAccumulated)]
    parts = [event.part for event in added if event.pass_nr == pass_nr]
    return bool(parts) and all(map(is_zero, parts))


_MOST_OF_FACTOR = 50
"""The most nodes of a factor that are examined."""


def _zero_leaves(timeline: Timeline, node: int, n: int) -> list[int]:
    """Return the trained leaves whose zeros make a factor zero: back over tensors that are zero, or not recorded.

    The zeros are those at moment `n`.
    """
    leaves, seen, waiting = list[int](), {node}, [node]
    while waiting and len(seen) < _MOST_OF_FACTOR:
        info = timeline.info(waiting.pop())
        if info.created.kind != "op":
            if info.created.requires_grad and is_zero(timeline.memory_value(info.node, 0, n)):
                leaves.append(info.node)
            continue
        for operand in computation(timeline, info.node).operands:
            if operand.node and operand.node not in seen and (_is_unknown(operand.value) or is_zero(operand.value)):
                seen.add(operand.node)
                waiting.append(operand.node)
    return leaves


def _is_unknown(value: Value | None) -> bool:
    return value is None or not value.is_known


_MOST_UNKNOWN = 30


def _holds_zeros(timeline: Timeline, operand: Operand, most: int = _MOST_UNKNOWN) -> bool:
    """Return whether an input is zero everywhere.

    The numbers inside of one call of a library are not stored. Then a view has those of its original, and a product is
    zero if one of its factors is.
    """
    if not _is_unknown(operand.value) or not operand.node or not most:
        return is_zero(operand.value)
    op, inputs = timeline.info(operand.node).op.base_name, computation(timeline, operand.node).operands
    if op in SAME_NUMBERS:
        return any(_holds_zeros(timeline, one, most - 1) for one in inputs[:1])
    return op in PRODUCTS - {"addmm", "baddbmm"} and any(_holds_zeros(timeline, one, most - 1) for one in inputs)


_MOST_OF_SCALE = 0.2
"""The most that the rms of a tiny weight is of 1 / sqrt(fan_in), at which results are as large as inputs."""


def _tiny_weight(timeline: Timeline, info: NodeInfo) -> Finding | None:
    """Return the line that made the weight of a layer so small that only its bias decides whether units are on."""
    inputs = [timeline.info(node) for node, _ in info.created.inputs if node in timeline.nodes]
    layers = [timeline.info(node) for one in inputs for node, _ in one.created.inputs if node in timeline.nodes]
    factors = [timeline.info(node) for one in layers if one.op.base_name in ("t", "transpose")
               for node, _ in one.created.inputs if node in timeline.nodes]  # fmt: skip
    for weight in (*layers, *factors):
        value = timeline.memory_value(weight.node, 0, info.born) if weight.created.kind == "parameter" else None
        stats = value.statistics() if value is not None and len(value.shape) > 1 else None
        if value is None or stats is None or not value.size or not stats.rms:
            continue
        scale = (value.shape[0] / value.size) ** 0.5
        if stats.rms <= _MOST_OF_SCALE * scale:
            write = initial_write(timeline, weight, partial(_writes_size, size=stats.rms))
            if write is not None:
                at = write.at
                rms = f"{label(timeline, weight.node)} has an rms of {number(stats.rms)}"
                far = f"{rms}, set at {file_line(at.path, at.line)}; 1 / sqrt(fan_in) is {number(scale)}"
                return Finding("scale", far, info.born, weight.node, at=at)
    return None


def _writes_size(write: InitialWrite, size: float) -> bool:
    """Return whether a line writes to a parameter with a number of about a size: ``nn.init.normal_(w, std=0.01)``."""
    given = (*write.values, *(value for _, value in write.named))
    numbers = [part.value for value in given for part in ast.walk(value) if isinstance(part, ast.Constant)]
    sizes = [abs(part) for part in numbers if isinstance(part, int | float)]
    return write.how.endswith("_") and any(size / 2 <= part <= 2.5 * size for part in sizes)


# A hinge that is to grow: ``-relu(d_fake).mean()`` as the loss of a generator
#
# A hinge is minimized: below its margin there is nothing left to do. If it is maximized, everything is still to do
# below the margin, and there it has no gradient.


def _is_maximized(timeline: Timeline, info: NodeInfo, pass_nr: int) -> bool:
    """Return whether a loss is made of the negative of a result, by means, sums and terms that are added."""
    start = pass_started(timeline, pass_nr)
    roots, sign, node = {root for root, _ in start.roots} if start is not None else set(), 1, info.node
    for _ in range(_MOST_BETWEEN):
        if node in roots:
            return sign < 0
        users = [user for user in timeline.nodes.users(node) if timeline.info(user).created.requires_grad]
        if len(users) != 1:
            return False
        user = timeline.info(users[0])
        op, inputs = user.op.base_name, [source for source, _ in user.created.inputs]
        if op == "neg" or (op == "sub" and inputs[0] != node):
            sign = -sign
        elif op == "mul" or (op == "div" and inputs[0] == node):
            others = [one.value for one in computation(timeline, user.node).operands if one.node != node]
            stats = [value.statistics() for value in others if value is not None]
            if any(one is None or one.min < 0 < one.max for one in stats):
                return False
            sign = -sign if any(one is not None and one.max <= 0 for one in stats) else sign
        elif op not in _LINEAR - {"div"} and op != "sub":
            return False
        node = user.node
    return False


_MOST_BETWEEN = 8
_MOST_ALIKE = 5_000


def _was_always_off(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether an activation was off everywhere whenever its line ran: then nothing is lost without it."""
    origins = timeline.nodes.origins
    places = (origins.stack == info.created.stack).nonzero()[0].tolist()
    alike = (timeline.info(timeline.nodes[place]) for place in places[:_MOST_ALIKE])
    return all(_inactive(one) == 1.0 for one in alike if one.op == info.op)


def _hinge_the_wrong_way(timeline: Timeline, question: Question, part: Contribution, info: NodeInfo) -> Finding:
    names = label(timeline, question.node), label(timeline, info.node)
    text = titled("{} gets zero: {} is to grow, and is flat below 0", *names)
    below = f"{label_at(timeline, info.node)} is 0 where its input is below zero, so nothing can raise it there"
    fact = Finding("share", below, info.born, info.node, at=innermost(info))
    at = innermost(info)
    fix = "the score itself, as in -score.mean(): a hinge is for what is to fall"
    edit = without_call(timeline, at, info.op.base_name) if _was_always_off(timeline, info) else None
    return Finding("dead-units", text, part.seq, question.node, (fact,), fix, at, edit=edit)


# A loss at its minimum: all margins are satisfied, or a fit has no error

_LINEAR = SAME_NUMBERS | LISTS | {"mean", "sum", "add", "mul", "div"}
_CALLS_LOSS = re.compile(r"[lL]oss\w*\(")


def _spent_term(timeline: Timeline, info: NodeInfo, pass_nr: int) -> NodeInfo | None:
    """Return a term of the loss that is 0, its minimum, for every element; None if this is no such term.

    Between it and the loss there are only sums, means and untrained factors: behind it nothing learns.
    """
    op, start = info.op.base_name, pass_started(timeline, pass_nr)
    is_loss = op in _LEAST_ZERO or (op in SELECTIONS and _CALLS_LOSS.search(line_text(timeline, innermost(info))))
    known = _has_numbers(info)
    if start is None or not is_loss or (known and not is_zero(info.created.first_value)):
        return None
    roots, waiting = {node for node, _ in start.roots}, [info]
    while waiting:
        one = waiting.pop()
        if one.node in roots:
            return info if known or is_zero(one.created.first_value) else None
        users = map(timeline.info, timeline.nodes.users(one.node))
        waiting += [user for user in users if user.created.requires_grad and _passes_on(timeline, one, user)]
    return None


def _has_numbers(info: NodeInfo) -> bool:
    """Return whether numbers of its result were stored. They are not inside of one call of a library."""
    value = info.created.first_value
    return value is not None and value.statistics() is not None


def _passes_on(timeline: Timeline, one: NodeInfo, user: NodeInfo) -> bool:
    op = user.op.base_name
    if op in _LEAST_ZERO:
        return is_zero(user.created.first_value) or not _has_numbers(user)
    others = [node for node, _ in user.created.inputs if node and node != one.node]
    is_factor = op in ("mul", "div") and any(timeline.info(node).created.requires_grad for node in others)
    return op in _LINEAR and not is_factor


def _spent(timeline: Timeline, question: Question, part: Contribution, term: NodeInfo) -> Finding:
    names = label(timeline, question.node), label(timeline, term.node)
    text = titled("the gradient of {} is zero: the loss {} is 0", *names)
    how = computation(timeline, term.node).text
    every = f"{label_at(timeline, term.node)} is 0 for every element, and has nothing left to learn"
    parts = [Finding("share", every, term.born, term.node)]
    parts += [Finding("computed", f"it computed {how}", term.born, term.node)] if how else []
    return Finding("spent-loss", text, part.seq, term.node, tuple(parts), at=innermost(term))


def _masked_data(timeline: Timeline, question: Question, part: Contribution, info: NodeInfo) -> Finding | None:
    """Return the finding about a product whose data is zero where a gradient arrives, and the other way round.

    Then a mask lets only the padding through. It is most likely meant the other way round.
    """
    arrived = arriving_gradient(timeline, part)
    operands = [one for one in computation(timeline, info.node).operands if one.slot != part.slot and one.node]
    stats = arrived.statistics() if arrived is not None else None
    is_product = multiplies(info.op.base_name, part.slot)
    if not is_product or arrived is None or stats is None or not 0 < stats.zero < arrived.size:
        return None
    for operand in operands:
        if not multiplies(info.op.base_name, operand.slot):
            continue
        of_data = operand.value.statistics() if operand.value is not None else None
        if operand.value is None or of_data is None or not 0 < of_data.zero < operand.value.size:
            continue
        shares = of_data.zero / operand.value.size, stats.zero / arrived.size
        overlaps = _have_common_element(timeline, info, operand.value, arrived, part.slot < operand.slot)
        if sum(shares) >= _ALL_OF_ONE and not overlaps:
            finding = _masked_finding(timeline, question, part, info, operand.node, shares)
            return replace(finding, suspected=overlaps is None)
    return None


def _have_common_element(
    timeline: Timeline, info: NodeInfo, data: Value, arrived: Value, is_first: bool
) -> bool | None:
    """Return whether nonzero data is multiplied by a nonzero gradient; None if the elements are not known.

    A product of matrices multiplies row by row, or column by column for its first input.
    """
    arrays = timeline.array(data), timeline.array(arrived)
    if arrays[0] is None or arrays[1] is None:
        return None
    nonzero = arrays[0] != 0, arrays[1] != 0
    if info.op.base_name == "mul" or info.op.base_name in DROPOUTS:
        try:
            return bool((nonzero[0] & nonzero[1]).any())
        except ValueError:  # of a result that was summed for an input of another shape
            return None
    if info.op.base_name not in ("mm", "addmm", "bmm", "baddbmm", "matmul") or min(one.ndim for one in nonzero) < 2:
        return None
    rows = [one.any(-2 if is_first else -1) for one in nonzero]
    return bool((rows[0] & rows[1]).any()) if rows[0].shape == rows[1].shape else None


_ALL_OF_ONE = 0.999
"""The least sum of two shares of zeros if no element of both is nonzero."""


def _masked_finding(
    timeline: Timeline, question: Question, part: Contribution, info: NodeInfo, data: int, shares: tuple[float, float]
) -> Finding:
    names = label(timeline, question.node), label(timeline, data)
    text = titled("the gradient of {} is zero: it arrives only where {} is 0", *names)
    percent = [number(100 * share, 3) for share in shares]
    where = f"{label_at(timeline, data)} is {percent[0]}% zero"
    fact = (
        f"{where}, and {percent[1]}% of what arrives at {label(timeline, info.node)} is zero: nowhere are both nonzero"
    )
    mask = _mask_of(timeline, timeline.at(part.seq).pass_nr, info)
    parts: tuple[Finding, ...] = (Finding("share", fact, part.seq, info.node, at=innermost(info)),)
    at, fix = innermost(info), "look at what selects the rows: only those whose data is 0 get a gradient"
    if mask is not None:
        at, name = innermost(mask), label_at(timeline, mask.node)
        parts = (*parts, Finding("elsewhere", f"{name} is a mask on the way to the loss", mask.born, mask.node, at=at))
        fix = "invert the mask: it keeps the elements whose data is 0"
        if _is_for_attention(timeline, mask):
            fix = "invert the mask: in this attention True marks the elements that are left out"
    return Finding("masked", text, part.seq, question.node, parts, fix, at)


def _mask_of(timeline: Timeline, pass_nr: int, info: NodeInfo) -> NodeInfo | None:
    """Return the first mask that a program made between an operation and a pass: a tensor of booleans with a name."""
    start = start_of_pass(timeline, pass_nr)
    later = timeline.nodes.all_created([node for node in timeline.nodes if node > info.node])
    masks = [node for node, created in later if (value := created.first_value) is not None and value.dtype == "bool"]
    between = [one for one in map(timeline.info, masks) if info.born < one.born < start]
    return next((one for one in between if one.name), next(iter(between), None))


def _is_for_attention(timeline: Timeline, mask: NodeInfo) -> bool:
    """Return whether a layer of attention runs after a mask was made."""
    entered = timeline.select((ScopeEntered,), mask.born)
    return any(event.kind == "MultiheadAttention" or event.kind.startswith("Transformer") for _, event in entered)


def _zero_operand(timeline: Timeline, info: NodeInfo, slot: int) -> NodeInfo | None:
    """Return the other input of a product, or the dividend of a divisor, if that is zero everywhere."""
    op = info.op.base_name
    for operand in computation(timeline, info.node).operands:
        is_factor = multiplies(op, slot) and multiplies(op, operand.slot)
        if operand.slot == slot or not operand.node or not (is_factor or (op == "div" and operand.slot == 0)):
            continue
        if _holds_zeros(timeline, operand):
            return timeline.info(operand.node)
    return None


def _origin(timeline: Timeline, info: NodeInfo) -> NodeInfo:
    """Return the origin of the zeros of a tensor: back over inputs that are zero everywhere."""
    while True:
        zeros = (operand.node for operand in computation(timeline, info.node).operands if is_zero(operand.value))
        before = next((node for node in zeros if node), 0)
        if not before or info.op.base_name in ZERO_GRADIENT_REGIONS:
            return info
        info = timeline.info(before)


_DROPPED = _Reason("masked", "drops every element", "a smaller p: at 1 nothing is left", "its mask is 0 everywhere")


def _of_zeros(info: NodeInfo) -> _Reason:
    fix = "look at where its zeros come from"
    if info.op.base_name in CLAMPS:
        fix = _CLAMPED_FIX
    elif info.created.kind != "op" and info.created.requires_grad:
        fix = "start it with small random numbers instead of zeros"
    return _Reason("masked", "is zero everywhere", fix, "what arrives is multiplied by its zeros")


def _reason(timeline: Timeline, info: NodeInfo) -> _Reason:
    op = info.op.base_name
    if op in ZERO_GRADIENT_REGIONS:
        off = "is off everywhere" if _inactive(info) == 1.0 else "is off where one arrives"
        means = "none of its inputs is above zero" if _inactive(info) == 1.0 else "it lets no gradient through there"
        fix = "a smaller learning rate, another start for the bias, or leaky_relu, which lets a little through"
        return _Reason("dead-units", off, fix, means)
    if op in CLAMPS:
        means = "every element that one arrives at is held at the border, where it is constant"
        return _Reason("clamped", "holds its elements", _CLAMPED_FIX, means)
    if op in SOFTMAXES and _is_over_one(info):
        fix = "softmax over a dimension with more elements, or sigmoid for a single score"
        return _Reason("cancelled", "is over one element each", fix, "its result is always the same")
    if op in SOFTMAXES and not _is_one_hot(timeline, info):
        fix = "a loss in which the elements count differently; a sum over all of them is always 1"
        means = "the same arrives for every element, which changes nothing in its result"
        return _Reason("cancelled", "gets equal gradients", fix, means)
    if op in FLAT:
        fix = "smaller inputs: normalize them, scale the weights down, or use the loss that takes logits"
        return _Reason("saturated", "is flat at its inputs", fix, "its derivative there rounds to zero")
    if op in DRAWS:
        fix = "use the probabilities themselves, a relaxed sample (gumbel_softmax), or the log_prob of the draw"
        return _Reason("masked", "is a random draw", fix, "what is drawn has no gradient for its probabilities")
    if op in STEPPING:
        return _Reason("masked", "is flat between steps", "a smooth function, or a straight-through estimate")
    if op in SELECTIONS:
        return _Reason(
            "masked", "chose other elements", "check the mask or the index", "its other elements get nothing"
        )
    return _UNKNOWN


def _is_over_one(info: NodeInfo) -> bool:
    """Return whether the dimension of a softmax has a single element."""
    value, dim = info.created.first_value, dict(info.created.attrs).get("dim")
    return value is not None and isinstance(dim, int) and value.shape[dim : dim + 1 or None] == (1,)


def _is_one_hot(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether every element of a softmax is 0 or 1; True if unknown."""
    value = info.created.first_value
    array = timeline.array(value) if value is not None else None
    if array is None or array.dtype.kind != "f":
        return True
    chances = np.exp(array) if info.op.name == "log_softmax" else array
    return bool(np.all((chances < _TINY) | (chances > 1 - _TINY)))


def _inactive(info: NodeInfo) -> float | None:
    value = info.created.first_value
    stats = value.statistics() if value is not None and value.size else None
    return stats.zero / value.size if stats is not None and value is not None else None
