"""A gradient by loss: how much each loss contributed in one backward pass of ``l1 + l2``.

Where the paths from two losses meet, only the sum was recorded. A backward rule is linear in the gradient that arrives,
so it is run again with the share of each loss. The shares must add up to the recorded sum, or nothing is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gviz.errors import GvizError
from gviz.explain.backward_passes import Losses, losses_of, pass_started
from gviz.explain.display_names import label, label_at
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import ELEMENTWISE, LISTS
from gviz.explain.pass_contributions import with_agreement
from gviz.explain.source_frames import innermost
from gviz.trace.graph_state import Contribution
from gviz.trace.timeline import Moment, Timeline
from gviz.values.value import Array, Value, capture
from gviz.values.value_text import share

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
