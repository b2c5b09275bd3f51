"""The ``.grad`` of a node as a sum over backward passes, and what the program wrote to it since.

The answer to ``why x.grad``: what earlier passes have left in it, the contributions of the last pass, the uses that
sent nothing, and the writes after that. `pass_contributions` has the contributions within one pass; `grad_history`
reads what each pass and each write did to a ``.grad``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gviz.events import BackwardFinished, BackwardStarted, GradAccumulated, GradFlowed, GradSet, OptimizerStepped
from gviz.explain.backward_passes import call_of_pass, pass_started, roots_of_pass, start_of_pass
from gviz.explain.display_names import label, label_at
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.gradient_values.nan_origin import suspected_source
from gviz.explain.findings.missing_gradient.parameters_without_optimizer import unused_gradient
from gviz.explain.grad_history import (
    CLEARED,
    Accumulation,
    GradWrite,
    accumulation,
    is_zero,
    passes_added,
    passes_in,
    write_effect,
    writes_since_pass,
)
from gviz.explain.hook_effects import hook_findings
from gviz.explain.node_question import Question
from gviz.explain.parameter_updates import has_stepped
from gviz.explain.pass_contributions import by_loss, contribution, contributions, with_agreement
from gviz.explain.program_text import line_text
from gviz.explain.source_frames import at_text, innermost
from gviz.explain.tracking import ancestors, cuts_after, why_untracked
from gviz.trace.graph_state import Contribution, NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped
from gviz.values.value import Value
from gviz.values.value_text import grad, share

_CLEAR = "zero_grad() before each backward, if the passes should not add up"
FEW_PASSES = 3
"""The most earlier passes that are listed one by one; of more, their number comes first."""

MOST_PASSES = 20
"""The most earlier passes that are listed below their number: the latest."""

_ROOM = 40
"""Characters for the addition of one of many passes: a few numbers, or their norm."""

Added = tuple[int, GradAccumulated]
"""The event of a pass's addition to a ``.grad``."""


def sent_contribution(question: Question) -> Finding:
    """Return what the node sends in this event."""
    event = question.moment.event
    assert isinstance(event, GradFlowed)
    return contribution(question.timeline, Contribution(event.source, event.slot, event.part, question.moment.n))


def incoming_sum(question: Question) -> Finding | None:
    """Return what has arrived so far in a pass, as a sum."""
    timeline, output = question.timeline, question.output
    if output.grad is not None:
        return None
    missing = output.expected - len(output.parts)
    still = f", {missing} of {output.expected} contributions have not arrived yet" if missing > 0 else ""
    kept = "" if question.info.created.kind != "op" else "; .grad keeps it only after retain_grad()"
    text = f"{label(timeline, question.node)}: the gradient is {grad(output.incoming)}{still}{kept}"
    parts = (*contributions(timeline, output.parts), *_hooks(question))
    return Finding("incoming", text, output.parts[-1].seq, question.node, parts, at=innermost(question.info))


