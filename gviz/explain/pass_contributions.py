"""The contributions that arrived at a node in one backward pass, and their sum.

Each contribution is shown with the rule that made it, the numbers in it, and how far it agrees with the sum. If all
come from the steps of one loop, a summary says which step sent most.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gviz.explain.display_names import label, label_at
from gviz.explain.finding import Finding, Number
from gviz.explain.formula import is_small, value_word
from gviz.explain.hook_effects import source_hooks
from gviz.explain.outgoing_gradients import OutgoingGradient, outgoing_gradient, step_event
from gviz.explain.source_frames import at_text, innermost
from gviz.source.call_stack import source_lines
from gviz.trace.graph_state import Contribution, NodeInfo
from gviz.trace.node_gradients import step_grads
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number
from gviz.values.value import Array, Value
from gviz.values.value_text import bad_text, norm, share

LINEAR = "x @ weight.T + bias"
_TRANSPOSES = re.compile(r"\.m?T\b|\.t\(|transpose|permute|swapaxes|swapdims|adjoint|\bt\(")

MOST_PARTS = 50
_DIRECTIONS = ((-0.2, "points away from"), (0.2, "hardly points along"), (0.7, "points only partly along"))
"""The direction of a contribution by the upper bound of its cosine with the sum.

Two independent contributions of equal norm both have a cosine of 0.7 with their sum.
"""


def contributions(timeline: Timeline, parts: Sequence[Contribution], total: Value | None = None) -> tuple[Finding, ...]:
    """Return the contribution of every edge and how far it agrees with the `total`; of very many only the first."""
    known = loop_steps(timeline, (part.source for part in parts))
    shown = tuple(contribution(timeline, part, known.get(part.source)) for part in parts[:MOST_PARTS])
    shown = (*shown[:1], *map(_without_layer, shown[1:]))  # of a loop over time steps, one explanation is enough
    if total is not None and len(parts) > 1:
        pairs = zip(shown, parts, strict=False)
        shown = tuple(with_agreement(timeline, finding, part.value, total) for finding, part in pairs)
        if timeline.array(total) is None:
            unknown = f"how far they agree is not known: keep whole arrays with --values {total.nbytes}"
            shown = (*shown, Finding("not-stored", unknown))
    if len(parts) > MOST_PARTS:
        shown = (*shown, Finding("more", f"and {len(parts) - MOST_PARTS} more contributions"))
    loop = loop_summary(timeline, parts, known)
    return (loop, *shown) if loop is not None else shown


def contribution(timeline: Timeline, part: Contribution, step: LoopStep | None = None) -> Finding:
    """Return the contribution of one edge: the rule that made it, with its numbers, and its step of a loop."""
    if not part.source:
        return Finding("seed", f"{share(part.value)} is what backward started with", part.seq)
    which = f"step {step.nth} of {step.count}, " if step is not None else ""
    text = f"+= {share(part.value)} from {which}{origin(timeline, part)}"
    numbers = (Number("step", step.nth, part.seq),) if step is not None else ()
    at, parts = innermost(timeline.info(part.source)), (*_layer(timeline, part), *source_hooks(timeline, part))
    return Finding("contribution", text, part.seq, part.source, parts, at=at, numbers=numbers)


def _layer(timeline: Timeline, part: Contribution) -> Iterator[Finding]:
    """Yield what a transposed weight is, and the rule that sent it the gradient: no line of the program has it."""
    info = timeline.info(part.source)
    if not transposes_layer_weight(timeline, info):
        return
    state = timeline.at(part.seq).state(part.source)
    before = state.outputs[0].parts if state is not None else ()
    got = f", which got it from {origin(timeline, before[0])}" if len(before) == 1 and before[0].source else ""
    text = f"a linear layer is {LINEAR}: {label(timeline, part.source)} is its weight.T{got}"
    yield Finding("layer", text, before[0].seq if got else info.born, before[0].source if got else part.source)


def _without_layer(finding: Finding) -> Finding:
    return replace(finding, parts=tuple(part for part in finding.parts if part.kind != "layer"))


def transposes_layer_weight(timeline: Timeline, info: NodeInfo) -> bool:
    """Return whether a node transposes a parameter in a line that transposes nothing."""
    if info.op.name != "t" or not info.frames or timeline.info(info.created.inputs[0][0]).created.kind != "parameter":
        return False
    first = info.frames[0]
    lines = source_lines(timeline.source(first.path) or "")[first.line - 1 : first.end_line]
    return bool(lines) and not _TRANSPOSES.search("\n".join(lines))


def origin(timeline: Timeline, part: Contribution) -> str:
    """Return the node of a contribution and the rule that made it: ``#4 y = mul at demo.py:3: g * x = 1 * 4``."""
    sent = outgoing_of(timeline, part)
    arithmetic = f": {_arithmetic(sent, part.value)}" if sent.rule else ""
    return f"{label_at(timeline, part.source)}{arithmetic}"


