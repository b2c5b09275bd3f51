"""The contributions that arrived at a node in one backward pass, their sum, and how much of it each loss sent.

Each contribution is shown with the rule that made it, the numbers in it, and how far it agrees with the sum. If all
come from the steps of one loop, a summary says which step sent most.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gviz.errors import GvizError
from gviz.explain.backward_passes import pass_started
from gviz.explain.display_names import label, label_at
from gviz.explain.finding import Finding, Number
from gviz.explain.formula import is_small, value_word
from gviz.explain.hook_effects import source_hooks
from gviz.explain.loss_terms import Losses, losses_of
from gviz.explain.operation_sets import ELEMENTWISE, LISTS
from gviz.explain.outgoing_gradients import OutgoingGradient, outgoing_gradient, step_event
from gviz.explain.source_frames import at_text, innermost
from gviz.source.call_stack import source_lines
from gviz.trace.graph_state import Contribution, NodeInfo
from gviz.trace.node_gradients import step_grads
from gviz.trace.timeline import Moment, Timeline
from gviz.values.number_text import number
from gviz.values.value import Array, Value, capture
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


# ----------------------------------------------------------------------------------------------------------------------
# A gradient by loss: how much each loss contributed in one backward pass of ``l1 + l2``.
#
# Where the paths from two losses meet, only the sum was recorded. A backward rule is linear in the gradient that
# arrives, so it is run again with the share of each loss. The shares must add up to the recorded sum, or nothing is
# reported.

MOST_OPERATIONS = 1000
"""The most operations between the losses and a node for which one answer is computed."""

_TOLERANCE = 1e-3
"""The relative error that the sum of the shares may have: the recorded sum was computed in the program's dtype."""

_ByLoss = dict[int, Array]
"""loss -> its share of one gradient"""


@dataclass(slots=True)
class _LossPass:
    """One pass: the recorded values by node and slot, and their shares by loss."""

    timeline: Timeline
    moment: Moment
    losses: Losses
    recorded: defaultdict[int, dict[int, Contribution]] = field(default_factory=lambda: defaultdict(dict))
    sent: dict[int, dict[int, _ByLoss]] = field(default_factory=dict)


def by_loss(timeline: Timeline, node: int, parts: Sequence[Contribution], total: Value | None) -> Iterator[Finding]:
    """Yield what each loss of the pass has contributed to `parts`; nothing if there is only one loss.

    It also yields nothing if each contribution comes from only one loss, which its own text mentions.
    """
    started = pass_started(timeline, timeline.at(parts[-1].seq).pass_nr) if parts else None
    losses = losses_of(timeline, [root for root, _ in started.roots if root]) if started is not None else None
    if losses is None or total is None or node in losses.uses or {one.source for one in parts} <= losses.uses.keys():
        return
    loss_pass = _LossPass(timeline, timeline.at(parts[-1].seq), losses)
    try:
        shares = _split(loss_pass, node)
    except GvizError as reason:
        why = ": ".join(filter(None, (reason.what, reason.why)))
        text = f"what each of {len(losses.uses)} losses brought is not known: {why}"
        yield Finding("by-loss", text, parts[-1].seq, node, fix=_by_perturbation(timeline, max(losses.uses)))
        return
    for loss in losses.uses:
        if loss in shares:
            title = _loss_title(timeline, loss, losses)
            yield _loss_finding(timeline, loss, title, shares[loss], parts[-1].seq, None if len(shares) == 1 else total)


def _by_perturbation(timeline: Timeline, loss: int) -> str:
    """How to measure the share of a loss with a second recording: a gradient is linear in the weights of its losses."""
    one = label_at(timeline, loss)
    return f"an approximation by perturbation: multiply {one} by 1.01; 100 times the change of this .grad is its share"


def _loss_title(timeline: Timeline, loss: int, losses: Losses) -> str:
    """Return the name of a loss and its place.

    An element of a summed list is called a summand. A part of a sum with a name, as in ``z = x * x + sin(y)``, is
    called a term: there the program may well call the sum its loss. So is a number that no tensor was reduced to.
    """
    label_of_it = label_at(timeline, loss)
    if any(timeline.info(node).op.name in LISTS for node in losses.summing):
        return f"{label_of_it}, a summand of {label(timeline, max(losses.summing))}"
    if losses.summing and (timeline.info(max(losses.summing)).name or not _is_reduced(timeline, loss)):
        return f"the term {label_of_it} of {label(timeline, max(losses.summing))}"
    return f"the loss {label_of_it}"


def _is_reduced(timeline: Timeline, node: int) -> bool:
    """Return whether a number was computed from a tensor of several elements, perhaps with further steps: a root."""
    while node:
        inputs = [edge for edge in timeline.info(node).created.inputs if edge[0]]
        values = (timeline.info(source).created.outputs[output_nr].value for source, output_nr in inputs)
        if any(value is not None and value.size > 1 for value in values):
            return True
        node = inputs[0][0] if len(inputs) == 1 else 0
    return False


def _loss_finding(timeline: Timeline, loss: int, title: str, part: Array, seq: int, total: Value | None) -> Finding:
    """Return the share of one loss in the `total`; without a total, it is all of it."""
    value = capture(np.asarray(part), limit=part.nbytes)
    text = f"{'all' if total is None else share(value)} of it because of {title}"
    finding = Finding("by-loss", text, seq, loss, at=innermost(timeline.info(loss)))
    return finding if total is None else with_agreement(timeline, finding, value, total)


