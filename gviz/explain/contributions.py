"""A gradient taken apart: what was there before, and what came over every edge, with the numbers of each rule."""

from __future__ import annotations

from gviz.explain.accumulation import accumulation
from gviz.explain.arithmetic import Share, shares
from gviz.explain.finding import Finding
from gviz.explain.names import label, made_at
from gviz.numbers import grad, share
from gviz.trace.moment import Moment
from gviz.trace.state import Contribution, OutputState
from gviz.trace.timeline import Timeline

MOST_PARTS = 50


def gradient_made_of(timeline: Timeline, moment: Moment, node: int, output: OutputState) -> Finding:
    """The ``.grad`` of a node, or what has arrived for it so far, as a sum."""
    parts = tuple(contribution(timeline, part) for part in output.parts[:MOST_PARTS])
    if len(output.parts) > MOST_PARTS:
        parts = (*parts, Finding("more", f"and {len(output.parts) - MOST_PARTS} more contributions"))
    if output.grad is None:
        missing = output.expected - len(output.parts)
        still = f", {missing} of {output.expected} contributions have not arrived yet" if missing > 0 else ""
        kept = "" if timeline.info(node).created.kind != "op" else "; .grad keeps it only after retain_grad()"
        text = f"{label(timeline, node)}: the gradient is {grad(output.incoming)}{still}{kept}"
        return Finding("incoming", text, output.parts[-1].seq, node, parts)
    text = f"{label(timeline, node)}: .grad is {grad(output.grad)}"
    before = accumulation(timeline, node, output)
    if before is None:
        return Finding("gradient", text, output.grad_seq, node, parts)
    since = f", from backward pass {before.since}" if before.since else ""
    had = Finding("accumulated", f"{grad(before.before)} was there before{since}, and nothing has cleared it", 0, node)
    fix = "zero_grad() before each backward, if the passes should not add up"
    return Finding("gradient", text, output.grad_seq, node, (had, *parts), fix)


def contribution(timeline: Timeline, part: Contribution) -> Finding:
    """What came over one edge, and the rule that made it, with its numbers."""
    if not part.source:
        return Finding("seed", f"{share(part.value)} is what backward started with", part.seq)
    info = timeline.info(part.source)
    sent = sent_by(timeline, part)
    arithmetic = f": {_arithmetic(sent, share(part.value))}" if sent is not None and sent.rule else ""
    text = f"+= {share(part.value)} from {label(timeline, part.source)}{made_at(info.frames)}{arithmetic}"
    return Finding("contribution", text, part.seq, part.source)


def _arithmetic(sent: Share, result: str) -> str:
    """``g * x = 1 * 4 = 4``, each form once."""
    text = " = ".join(dict.fromkeys((sent.rule, sent.numbers, result)))
    return text + (f", summed over {sent.reduced}" if sent.reduced else "")


def sent_by(timeline: Timeline, part: Contribution) -> Share | None:
    """The rule that made a contribution, as it ran."""
    ran = shares(timeline, timeline.at(part.seq), part.source)
    return ran[part.slot] if part.slot < len(ran) else None
