"""What came over the edges to a node, each with the rule that made it and the numbers in it."""

from __future__ import annotations

from collections.abc import Sequence

from gviz.events import StepStarted
from gviz.explain.arithmetic import Share, shares, step_event
from gviz.explain.finding import Finding
from gviz.explain.names import innermost, label, made_at
from gviz.numbers import bad_text, share
from gviz.trace.state import Contribution
from gviz.trace.timeline import Timeline
from gviz.values import Value

MOST_PARTS = 50


def contributions(timeline: Timeline, parts: Sequence[Contribution]) -> tuple[Finding, ...]:
    """What came over every edge; of very many the first."""
    shown = tuple(contribution(timeline, part) for part in parts[:MOST_PARTS])
    if len(parts) > MOST_PARTS:
        shown = (*shown, Finding("more", f"and {len(parts) - MOST_PARTS} more contributions"))
    return shown


def contribution(timeline: Timeline, part: Contribution) -> Finding:
    """What came over one edge, and the rule that made it, with its numbers."""
    if not part.source:
        return Finding("seed", f"{share(part.value)} is what backward started with", part.seq)
    info = timeline.info(part.source)
    sent = sent_by(timeline, part)
    arithmetic = f": {_arithmetic(sent, share(part.value))}" if sent is not None and sent.rule else ""
    text = f"+= {share(part.value)} from {label(timeline, part.source)}{made_at(info.frames)}{arithmetic}"
    return Finding("contribution", text, part.seq, part.source, at=innermost(info))


def _arithmetic(sent: Share, result: str) -> str:
    """``g * x = 1 * 4 = 4``, each form once."""
    text = " = ".join(dict.fromkeys((sent.rule, sent.numbers, result)))
    return text + (f", summed over {sent.reduced}" if sent.reduced else "")


def sent_by(timeline: Timeline, part: Contribution) -> Share | None:
    """The rule that made a contribution, as it ran."""
    ran = shares(timeline, timeline.at(part.seq), part.source)
    return ran[part.slot] if part.slot < len(ran) else None


def arrived(timeline: Timeline, part: Contribution) -> Value | None:
    """The bad one of the gradients with which the rule of a contribution ran, else any."""
    ran = step_event(timeline, timeline.at(part.seq), part.source)
    started = timeline.event(ran) if ran else None
    grads = [grad for grad in started.grads if grad is not None] if isinstance(started, StepStarted) else []
    return next((grad for grad in grads if bad_text(grad)), grads[0] if grads else None)
