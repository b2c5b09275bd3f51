"""A gradient taken apart by loss: of one backward of ``l1 + l2`` what each of them has brought.

Where the ways from two losses have met, only their sum was recorded. A rule is linear in what arrives, so it is run
again on the share of each; the shares must add up to what was recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gviz.errors import GvizError
from gviz.explain.contributions import agreeing
from gviz.explain.finding import Finding
from gviz.explain.losses import Losses, losses_of
from gviz.explain.names import innermost, label, label_at
from gviz.explain.operations import LISTS
from gviz.explain.pass_starts import pass_started
from gviz.trace.moment import Moment
from gviz.trace.state import Contribution
from gviz.trace.timeline import Timeline
from gviz.value_text import share
from gviz.values import Array, Value, capture

MOST_OPERATIONS = 1000
"""So many operations on the ways to a gradient are looked at for one answer."""

_TOLERANCE = 1e-3
"""By how much of their length the shares may miss the recorded sum: it was added up in the program's dtype."""

_Shares = dict[int, Array]
"""By loss: its share of one gradient."""


@dataclass(slots=True)
class _Apart:
    """One pass as far as it matters: by node and slot what was recorded, and what has been told apart of it."""

    timeline: Timeline
    moment: Moment
    losses: Losses
    recorded: defaultdict[int, dict[int, Contribution]] = field(default_factory=lambda: defaultdict(dict))
    sent: dict[int, dict[int, _Shares]] = field(default_factory=dict)


def by_loss(timeline: Timeline, node: int, parts: Sequence[Contribution], total: Value | None) -> Iterator[Finding]:
    """What each loss of the pass that brought `parts` to a node has brought of it; nothing if there is but one.

    Nothing either where each contribution comes from another loss at once, and says so itself.
    """
    started = pass_started(timeline, timeline.at(parts[-1].seq).pass_nr) if parts else None
    losses = losses_of(timeline, [root for root, _ in started.roots if root]) if started is not None else None
    if losses is None or total is None or node in losses.uses or {one.source for one in parts} <= losses.uses.keys():
        return
    apart = _Apart(timeline, timeline.at(parts[-1].seq), losses)
    try:
        shares = _shares(apart, node)
    except GvizError as reason:
        why = ": ".join(filter(None, (reason.what, reason.why)))
        text = f"what each of {len(losses.uses)} losses brought is not known: {why}"
        yield Finding("by-loss", text, parts[-1].seq, node)
        return
    for loss in losses.uses:
        if loss in shares:
            title = _title(timeline, loss, losses)
            yield _told(timeline, loss, title, shares[loss], parts[-1].seq, None if len(shares) == 1 else total)


def _title(timeline: Timeline, loss: int, losses: Losses) -> str:
    """A loss and where it was made; an entry of a list that is summed is no loss, but a part of one."""
    label_of_it = label_at(timeline, loss)
    if not any(timeline.info(node).op.name in LISTS for node in losses.summing):
        return f"the loss {label_of_it}"
    return f"{label_of_it}, a summand of {label(timeline, max(losses.summing))}"


def _told(timeline: Timeline, loss: int, title: str, brought: Array, seq: int, total: Value | None) -> Finding:
    """The share of one loss in the `total`; without one it is all of it."""
    value = capture(np.asarray(brought), limit=brought.nbytes)
    text = f"{'all' if total is None else share(value)} of it because of {title}"
    found = Finding("by-loss", text, seq, loss, at=innermost(timeline.info(loss)))
    return found if total is None else agreeing(timeline, found, value, total)


def _shares(apart: _Apart, node: int) -> _Shares:
    """What of the gradient of a node is due to each loss; those nearer to the losses are told apart first."""
    for source in _on_the_way(apart, node):
        apart.sent[source] = _sent(apart, source)
    return _arrived(apart, node, 0)


def _on_the_way(apart: _Apart, node: int) -> list[int]:
    """The nodes between the losses and a node that have sent something, in the order in which they ran."""
    found: dict[int, int] = {}
    waiting = [node, *apart.losses.summing]
    while waiting:
        here = waiting.pop()
        for part in _parts(apart, here):
            apart.recorded[part.source][part.slot] = part
            new = part.source and part.source not in found and part.source not in apart.losses.summing
            if new and here in apart.losses.summing:
                raise GvizError("their sum is used elsewhere, too")
            if new:
                found[part.source] = part.seq
                waiting.append(part.source)
        if len(found) > MOST_OPERATIONS:
            raise GvizError(f"more than {MOST_OPERATIONS} operations lie between")
    return sorted(found, key=found.__getitem__)


def _parts(apart: _Apart, node: int) -> list[Contribution]:
    state = apart.moment.state(node)
    return [part for output in state.outputs for part in output.parts] if state is not None else []


def _arrived(apart: _Apart, node: int, output_nr: int) -> _Shares:
    """The shares of what has arrived at one output of a node, over all edges."""
    state, found = apart.moment.state(node), _Shares()
    for part in state.outputs[output_nr].parts if state is not None else ():
        of_sum = part.source in apart.losses.uses.get(node, ())
        shares = {node: _array(apart, part)} if of_sum else apart.sent[part.source][part.slot]
        for loss, array in shares.items():
            found[loss] = found[loss] + array if loss in found else array
    return found


def _sent(apart: _Apart, source: int) -> dict[int, _Shares]:
    """The shares of what a node has sent, by slot."""
    state = apart.moment.state(source)
    outputs = range(len(state.outputs)) if state is not None else ()
    arrived = {nr: shares for nr in outputs if (shares := _arrived(apart, source, nr))}
    losses = list(dict.fromkeys(loss for shares in arrived.values() for loss in shares))
    recorded = apart.recorded[source]
    if len(losses) == 1:
        return {slot: {losses[0]: _array(apart, part)} for slot, part in recorded.items()}
    from gviz.rerun.forward import vector_jacobian_products  # the engine, which few answers need

    each = [{nr: shares[loss] for nr, shares in arrived.items() if loss in shares} for loss in losses]
    sent = vector_jacobian_products(apart.timeline, apart.timeline.info(source), each)
    return {
        slot: _checked(apart, part, {loss: one[slot] for loss, one in zip(losses, sent, strict=True) if slot in one})
        for slot, part in recorded.items()
    }


def _checked(apart: _Apart, part: Contribution, shares: _Shares) -> _Shares:
    """The shares, if they add up to what was recorded."""
    recorded = _array(apart, part)
    missed = np.linalg.norm(sum(shares.values(), np.zeros(())) - recorded)
    if not missed <= _TOLERANCE * max(np.linalg.norm(array) for array in (recorded, *shares.values())):
        at = label_at(apart.timeline, part.source)
        raise GvizError(f"{at} sent something else than its operation's own rule, by a hook or a rule of yours")
    return shares


def _array(apart: _Apart, part: Contribution) -> Array:
    array = apart.timeline.array(part.value)
    if array is None:
        raise GvizError(f"keep whole arrays with --values {part.value.nbytes}")
    return array.astype(np.result_type(array, np.float64))
