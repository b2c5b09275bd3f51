"""A gradient taken apart: what was there before, and what came over every edge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gviz.events import GradAccumulated, GradFlowed
from gviz.explain.accumulation import Accumulation, accumulation, passes_added
from gviz.explain.by_loss import by_loss
from gviz.explain.contributions import agreeing, contribution, contributions
from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label, label_at
from gviz.explain.neglected import has_stepped, neglected
from gviz.explain.pass_starts import pass_started
from gviz.explain.silent_uses import silent_uses
from gviz.trace.state import Contribution
from gviz.trace.timeline import Timeline
from gviz.value_text import grad, share
from gviz.values import Value

_CLEAR = "zero_grad() before each backward, if the passes should not add up"
FEW_PASSES = 3
"""So many earlier passes are told one by one with their numbers; of more it is said first how many they are."""

MOST_PASSES = 20
"""So many earlier passes are told one by one, the latest."""

_ROOM = 40
"""Characters for what one of many passes has brought: a few numbers, or their length."""

Added = tuple[int, GradAccumulated]
"""What a pass has added to a ``.grad``, and the event that says so."""


def sent(asked: Question) -> Finding:
    """What the node sends at this very moment."""
    event = asked.moment.event
    assert isinstance(event, GradFlowed)
    return contribution(asked.timeline, Contribution(event.source, event.slot, event.part, asked.moment.n))


def incoming(asked: Question) -> Finding | None:
    """What has arrived so far in a pass, as a sum."""
    timeline, output = asked.timeline, asked.output
    if output.grad is not None:
        return None
    missing = output.expected - len(output.parts)
    still = f", {missing} of {output.expected} contributions have not arrived yet" if missing > 0 else ""
    kept = "" if asked.info.created.kind != "op" else "; .grad keeps it only after retain_grad()"
    text = f"{label(timeline, asked.node)}: the gradient is {grad(output.incoming)}{still}{kept}"
    parts = contributions(timeline, output.parts)
    return Finding("incoming", text, output.parts[-1].seq, asked.node, parts, at=innermost(asked.info))


def gradient(asked: Question) -> Finding | None:
    """The ``.grad`` of a node as a sum."""
    timeline, node, output = asked.timeline, asked.node, asked.output
    if output.grad is None:
        return None
    silent = silent_uses(timeline, node, output.parts) if asked.info.created.kind != "op" else ()
    of_losses = by_loss(timeline, node, output.parts, output.incoming)
    parts = (*silent, *of_losses, *contributions(timeline, output.parts, output.incoming))
    text, at = f"{label(timeline, node)}: .grad is {grad(output.grad)}", innermost(asked.info)
    before = accumulation(timeline, node, output)
    unused = neglected(timeline, node, asked.moment.n) if asked.info.created.kind != "op" else None
    if before is not None:
        earlier = passes_added(timeline, node, output.grad_seq)[:-1]
        if len(earlier) > FEW_PASSES:
            parts = (_sum(node, earlier, output.grad_seq), *parts, _others(timeline, node, earlier))
        else:
            parts = (*_earlier(timeline, node, output.grad, earlier, before), *parts)
    if unused is not None:
        parts = (replace(unused, fix=""), *parts)
    reached = before is not None and not has_stepped(timeline, asked.moment.n)
    fix = _CLEAR if before is not None and (unused is None or reached) else unused.fix if unused is not None else ""
    return Finding("gradient", text, output.grad_seq, node, parts, fix, at)


def _earlier(
    timeline: Timeline, node: int, total: Value, added: Sequence[Added], before: Accumulation
) -> Iterator[Finding]:
    """What was there before the last pass, by pass where that is known."""
    passes = [(n, event.part, event.pass_nr) for n, event in added]
    for n, part, pass_nr in passes or [(before.event, before.before, before.since)]:
        since = f", from {the_pass(timeline, pass_nr)}" if pass_nr else ""
        had = f"{grad(part)} was there before{since}, and nothing has cleared it"
        yield agreeing(timeline, Finding("accumulated", had, n, node), part, total)


def _sum(node: int, earlier: Sequence[Added], seq: int) -> Finding:
    """That many passes have added up, the first of them since when nothing has cleared it."""
    since = earlier[0][1].pass_nr
    text = f".grad is the sum of {len(earlier) + 1:,} backward passes: nothing has cleared it since pass {since}"
    return Finding("sum", text, seq, node, numbers=(Number("passes", len(earlier) + 1, seq),))


def _others(timeline: Timeline, node: int, earlier: Sequence[Added]) -> Finding:
    """What the passes before this one had brought: of the last few in one row, of more below it."""
    last = list(reversed(earlier[-MOST_PASSES:]))
    told = ", ".join(f"{share(event.part, _ROOM)} in pass {event.pass_nr}" for _, event in last[:FEW_PASSES])
    text = f"before it {told}, and {len(earlier) - FEW_PASSES:,} more passes"
    parts = [
        Finding("accumulated", f"{share(event.part, _ROOM)} from {the_pass(timeline, event.pass_nr)}", n, node)
        for n, event in last
    ]
    if len(earlier) > MOST_PASSES:
        parts.append(Finding("more", f"and from {len(earlier) - MOST_PASSES:,} more passes before these"))
    return Finding("earlier", text, last[0][0], node, tuple(parts))


def the_pass(timeline: Timeline, pass_nr: int) -> str:
    """``backward pass 1 of #7 loss = Mean at train.py:9``."""
    started = pass_started(timeline, pass_nr)
    roots = started.roots if started is not None else ()
    return f"backward pass {pass_nr}" + (f" of {label_at(timeline, roots[0][0])}" if roots and roots[0][0] else "")


SENT = Kind("contribution", "fact", "what went over one edge, and the rule that made it", ("sent",), sent)
INCOMING = Kind(
    "incoming", "fact", "the gradient of a pass in progress, as far as it has arrived", ("gradient",), incoming
)
GRADIENT = Kind("gradient", "fact", "a gradient as the sum of what came over every edge", ("gradient",), gradient)