def grad_sum(question: Question) -> Finding | None:
    """Return the ``.grad`` of a node as a sum."""
    timeline, node, output = question.timeline, question.node, question.output
    if output.grad is None:
        return None
    silent = silent_uses(timeline, node, output.parts) if question.info.created.kind != "op" else ()
    of_losses = by_loss(timeline, node, output.parts, output.incoming)
    parts = (*silent, *of_losses, *contributions(timeline, output.parts, output.incoming), *_hooks(question))
    text, at = f"{label(timeline, node)}: .grad is {grad(output.grad)}", innermost(question.info)
    before = accumulation(timeline, node, output)
    unused = unused_gradient(timeline, node, question.moment.n) if question.info.created.kind != "op" else None
    parts = (*_passes_since(question), *parts)
    if before is not None:
        earlier = passes_added(timeline, node, output.grad_seq)[:-1]
        if len(earlier) > FEW_PASSES:
            parts = (_sum_of_passes(node, earlier, output.grad_seq), *parts, _further_passes(timeline, node, earlier))
        else:
            parts = (*_earlier_passes(timeline, node, output.grad, earlier, before), *parts)
    if unused is not None:
        parts = (replace(unused, fix=""), *parts)
    adds = before is not None and not (is_zero(before.before) and _was_cleared(timeline, before.event))
    reached = adds and not has_stepped(timeline, question.moment.n)
    clear = _CLEAR
    if adds and (names := _losses_added(timeline, node, output.grad_seq)):
        text_of_losses = f"passes of {len(names)} losses add up in it: {', '.join(names[:-1])} and {names[-1]}"
        parts = (Finding("losses", text_of_losses, output.grad_seq, node), *parts)
        clear = f"detach() what {names[-2]} must not reach, or {_CLEAR}"
    if adds and before is not None and (cleared := _clearing_of_used(timeline, node, output.grad_seq, before.event)):
        parts, clear = (*parts, cleared), ""
    fix = clear if adds and (unused is None or reached) else unused.fix if unused is not None else ""
    return Finding("gradient", text, output.grad_seq, node, parts, fix, at)


def _passes_since(question: Question) -> Iterator[Finding]:
    """Yield which pass added last to the ``.grad``, if a later one has begun and has brought nothing to it."""
    timeline, added, n = question.timeline, question.timeline.event(question.output.grad_seq), question.moment.n
    if not isinstance(added, GradAccumulated):
        return
    later = [(seq, event) for seq, event in timeline.select((BackwardStarted,), question.output.grad_seq, n + 1)]
    seq, last = next(((seq, event) for seq, event in reversed(later) if not event.inputs), (0, None))
    if last is not None:
        ended = any(event.pass_nr == last.pass_nr for _, event in timeline.select((BackwardFinished,), seq, n + 1))
        nothing = "has brought nothing to it" + " so far" * (not ended)
        text = f"it is from {_pass_words(timeline, added.pass_nr)}; {_pass_words(timeline, last.pass_nr)} {nothing}"
        yield Finding("older-pass", text, seq, question.node)


def _hooks(question: Question) -> Iterator[Finding]:
    """Yield the hooks that received the sum of the contributions, in the pass that brought them."""
    parts = question.output.parts
    if parts:
        pass_nr = question.timeline.at(parts[-1].seq).pass_nr
        yield from hook_findings(question.timeline, question.node, question.output_nr, pass_nr, question.moment.n)


def _earlier_passes(
    timeline: Timeline, node: int, total: Value, added: Sequence[Added], before: Accumulation
) -> Iterator[Finding]:
    """Yield the value before the last pass, split by pass if that is known."""
    passes = [(n, event.part, event.pass_nr) for n, event in added]
    for n, part, pass_nr in passes or [(before.event, before.before, before.since)]:
        since = f", from {_pass_words(timeline, pass_nr)}" if pass_nr else ""
        setter = timeline.event(n) if n else None
        if is_zero(part) and isinstance(setter, GradSet):
            had = f"{grad(part)} was there before: it was set to zero{at_text(timeline.stack(setter.stack))}"
        else:
            had = f"{grad(part)} was there before{since}, and nothing has cleared it"
        yield with_agreement(timeline, Finding("accumulated", had, n, node), part, total)


def _was_cleared(timeline: Timeline, seq: int) -> bool:
    """Return whether the program itself wrote what was in a ``.grad``, by event `seq`."""
    return bool(seq) and isinstance(timeline.event(seq), GradSet)