def _split(loss_pass: _LossPass, node: int) -> _ByLoss:
    """Return the share of each loss in a node's gradient. Nodes nearer to the losses are split first."""
    for source in _nodes_between(loss_pass, node):
        loss_pass.sent[source] = _sent_by_loss(loss_pass, source)
    return _arrived_by_loss(loss_pass, node, 0)


def _nodes_between(loss_pass: _LossPass, node: int) -> list[int]:
    """Return the nodes between the losses and a node that have sent something, in the order in which they ran."""
    seqs: dict[int, int] = {}
    waiting = [node, *loss_pass.losses.summing]
    while waiting:
        here = waiting.pop()
        for part in _parts(loss_pass, here):
            loss_pass.recorded[part.source][part.slot] = part
            new = part.source and part.source not in seqs and part.source not in loss_pass.losses.summing
            if new and here in loss_pass.losses.summing:
                raise GvizError("their sum is used elsewhere, too")
            if new:
                seqs[part.source] = part.seq
                waiting.append(part.source)
        if len(seqs) > MOST_OPERATIONS:
            raise GvizError(f"more than {MOST_OPERATIONS} operations lie between")
    return sorted(seqs, key=seqs.__getitem__)


def _parts(loss_pass: _LossPass, node: int) -> list[Contribution]:
    state = loss_pass.moment.state(node)
    return [part for output in state.outputs for part in output.parts] if state is not None else []


def _arrived_by_loss(loss_pass: _LossPass, node: int, output_nr: int) -> _ByLoss:
    """Return the share of each loss in what has arrived at one output of a node, over all edges."""
    state, sums_by_loss = loss_pass.moment.state(node), _ByLoss()
    for part in state.outputs[output_nr].parts if state is not None else ():
        of_sum = part.source in loss_pass.losses.uses.get(node, ())
        shares = {node: _array(loss_pass, part)} if of_sum else loss_pass.sent[part.source][part.slot]
        for loss, array in shares.items():
            sums_by_loss[loss] = sums_by_loss[loss] + array if loss in sums_by_loss else array
    return sums_by_loss


def _sent_by_loss(loss_pass: _LossPass, source: int) -> dict[int, _ByLoss]:
    """Return the share of each loss in what a node has sent, by slot."""
    state = loss_pass.moment.state(source)
    outputs = range(len(state.outputs)) if state is not None else ()
    arrived = {nr: shares for nr in outputs if (shares := _arrived_by_loss(loss_pass, source, nr))}
    losses = list(dict.fromkeys(loss for shares in arrived.values() for loss in shares))
    recorded = loss_pass.recorded[source]
    if len(losses) == 1:
        return {slot: {losses[0]: _array(loss_pass, part)} for slot, part in recorded.items()}
    from gviz.rerun.node_forward import vector_jacobian_products  # imports the engine, which few answers need

    each = [{nr: shares[loss] for nr, shares in arrived.items() if loss in shares} for loss in losses]
    info = loss_pass.timeline.info(source)
    try:
        sent = vector_jacobian_products(loss_pass.timeline, info, each)
    except GvizError:
        if info.op.base_name not in ELEMENTWISE:
            raise
        sent = _sent_by_element(loss_pass, recorded, [one[0] for one in each])
    return {
        slot: _require_sum(
            loss_pass, part, {loss: one[slot] for loss, one in zip(losses, sent, strict=True) if slot in one}
        )
        for slot, part in recorded.items()
    }


def _sent_by_element(
    loss_pass: _LossPass, recorded: Mapping[int, Contribution], arrived: Sequence[Array]
) -> list[_ByLoss]:
    """Return what an elementwise rule sends, by slot, for each part of what arrived.

    The rule multiplies each element by a number, which the recorded sums determine. Its forward may have an argument
    that was not recorded, such as the small number that `rms_norm` adds.
    """
    total = sum(arrived, np.zeros(()))
    sums = {slot: _array(loss_pass, part) for slot, part in recorded.items()}
    lost = any((array[total == 0] != 0).any() for array in arrived)  # parts that cancel leave no number to see
    if lost or any(array.shape != total.shape for array in sums.values()):
        source = next(iter(recorded.values())).source
        raise GvizError(f"{label_at(loss_pass.timeline, source)} cannot be split by element")
    factors = {
        slot: np.divide(array, total, out=np.zeros(total.shape), where=total != 0) for slot, array in sums.items()
    }
    return [{slot: array * factor for slot, factor in factors.items()} for array in arrived]


def _require_sum(loss_pass: _LossPass, part: Contribution, shares: _ByLoss) -> _ByLoss:
    """Return the shares, if they add up to the recorded sum."""
    recorded = _array(loss_pass, part)
    missed = np.linalg.norm(sum(shares.values(), np.zeros(())) - recorded)
    if not missed <= _TOLERANCE * max(np.linalg.norm(array) for array in (recorded, *shares.values())):
        at = label_at(loss_pass.timeline, part.source)
        raise GvizError(f"{at} sent something else than its operation's own rule, by a hook or a rule of yours")
    return shares


def _array(loss_pass: _LossPass, part: Contribution) -> Array:
    array = loss_pass.timeline.array(part.value)
    if array is None:
        raise GvizError(f"keep whole arrays with --values {part.value.nbytes}")
    return array.astype(np.result_type(array, np.float64))