def _arithmetic(sent: OutgoingGradient, part: Value) -> str:
    """Return ``g * x = 1 * 4 = 4``, each form once; for large arrays only the rule in names."""
    written_out = is_small(part) and not bad_text(part)
    rule, numbers = sent.summed, () if sent.reduced else (sent.numbers,)
    return " = ".join(dict.fromkeys((rule, *numbers, share(part)) if written_out else (rule,)))


def outgoing_of(timeline: Timeline, part: Contribution) -> OutgoingGradient:
    """Return the rule that made a contribution, as it ran."""
    return timeline.once(outgoing_gradient, part.seq)


def with_agreement(timeline: Timeline, finding: Finding, part: Value, total: Value) -> Finding:
    """Return the fact about a term of a sum, with its norm, its cosine to the sum, and the share of equal signs.

    The text mentions them only if the term has another direction than the sum and its elements are not shown.
    """
    one, whole = timeline.array(part), timeline.array(total)
    size = norm(part)
    if size is None or part.size < 2:
        return finding
    numbers = (*finding.numbers, Number("norm", size, finding.event))
    if one is None or whole is None or one.shape != whole.shape or one.dtype.kind != "f" or bad_text(part):
        return replace(finding, numbers=numbers)
    cosine, same = _alike(one, whole)
    numbers = (*numbers, Number("cosine to the sum", cosine, finding.event), Number("same signs", same, finding.event))
    direction = "" if is_small(part) or not size else _direction(cosine)
    return replace(finding, text=finding.text + direction, numbers=numbers)


def _direction(cosine: float) -> str:
    """Return the direction of a term compared with the sum, with their cosine; empty for nearly the same direction."""
    where = next((where for most, where in _DIRECTIONS if cosine < most), "")
    return f"; this part {where} the sum (cosine {number(cosine, 2)})" if where else ""


def _alike(one: Array, whole: Array) -> tuple[float, float]:
    """Return the cosine between two arrays, and the share of elements of equal sign."""
    a, b = one.astype(np.float64).ravel(), whole.astype(np.float64).ravel()
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0, float(np.mean(np.sign(a) == np.sign(b)))


def arriving_gradient(timeline: Timeline, part: Contribution) -> Value | None:
    """Return the incoming gradient of a contribution's rule; of several the first bad one, or else the first."""
    ran = step_event(timeline, timeline.at(part.seq), part.source)
    grads = [grad for grad in step_grads(timeline, ran) if grad is not None] if ran else []
    return next((grad for grad in grads if bad_text(grad)), grads[0] if grads else None)


def rule_words(timeline: Timeline, part: Contribution) -> str:
    """Return the rule that made a contribution, in names and in numbers."""
    sent = outgoing_of(timeline, part)
    steps = (sent.rule, sent.numbers, value_word(part.value, "")) if sent.rule else ()
    return f": {' = '.join(dict.fromkeys(steps))}" if steps else ""


# Time steps of a loop: an operation of one line that ran several times, each time as a new node


@dataclass(frozen=True, slots=True)
class LoopStep:
    """The position of a node among those that its line made: the `nth` of `count`, from 1."""

    nth: int
    count: int


def loop_steps(timeline: Timeline, nodes: Iterable[int]) -> dict[int, LoopStep]:
    """Return the loop step of each node. Nodes whose line made no other of them are left out."""
    by_line: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for node, created in timeline.nodes.all_created(sorted({*nodes} - {0})):
        by_line[created.stack, created.op].append(node)
    return {
        node: LoopStep(nth, len(line)) for line in by_line.values() if len(line) > 1 for nth, node in enumerate(line, 1)
    }


def loop_summary(timeline: Timeline, parts: Sequence[Contribution], known: Mapping[int, LoopStep]) -> Finding | None:
    """Return which step of a loop sent most and which least.

    All contributions must come from the `known` steps of one loop.
    """
    if len(parts) < 3 or len(known) < len(parts) or len({step.count for step in known.values()}) > 1:
        return None
    sizes = [(norm(part.value), part) for part in parts if not bad_text(part.value)]
    known_sizes = [(size, part) for size, part in sizes if size is not None]
    if len(known_sizes) < len(parts):
        return None
    (least, last), (most, first) = (pick(known_sizes, key=lambda pair: pair[0]) for pick in (min, max))
    info = timeline.info(first.source)
    text = (
        f"{len(parts)} steps of a loop{at_text(info.frames)} sent to it: step {known[first.source].nth} most, "
        f"|g| {number(most)}; step {known[last.source].nth} least, |g| {number(least)}"
    )
    numbers = (Number("most", most, first.seq), Number("least", least, last.seq))
    return Finding("steps", text, first.seq, first.source, at=innermost(info), numbers=numbers)
