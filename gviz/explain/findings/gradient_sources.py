"""A gradient as a sum: of earlier passes, contributions of this pass, and writes of the program."""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gviz.events import BackwardFinished, GradAccumulated, GradFlowed, GradSet, HookRan
from gviz.explain.backward_passes import pass_started, start_of_pass
from gviz.explain.contributions import by_loss, contribution, contributions, silent_uses, with_agreement
from gviz.explain.display_names import at_text, innermost, label, label_at, titled
from gviz.explain.edit import Edit, lines_replaced
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.nan_origin import suspected_source
from gviz.explain.findings.optimizer_step import unused_gradient
from gviz.explain.grad_history import (
    Accumulation,
    GradWrite,
    accumulation,
    passes_added,
    write_effect,
    writes_since_pass,
)
from gviz.explain.hook_effects import HOOK_FIX, hook_finding, hook_findings, hooks_of
from gviz.explain.node_question import Question
from gviz.explain.parameter_updates import has_stepped
from gviz.explain.program_text import (
    line_text,
    names_read,
    statement_at,
)
from gviz.explain.recording_overview import Survey
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import Contribution
from gviz.trace.timeline import Timeline
from gviz.values.number_text import times_text
from gviz.values.plain_text import clipped, shown
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
    if before is not None:
        earlier = passes_added(timeline, node, output.grad_seq)[:-1]
        if len(earlier) > FEW_PASSES:
            parts = (_sum_of_passes(node, earlier, output.grad_seq), *parts, _further_passes(timeline, node, earlier))
        else:
            parts = (*_earlier_passes(timeline, node, output.grad, earlier, before), *parts)
    if unused is not None:
        parts = (replace(unused, fix=""), *parts)
    reached = before is not None and not has_stepped(timeline, question.moment.n)
    fix = _CLEAR if before is not None and (unused is None or reached) else unused.fix if unused is not None else ""
    return Finding("gradient", text, output.grad_seq, node, parts, fix, at)


def _hooks(question: Question) -> Iterator[Finding]:
    """Yield the hooks that received the sum of the contributions, in the pass that brought them."""
    parts = question.output.parts
    if parts:
        pass_nr = question.timeline.at(parts[-1].seq).pass_nr
        yield from hook_findings(question.timeline, question.node, question.output_nr, pass_nr, question.moment.n)


def turning_hooks(survey: Survey) -> Iterator[Finding | None]:
    """Yield hooks that change an incoming gradient to zero or reverse it: each once, at the first such gradient.

    Either may be intended: to freeze a part of a tensor, or as the gradient reversal of domain adaptation.
    """
    yield from _hooks_again(survey)
    timeline, seen = survey.timeline, set[tuple[str, int]]()
    for seq, ran in timeline.select((HookRan,)):
        if ran.value is None or ran.when not in ("tensor", "pre") or ran.node not in timeline.nodes:
            continue
        info = timeline.info(ran.node)
        key = ran.name, info.created.stack
        if key in seen or len(seen) >= _MOST_JUDGED:
            continue
        yield None
        seen.add(key)
        effect = next(one for one in hooks_of(timeline, ran.node, ran.output_nr, ran.pass_nr, seq) if one.seq == seq)
        factor = effect.factor(timeline)
        if factor is None:
            factor = _statistics_factor(effect.before, effect.after)
        if effect.is_zeroing or effect.is_opposite(timeline) or (factor is not None and factor < 0):
            does = "makes zero of" if effect.is_zeroing else "turns round"
            text = titled(f"the hook {{}} {does} the gradient of {{}}", shown(ran.name), label(timeline, ran.node))
            at, fix = effect.at(timeline) or innermost(info), HOOK_FIX
            parts: tuple[Finding, ...] = (hook_finding(timeline, effect),)
            uses = [user for user in timeline.nodes.users(ran.node) if timeline.info(user).created.requires_grad]
            turn = max((timeline.info(user).iteration for user in uses if timeline.nodes.born(user) < seq), default=0)
            uses = [user for user in uses if timeline.info(user).iteration == turn]  # of the others it gets others
            if len(uses) > 1:
                named = ", ".join(label_at(timeline, use) for use in uses[:_MOST_USES]) + ", …" * (
                    len(uses) > _MOST_USES
                )
                parts = (
                    *parts,
                    Finding("elsewhere", f"it changes the gradients of all {len(uses)} uses: {named}", seq),
                )
                fix = "hook a tensor that only one use gets, h = x.view_as(x), if the others are to keep their gradient"
            yield Finding("changed-by-hook", text, seq, ran.node, parts, fix, at, suspected=True)