def _clearing_of_used(timeline: Timeline, node: int, seq: int, before: int) -> Finding | None:
    """Return how such a sum is always cleared before a step can use it, after a step has used its first part.

    So it is for the discriminator of a GAN: the loss of the generator brings a gradient to it, too, which is cleared
    with the rest before its own next pass.
    """
    steps = [n for n, step in timeline.select((OptimizerStepped,)) if node in step.parameters]
    used = next((n for n in steps if before < n < seq), 0)
    latest = timeline.event(seq)
    if not used or not isinstance(latest, GradAccumulated):
        return None
    call = call_of_pass(timeline, latest.pass_nr)
    clearing, is_sum = 0, False
    for n in sorted({*timeline.events_of(node), *steps}):
        match timeline.event(n):
            case GradAccumulated(value=value, pass_nr=pass_nr) if value is not None:
                is_sum |= call_of_pass(timeline, pass_nr) == call
            case GradSet(how=how) if how in CLEARED:
                clearing, is_sum = (n if is_sum else clearing), False
            case GradSet():
                return None
            case OptimizerStepped() if is_sum:
                return None
    setter, step = timeline.event(clearing) if clearing else None, timeline.event(used)
    if not isinstance(setter, GradSet) or not isinstance(step, OptimizerStepped):
        return None
    places = [at_text(timeline.stack(one.stack)) for one in (step, setter)]
    text = f"the step{places[0]} has used what was there, and the sum is always cleared{places[1]} before the next step"
    return Finding("cleared", text, clearing, node)


def _losses_added(timeline: Timeline, node: int, seq: int) -> list[str]:
    """Return the losses whose passes add up in a ``.grad``, the latest last; empty if there is only one.

    Each is the loss of the latest pass of its call.
    """
    latest = dict[int, int]()
    for pass_nr in passes_in(timeline, node, seq):
        latest.pop(call := call_of_pass(timeline, pass_nr), None)
        latest[call] = pass_nr
    roots = list(dict.fromkeys(root for number in latest.values() for root in roots_of_pass(timeline, number)[:1]))
    are_several = len({timeline.info(root).title for root in roots}) > 1
    return [label(timeline, root) for root in roots] if are_several else []


def _sum_of_passes(node: int, earlier: Sequence[Added], seq: int) -> Finding:
    """Return the number of passes that have added up since the ``.grad`` was last cleared, and the first of them."""
    since = earlier[0][1].pass_nr
    text = f".grad is the sum of {len(earlier) + 1:,} backward passes: nothing has cleared it since pass {since}"
    return Finding("sum", text, seq, node, numbers=(Number("passes", len(earlier) + 1, seq),))


def _further_passes(timeline: Timeline, node: int, earlier: Sequence[Added]) -> Finding:
    """Return the additions of earlier passes: of a few in one row, of more below it."""
    last = list(reversed(earlier[-MOST_PASSES:]))
    texts = ", ".join(f"{share(event.part, _ROOM)} in pass {event.pass_nr}" for _, event in last[:FEW_PASSES])
    text = f"before it {texts}, and {_more_passes(len(earlier) - FEW_PASSES)}"
    parts = [
        Finding("accumulated", f"{share(event.part, _ROOM)} from {_pass_words(timeline, event.pass_nr)}", n, node)
        for n, event in last
    ]
    if len(earlier) > MOST_PASSES:
        parts.append(Finding("more", f"and from {_more_passes(len(earlier) - MOST_PASSES)} before these"))
    return Finding("earlier", text, last[0][0], node, tuple(parts))


def _more_passes(count: int) -> str:
    return f"{count:,} more pass{'' if count == 1 else 'es'}"


def _pass_words(timeline: Timeline, pass_nr: int) -> str:
    """Return ``backward pass 1 of #7 loss = mean at train.py:9``."""
    started = pass_started(timeline, pass_nr)
    roots = started.roots if started is not None else ()
    return f"backward pass {pass_nr}" + (f" of {label_at(timeline, roots[0][0])}" if roots and roots[0][0] else "")


# A contribution of a pass that is not in the ``.grad``


def not_added(question: Question) -> Finding | None:
    """Return the finding about a ``.grad`` to which the last pass that reached the node has not added.

    It shows how the ``.grad`` was made, and what has arrived.
    """
    pass_nr, output = _later_pass(question), question.output
    if output.grad is None or not pass_nr:
        return None
    then = question.at(output.grad_seq)
    finding = changed_by_program(then) or grad_sum(then)
    parts = (*contributions(question.timeline, output.parts), *_hooks(question))
    last = output.parts[-1].seq if parts else start_of_pass(question.timeline, pass_nr)
    missing = Finding("incoming", _not_yet(question, pass_nr), last, question.node, parts)
    return replace(finding, parts=(missing, *finding.parts)) if finding is not None else None


