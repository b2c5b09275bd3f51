"""What came over the edges to a node, each with the rule that made it and the numbers in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gviz.explain.finding import Finding, Number
from gviz.explain.names import innermost, label_at
from gviz.explain.shares import Share, brought_by, step_event
from gviz.explain.steps import Step, steps, unrolled
from gviz.explain.substitute import is_small, word
from gviz.numbers import number
from gviz.trace.state import Contribution
from gviz.trace.step_grads import step_grads
from gviz.trace.timeline import Timeline
from gviz.value_text import bad_text, norm, share
from gviz.values import Array, Value

MOST_PARTS = 50
_WAYS = ((-0.2, "against"), (0.2, "nearly at right angles to"), (0.7, "only partly the way of"))
"""By the cosine that it stays below, where a part of a sum points; two that have nothing to do with each other, and are
of one length, both point about the way of their sum, at 0.7."""


def contributions(timeline: Timeline, parts: Sequence[Contribution], total: Value | None = None) -> tuple[Finding, ...]:
    """What came over every edge, and how far each agrees with the `total` they have made; of very many the first."""
    known = steps(timeline, (part.source for part in parts))
    shown = tuple(contribution(timeline, part, known.get(part.source)) for part in parts[:MOST_PARTS])
    if total is not None and len(parts) > 1:
        pairs = zip(shown, parts, strict=False)
        shown = tuple(agreeing(timeline, found, part.value, total) for found, part in pairs)
        if timeline.array(total) is None:
            unknown = f"how far they agree is not known: keep whole arrays with --values {total.nbytes}"
            shown = (*shown, Finding("not-stored", unknown))
    if len(parts) > MOST_PARTS:
        shown = (*shown, Finding("more", f"and {len(parts) - MOST_PARTS} more contributions"))
    loop = unrolled(timeline, parts, known)
    return (loop, *shown) if loop is not None else shown


def contribution(timeline: Timeline, part: Contribution, step: Step | None = None) -> Finding:
    """What came over one edge, and the rule that made it, with its numbers; from which step of a loop."""
    if not part.source:
        return Finding("seed", f"{share(part.value)} is what backward started with", part.seq)
    which = f"step {step.nth} of {step.count}, " if step is not None else ""
    text = f"+= {share(part.value)} from {which}{origin(timeline, part)}"
    numbers = (Number("step", step.nth, part.seq),) if step is not None else ()
    at = innermost(timeline.info(part.source))
    return Finding("contribution", text, part.seq, part.source, at=at, numbers=numbers)


def origin(timeline: Timeline, part: Contribution) -> str:
    """The node that a contribution came from, and the rule that made it: ``#4 y = Mul at demo.py:3: g * x = 1 * 4``."""
    sent = sent_by(timeline, part)
    arithmetic = f": {_arithmetic(sent, part.value)}" if sent.rule else ""
    return f"{label_at(timeline, part.source)}{arithmetic}"


def _arithmetic(sent: Share, part: Value) -> str:
    """``g * x = 1 * 4 = 4``, each form once; of arrays too large for a formula only what is computed."""
    written_out = is_small(part) and not bad_text(part)
    rule, numbers = sent.summed, () if sent.reduced else (sent.numbers,)
    return " = ".join(dict.fromkeys((rule, *numbers, share(part)) if written_out else (rule,)))


def sent_by(timeline: Timeline, part: Contribution) -> Share:
    """The rule that made a contribution, as it ran."""
    return timeline.once(brought_by, part.seq)


def agreeing(timeline: Timeline, found: Finding, part: Value, total: Value) -> Finding:
    """The fact about a part of a sum, with its length, its cosine to the sum, and how many signs are the same.

    Words say it only where it does not point the way of the sum, and its elements do not stand there themselves.
    """
    one, whole = timeline.array(part), timeline.array(total)
    size = norm(part)
    if size is None or part.size < 2:
        return found
    numbers = (*found.numbers, Number("norm", size, found.event))
    if one is None or whole is None or one.shape != whole.shape or one.dtype.kind != "f" or bad_text(part):
        return replace(found, numbers=numbers)
    cosine, same = _alike(one, whole)
    numbers = (*numbers, Number("cosine to the sum", cosine, found.event), Number("same signs", same, found.event))
    way = "" if is_small(part) or not size else _way(cosine)
    return replace(found, text=found.text + way, numbers=numbers)


def _way(cosine: float) -> str:
    """Where a part points beside the sum, with their cosine; nothing where it is nearly the same way."""
    where = next((where for most, where in _WAYS if cosine < most), "")
    return f"; it points {where} the sum (cosine {number(cosine, 2)})" if where else ""


def _alike(one: Array, whole: Array) -> tuple[float, float]:
    """The cosine between two arrays, and the share of elements of equal sign."""
    a, b = one.astype(np.float64).ravel(), whole.astype(np.float64).ravel()
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0, float(np.mean(np.sign(a) == np.sign(b)))


def arrived(timeline: Timeline, part: Contribution) -> Value | None:
    """The bad one of the gradients with which the rule of a contribution ran, else any."""
    ran = step_event(timeline, timeline.at(part.seq), part.source)
    grads = [grad for grad in step_grads(timeline, ran) if grad is not None] if ran else []
    return next((grad for grad in grads if bad_text(grad)), grads[0] if grads else None)


def ran(timeline: Timeline, part: Contribution) -> str:
    """The rule that made a contribution, in names and in numbers."""
    sent = sent_by(timeline, part)
    steps = (sent.rule, sent.numbers, word(part.value, "")) if sent.rule else ()
    return f": {' = '.join(dict.fromkeys(steps))}" if steps else ""