_MOST_JUDGED = 100
_MOST_USES = 3


def _statistics_factor(before: Value | None, after: Value | None) -> float | None:
    """Return a negative factor that turns all statistics of one value into those of another; None if there is none."""
    was, became = (value.statistics() if value is not None and value.size > 1 else None for value in (before, after))
    if was is None or became is None or was.rms == 0 or not math.isfinite(was.rms) or was.zero != became.zero:
        return None
    factor = -became.rms / was.rms
    pairs = ((was.max, became.min), (was.min, became.max), (was.mean, became.mean))
    near = all(math.isclose(factor * old, new, rel_tol=1e-3, abs_tol=1e-4 * became.rms) for old, new in pairs)
    return factor if near and not math.isclose(was.max, -was.min, rel_tol=1e-3) else None


def _hooks_again(survey: Survey) -> Iterator[Finding | None]:
    """Yield hooks that one line registered several times on one tensor. In one pass each of them ran and changed it.

    If their number grows from pass to pass, the loop registers them again and again, which is surely a mistake.
    """
    timeline = survey.timeline
    ran: defaultdict[tuple[int, int, int], list[tuple[int, HookRan]]] = defaultdict(list)
    for seq, event in timeline.select((HookRan,)):
        if event.stack and event.value is not None and event.node in timeline.nodes:
            ran[event.pass_nr, event.node, event.stack].append((seq, event))
    most: dict[tuple[int, int], list[tuple[int, HookRan]]] = {}
    counts: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for (_, node, stack), runs in ran.items():
        counts[node, stack].append(len(runs))
        if len(runs) > max(1, len(most.get((node, stack), ()))) and len({event.output_nr for _, event in runs}) == 1:
            most[node, stack] = runs
    for (node, stack), runs in most.items():
        yield None
        frames = timeline.stack(stack)
        first, last = runs[0][1], runs[-1][0]
        names = shown(first.name), label(timeline, node)
        text = titled(f"the hook {{}} of {{}} ran {len(runs)} times in one backward pass", *names)
        grows = counts[node, stack][0] < counts[node, stack][-1]
        grown = f", and {times_text(counts[node, stack][0])} in the first pass" if grows else ""
        often = Finding("hook", f"it was registered as often{at_text(frames)}{grown}", last, node)
        fix = "register it once, in __init__ or before the loop, or remove() the handle after each pass"
        numbers = (Number("hooks", len(runs), last),)
        at = frames[0] if frames else None
        edit = _done_once(timeline, at) if grows else None
        yield Finding("changed-by-hook", text, last, node, (often,), fix, at, numbers, suspected=not grows, edit=edit)


def _earlier_passes(
    timeline: Timeline, node: int, total: Value, added: Sequence[Added], before: Accumulation
) -> Iterator[Finding]:
    """Yield the value before the last pass, split by pass if that is known."""
    passes = [(n, event.part, event.pass_nr) for n, event in added]
    for n, part, pass_nr in passes or [(before.event, before.before, before.since)]:
        since = f", from {_pass_words(timeline, pass_nr)}" if pass_nr else ""
        had = f"{grad(part)} was there before{since}, and nothing has cleared it"
        yield with_agreement(timeline, Finding("accumulated", had, n, node), part, total)