def _later_pass(question: Question) -> int:
    """Return the pass of the node's state if it began after the ``.grad`` was set, or else 0."""
    pass_nr = question.state.pass_nr if question.state is not None else 0
    return pass_nr if 0 < question.output.grad_seq < start_of_pass(question.timeline, pass_nr) else 0


def _not_yet(question: Question, pass_nr: int) -> str:
    """Return what has arrived from a pass that has not added it, and why it has not."""
    timeline, parts = question.timeline, question.output.parts
    which = _pass_words(timeline, pass_nr)
    arrived = f"{grad(question.output.incoming)} has arrived in {which}"
    ends = timeline.select((BackwardFinished,), start_of_pass(timeline, pass_nr), question.moment.n + 1)
    end = next((event for _, event in ends if event.pass_nr == pass_nr), None)
    if not parts:
        return f"{which} has {'not come to it yet' if end is None else 'brought nothing to it'}{_failed(end)}"
    if end is None:
        return f"{arrived}, and is not added yet"
    return f"{arrived}, and was not added{_failed(end) or ': this pass adds to no .grad'}"


def _failed(end: BackwardFinished | None) -> str:
    return ": it ended with an error" if end is not None and end.error else ""


# A ``.grad`` that the program has changed after a pass: clipped, scaled, cleared, replaced

MOST_WRITES = 3
"""The most writes that are listed one by one: the latest."""

_WIDTH = 80


def changed_by_program(question: Question) -> Finding | None:
    """Return the effect of the writes since the last pass on the numbers, and the origin of the numbers before them."""
    timeline, output = question.timeline, question.output
    if output.grad is None or not output.grad_seq or not isinstance(timeline.event(output.grad_seq), GradSet):
        return None
    filled, writes = writes_since_pass(timeline, question.node, output.grad_seq)
    if not writes:
        return grad_sum(question.at(filled)) if filled else _set_before_recording(question)
    last = writes[-1]
    how = f"changed {len(writes)} times, last" if len(writes) > 1 else write_effect(timeline, last, brief=bool(filled))
    origin = f"backward made it {grad(writes[0].before)}, and then " if filled else ""
    text = f"{label(timeline, question.node)}: .grad is {grad(output.grad)}: {origin}it was {how}{at_text(last.frames)}"
    parts = (
        *_write_findings(timeline, question.node, writes),
        *suspected_source(timeline, last),
        *_before_writes(question, filled),
    )
    return Finding("assigned", text, last.seq, question.node, parts, at=last.at or innermost(question.info))


def _set_before_recording(question: Question) -> Finding:
    """Return the finding about a ``.grad`` that is older than the recording."""
    text = (
        f"{label(question.timeline, question.node)}: .grad is {grad(question.output.grad)}, set before it was recorded"
    )
    return Finding("assigned", text, question.output.grad_seq, question.node, at=innermost(question.info))


def _write_findings(timeline: Timeline, node: int, writes: list[GradWrite]) -> Iterator[Finding]:
    """Yield the writes with their source lines; the effect of a single write is in the title."""
    if len(writes) > MOST_WRITES:
        yield Finding("more", f"{len(writes) - MOST_WRITES} writes before these")
    for write in writes[-MOST_WRITES:]:
        line = line_text(timeline, write.at).strip()
        words = (f"{write_effect(timeline, write)}{at_text(write.frames)}" if len(writes) > 1 else "", line)
        if text := ": ".join(filter(None, words)):
            yield Finding("write", clipped(text, _WIDTH), write.seq, node, at=write.at)


