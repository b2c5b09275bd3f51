"""A gradient taken apart: what was there before, and what came over every edge."""

from __future__ import annotations

from gviz.events import GradFlowed
from gviz.explain.accumulation import accumulation
from gviz.explain.contributions import agreeing, contribution, contributions
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind, Question
from gviz.explain.names import innermost, label
from gviz.numbers import grad, short
from gviz.trace.state import Contribution


def sent(asked: Question) -> Finding:
    """What the node sends at this very moment."""
    event = asked.moment.event
    assert isinstance(event, GradFlowed)
    return contribution(asked.timeline, Contribution(event.source, event.slot, event.part, asked.moment.n))


def assigned(asked: Question) -> Finding | None:
    """A ``.grad`` that no pass has brought."""
    output = asked.output
    if output.parts or output.grad is None:
        return None
    text = f"the .grad of {label(asked.timeline, asked.node)} was set by the program: {short(output.grad)}"
    return Finding("assigned", text, output.grad_seq, asked.node, at=innermost(asked.info))


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
    parts = contributions(timeline, output.parts, output.incoming)
    text, at = f"{label(timeline, node)}: .grad is {grad(output.grad)}", innermost(asked.info)
    before = accumulation(timeline, node, output)
    if before is None:
        return Finding("gradient", text, output.grad_seq, node, parts, at=at)
    since = f", from backward pass {before.since}" if before.since else ""
    had = f"{grad(before.before)} was there before{since}, and nothing has cleared it"
    earlier = Finding("accumulated", had, before.event, node)
    parts = (agreeing(timeline, earlier, before.before, output.grad), *parts)
    fix = "zero_grad() before each backward, if the passes should not add up"
    return Finding("gradient", text, output.grad_seq, node, parts, fix, at)


SENT = Kind("contribution", "fact", "what went over one edge, and the rule that made it", ("sent",), sent)
ASSIGNED = Kind("assigned", "fact", "a .grad that the program set itself", ("gradient",), assigned)
INCOMING = Kind(
    "incoming", "fact", "the gradient of a pass in progress, as far as it has arrived", ("gradient",), incoming
)
GRADIENT = Kind("gradient", "fact", "a gradient as the sum of what came over every edge", ("gradient",), gradient)
