"""A penalty that is to keep a model near to another one, and whose gradient does not depend on the other one.

Idea. The mean of ``log p - log q`` over drawn actions estimates the divergence of p and q, but as a loss it has the
gradient of ``log p`` only: q is a constant that is subtracted. The penalty then makes all drawn actions less likely.

Example. ``kl = new_logprobs - ref_logprobs`` and ``loss = pg_loss + beta * kl.mean()``.

Limits. Both operands must be log-probabilities, chosen from a `log_softmax` or `logsumexp` by the same operations, of
models with other parameters. The difference must reach the loss by sums and multiples only, with a positive sign: with
a negative one it makes the actions of the other model more likely, which is a divergence, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import LISTS, SAME_NUMBERS
from gviz.explain.recording_survey import NodeRecord, Survey

_NORMALIZING = frozenset({"log_softmax", "logsumexp", "_log_softmax"})
_CHOOSING = frozenset({"gather", "getitem", "index", "take_along_dim", "nll_loss"})
_MOST_STEPS, _MOST_NODES, _MOST_USERS = 8, 5_000, 200


def constant_reference(survey: Survey) -> Iterator[Finding | None]:
    """Yield differences of log-probabilities that a loss only adds up: each line once."""
    seen = set[int]()
    for record in survey.ops("sub"):
        pair = list(survey.sources(record))
        if record.created.stack in seen or not record.created.requires_grad or len(pair) != 2:
            continue
        one, other = pair
        if not one.created.requires_grad or other.created.requires_grad or not one.shape or one.shape != other.shape:
            continue
        if not (_is_log_probability(one) and _is_log_probability(other) and _are_alike(survey, one, other)):
            continue
        yield None
        seen.add(record.created.stack)
        if _are_of_two_models(survey, one, other) and _is_only_added(survey, one, other):
            yield _finding(survey, record, one, other)


def _is_log_probability(record: NodeRecord) -> bool:
    stats = record.stats
    return stats is not None and not stats.nan and stats.max <= 0


def _chain(survey: Survey, record: NodeRecord) -> list[str]:
    """Return the operations by which a log-probability was chosen, back to the one that normalizes; else empty."""
    found, is_chosen = list[str](), False
    for _ in range(_MOST_STEPS):
        is_chosen = is_chosen or record.op in _CHOOSING
        if record.op not in SAME_NUMBERS:
            found.append(record.op)
        if record.op in _NORMALIZING:
            return found if is_chosen else []
        sources = list(survey.sources(record))
        if not sources:
            break
        record = next((one for one in sources if one.op in _NORMALIZING), sources[0])
    return []


def _are_alike(survey: Survey, one: NodeRecord, other: NodeRecord) -> bool:
    """Return whether two log-probabilities were chosen by the same operations."""
    chain = _chain(survey, one)
    return bool(chain) and chain == _chain(survey, other)


def _are_of_two_models(survey: Survey, one: NodeRecord, other: NodeRecord) -> bool:
    """Return whether two results come from parameters of their own."""
    trained = {node for node in _weights(survey, one) if survey.nodes[node].created.requires_grad}
    return not trained & _weights(survey, other)


def _weights(survey: Survey, record: NodeRecord) -> set[int]:
    """Return the tensors of real numbers from which a result is computed, without those that chose its actions."""
    waiting, seen, found = [record], {record.node}, set[int]()
    while waiting and len(seen) < _MOST_NODES:
        one = waiting.pop()
        if one.created.kind != "op":
            found.add(one.node)
        for source in survey.sources(one):
            is_real = source.value is not None and "float" in source.value.dtype
            if is_real and source.node not in seen:
                seen.add(source.node)
                waiting.append(source)
    return found


def _is_only_added(survey: Survey, one: NodeRecord, other: NodeRecord) -> bool:
    """Return whether the difference of two tensors reaches the loss by sums and positive multiples only.

    So must any other difference of the same two: a better estimate uses its exponential.
    """
    pair = {survey.unwrapped(one).node, survey.unwrapped(other).node}
    users = (survey.nodes[node] for node in survey.timeline.nodes.users(one.node) if node in survey.nodes)
    starts = [user.node for user in users if {survey.unwrapped(each).node for each in survey.sources(user)} == pair]
    waiting, seen, is_in_loss = [(start, 1.0) for start in starts], set(starts), False
    while waiting:
        node, sign = waiting.pop()
        if node in survey.roots:
            if sign < 0:
                return False
            is_in_loss = True
        for user_node in survey.timeline.nodes.users(node):
            user = survey.nodes.get(user_node)
            if user is None or not user.created.requires_grad or user_node in seen:
                continue
            factor = _factor(survey, user, node)
            if factor is None or len(seen) > _MOST_USERS:
                return False
            seen.add(user_node)
            waiting.append((user_node, sign * factor))
    return is_in_loss


def _factor(survey: Survey, user: NodeRecord, node: int) -> float | None:
    """Return the sign with which a sum or a multiple takes a tensor; None for any other operation."""
    sources = list(survey.sources(user))
    if user.op in ("add", "sum", "mean", *LISTS, *SAME_NUMBERS):
        return 1.0
    if user.op == "neg":
        return -1.0
    if user.op in ("sub", "rsub") and len(sources) == 2:
        is_first = sources[0].node == node
        return 1.0 if is_first == (user.op == "sub") else -1.0
    others = [one for one in sources if one.node != node]
    is_multiple = user.op in ("mul", "div") and len(others) == 1 and not others[0].created.requires_grad
    stats = others[0].stats if is_multiple else None
    return 1.0 if stats is not None and stats.min >= 0 else None


def _finding(survey: Survey, record: NodeRecord, one: NodeRecord, other: NodeRecord) -> Finding:
    timeline = survey.timeline
    text = titled("the gradient of {} does not depend on {}", label(timeline, record.node), label(timeline, other.node))
    means = f"the loss only adds it up, so it makes {label_at(timeline, one.node)} smaller wherever it was drawn"
    part = Finding("used", means, one.seq, one.node, at=survey.at(one))
    fix = "as a divergence: d = p - q; torch.expm1(-d) + d, or kl_div over all actions"
    return Finding("constant-reference", text, record.seq, record.node, (part,), fix, survey.at(record), suspected=True)