def _before_writes(question: Question, filled: int) -> Iterator[Finding]:
    """Yield the result of backward before the program wrote to it."""
    if filled and (finding := grad_sum(question.at(filled))) is not None:
        value = question.at(filled).output.grad
        yield replace(finding, text=f"before that it was {grad(value)}, from backward", fix="")


# ----------------------------------------------------------------------------------------------------------------------
# Uses of a tensor that sent no gradient, because their path to the loss is cut.


def silent_uses(timeline: Timeline, node: int, parts: Sequence[Contribution]) -> Iterator[Finding]:
    """Yield, for each line that cuts off uses, how many of the reachable uses sent nothing.

    `parts` are the contributions that the pass has brought to the node.
    """
    window = _forward_before(timeline, parts)
    if window is None:
        return
    sent = {part.source for part in parts}
    users = (user for user in timeline.nodes.users(node) if timeline.nodes.born(user) in window)
    uses = [user for user in users if _is_use(timeline, node, user)]
    silent = [use for use in uses if use not in sent]
    if not silent:
        return
    lines = [(cuts, _cut_off(timeline, silent, cuts, window)) for cuts in _lines_of_cuts(timeline, window)]
    for cuts, cut_off in sorted((line for line in lines if line[1]), key=lambda line: line[1][0]):
        last = [cut for cut in cuts_after(timeline, cut_off[-1], window) if cut.node in cuts][-1]
        yield _silent_finding(timeline, last, len(cut_off), len(uses))


def _is_use(timeline: Timeline, node: int, user: int) -> bool:
    """Return whether a node was made from another in a forward; a step of an optimizer only writes to it."""
    record, own = timeline.info(user).created, timeline.info(node).created.outputs
    return not record.during[0] and not (
        record.untracked and {o.storage for o in record.outputs} & {o.storage for o in own}
    )


def _lines_of_cuts(timeline: Timeline, window: range) -> list[set[int]]:
    """Return the untracked operations in a `window` that lead to the root of the following pass, grouped by line."""
    lines: defaultdict[int, set[int]] = defaultdict(set)
    for node in sorted(_leading_to_pass(timeline, window.stop)):
        if timeline.nodes.born(node) in window and (created := timeline.nodes.created(node)).untracked:
            lines[created.stack].add(node)
    return list(lines.values())


def _cut_off(timeline: Timeline, uses: Sequence[int], cuts: set[int], window: range) -> list[int]:
    """Return the uses with a path to one of the cuts, found by one walk backwards from the cuts."""
    seen, waiting = {*cuts}, [*cuts]
    while waiting:
        for source in timeline.nodes.inputs_by_node.get(waiting.pop(), ()):
            known = source and source not in seen and timeline.nodes.born(source) in window
            if known and not timeline.nodes.created(source).untracked:
                seen.add(source)
                waiting.append(source)
    return [use for use in uses if use in seen]


def _forward_before(timeline: Timeline, parts: Sequence[Contribution]) -> range | None:
    """Return the events between the pass that brought contributions and the pass before it."""
    at = timeline.at(parts[-1].seq).pass_nr if parts else 0
    start = start_of_pass(timeline, at)
    ends = (phase.end for phase in timeline.phases if phase.kind == "backward" and phase.end < start)
    return range(max(ends, default=0) + 1, start) if at else None


def _leading_to_pass(timeline: Timeline, start: int) -> set[int]:
    started = timeline.event(start)
    roots = [node for node, _ in started.roots if node] if isinstance(started, BackwardStarted) else []
    return {*roots, *ancestors(timeline, *roots)}


def _silent_finding(timeline: Timeline, cut: NodeInfo, silent: int, count: int) -> Finding:
    """Return how many uses the line of a cut cuts off: ``2 of 5 uses``."""
    at = f"{label(timeline, cut.node)}{at_text(cut.frames)}: {why_untracked(cut.created)}"
    text = f"{silent} of its {count} uses sent nothing: cut at {at}"
    return Finding("silent", text, cut.born, cut.node, at=innermost(cut))