def _sum_of_passes(node: int, earlier: Sequence[Added], seq: int) -> Finding:
    """Return the number of passes that have added up since the ``.grad`` was last cleared, and the first of them."""
    since = earlier[0][1].pass_nr
    text = f".grad is the sum of {len(earlier) + 1:,} backward passes: nothing has cleared it since pass {since}"
    return Finding("sum", text, seq, node, numbers=(Number("passes", len(earlier) + 1, seq),))


def _further_passes(timeline: Timeline, node: int, earlier: Sequence[Added]) -> Finding:
    """Return the additions of earlier passes: of a few in one row, of more below it."""
    last = list(reversed(earlier[-MOST_PASSES:]))
    texts = ", ".join(f"{share(event.part, _ROOM)} in pass {event.pass_nr}" for _, event in last[:FEW_PASSES])
    text = f"before it {texts}, and {len(earlier) - FEW_PASSES:,} more passes"
    parts = [
        Finding("accumulated", f"{share(event.part, _ROOM)} from {_pass_words(timeline, event.pass_nr)}", n, node)
        for n, event in last
    ]
    if len(earlier) > MOST_PASSES:
        parts.append(Finding("more", f"and from {len(earlier) - MOST_PASSES:,} more passes before these"))
    return Finding("earlier", text, last[0][0], node, tuple(parts))


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


# What the text of the program says


def _done_once(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Move a statement out of a training loop, before it, or out of a method to the end of ``__init__``.

    A ``for`` loop with only this statement moves as a whole. Nothing moves that reads what the loop or method computes.
    """
    source = statement_at(timeline, at)
    if source is None:
        return None
    (text, one), around = source, list(source[1].around)
    block: ast.stmt = one.node
    while isinstance(around[-1], ast.For) and len(around[-1].body) == 1 and not around[-1].orelse:
        block = around.pop()  # type: ignore[assignment]  # a loop is a statement
    places = [place for place, part in enumerate(around) if isinstance(part, ast.FunctionDef | ast.ClassDef)]
    scope = around[places[-1]] if places else text.tree
    loops = [part for part in around[places[-1] if places else 0 :] if isinstance(part, ast.For | ast.While)]
    reads = names_read(block) - {name for part in ast.walk(block) for name in _bound(part)}
    target: ast.stmt | None = None
    if loops and around[-1] is loops[-1]:
        target, computed = loops[0], [part for part in ast.walk(loops[0]) if part not in set(ast.walk(block))]
    elif (
        not loops
        and isinstance(scope, ast.FunctionDef)
        and len(places) > 1
        and around[-1] is scope
        and len(scope.body) > 1
    ):
        owner = around[places[-2]]
        methods = owner.body if isinstance(owner, ast.ClassDef) and owner is around[-2] else []
        inits = [each for each in methods if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        target = inits[0].body[-1] if inits and scope is not inits[0] else None
        reads -= {scope.args.args[0].arg} if scope.args.args else set()
        computed = [part for part in ast.walk(scope) if part not in set(ast.walk(block))]
    if target is None or reads & {name for part in computed for name in _bound(part)}:
        return None
    first, last = block.lineno, block.end_lineno or block.lineno
    row = text.rows[target.lineno - 1]
    shift = len(row) - len(row.lstrip()) - block.col_offset
    moved_rows = [f"{' ' * shift}{each}" if shift > 0 else each[-shift:] for each in text.rows[first - 1 : last]]
    place = target.lineno - 1 if loops else target.end_lineno or target.lineno
    rows = dict(enumerate(text.rows, 1))
    start, end = min(place + 1, first), max(place, last)
    new = [rows[number] for number in range(start, end + 1) if not first <= number <= last]
    index = sum(1 for number in range(start, place + 1) if not first <= number <= last)
    new[index:index] = moved_rows
    return lines_replaced(text, start, end, "".join(f"{each}\n" for each in new))


def _bound(part: ast.AST) -> Iterator[str]:
    """Yield the names that a node of the syntax tree binds: variables that are assigned, and parameters."""
    match part:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
