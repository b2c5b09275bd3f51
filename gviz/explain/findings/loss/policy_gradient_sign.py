"""A policy gradient with the wrong sign: it makes actions with a high reward less likely.

Idea. The loss of a policy is the negative of log-probability times reward, return or advantage: steps make it smaller.
The path from the loss to such a product shows whether its sign is turned: by a minus, by an ``nll_loss`` or
``cross_entropy`` in place of the log-probability, or by ``baseline - reward``.

Example. ``loss = (dist.log_prob(action) * advantage).mean()`` in place of ``-(…).mean()``.

Limits. What a factor means is known by its name only: one that is called a cost or a regret is to become small. So it
is a note, unless the rewards of the recording fall. A ratio of probabilities counts as a log-probability does. An
opponent, which lowers the reward that another policy raises, is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean, pstdev

from gviz.events import OptimizerStarted
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.loss_terms import Term, summands
from gviz.explain.operation_sets import CLASS_LOSSES, RESHAPING
from gviz.explain.parameter_updates import maximizes
from gviz.explain.program_text import names_read, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.values.number_text import number

_REWARD = re.compile(r"rewards?|returns?|advantages?|advs?|gains?|rets?", re.IGNORECASE)
_COST = re.compile(r"costs?|loss(es)?|penalt(y|ies)|regrets?|errors?|energy|energies", re.IGNORECASE)
_POLICY = re.compile(r"log_?p(rob|i)?s?|log_?probs?|ratios?", re.IGNORECASE)
_NEGATIVE_LOG_PROBABILITIES = CLASS_LOSSES | {"binary_cross_entropy", "binary_cross_entropy_with_logits"}
_MOST = 200
"""The most terms of one loss that are examined."""
_FEWEST = 9
"""The fewest passes that show whether rewards fall."""


def policy_gradient_sign(survey: Survey) -> Iterator[Finding | None]:
    """Yield the products of a log-probability and a reward that a loss has with the sign of the product itself."""
    steps = [step for _, step in survey.timeline.select((OptimizerStarted,))]
    if not steps or any(map(maximizes, steps)):
        return  # updates by hand may go along the gradient
    by_line: dict[int, list[NodeRecord]] = {}
    for _, event in survey.passes:
        for node, _ in event.roots:
            if node in survey.nodes:
                by_line.setdefault(survey.nodes[node].created.stack, []).append(survey.nodes[node])
    latest = [list(_products(survey, roots[-1])) for roots in by_line.values()]
    for roots, products in zip(by_line.values(), latest, strict=True):
        yield None
        found = next((one for one in products if one.sign > 0), None)
        if found is not None and not any(_is_opponent(survey, found, other) for row in latest for other in row):
            yield _finding(survey, roots, found)


@dataclass(frozen=True, slots=True)
class _Product:
    """A log-probability times a reward, as a term of a loss; `sign` is that of the reward in the loss."""

    record: NodeRecord
    policy: NodeRecord
    reward: NodeRecord
    sign: float


def _products(survey: Survey, root: NodeRecord) -> Iterator[_Product]:
    """Yield the products of a log-probability and a reward that are terms of a loss."""
    waiting, count = [Term(root)], 0
    while waiting and count < _MOST:
        term = waiting.pop()
        count += 1
        sources = list(survey.sources(term.record))
        rewards = [one for one in sources if not (one.created.requires_grad or "number" in dict(one.created.attrs))]
        if term.record.op == "mul" and len(sources) == 2 and len(rewards) == 1:
            (policy,) = (one for one in sources if one is not rewards[0])
            if _is_policy_gradient(survey, term.record, policy, rewards[0]):
                sign = term.factor * _sign_of_policy(survey, policy) * _sign_of_reward(survey, rewards[0])
                yield _Product(term.record, policy, rewards[0], sign)
                continue
        if term.record.op in ("minimum", "min"):  # of a ratio and the same clipped
            waiting += [Term(one, term.factor) for one in sources if one.created.requires_grad]
        waiting += summands(survey, term)


def _is_opponent(survey: Survey, one: _Product, other: _Product) -> bool:
    """Return whether two policies without a common parameter push one reward in opposite directions, as in a game."""
    if other.sign >= 0:
        return False
    parameters = [survey.optimized.intersection(survey.history(each.policy.node)) for each in (one, other)]
    rewards = [{each.reward.node, *ancestors(survey.timeline, each.reward.node)} for each in (one, other)]
    names = (survey.timeline.info(node).name for node in rewards[0] & rewards[1])
    return parameters[0].isdisjoint(parameters[1]) and any(_is_of(_REWARD, name) for name in names)


def _is_policy_gradient(survey: Survey, product: NodeRecord, policy: NodeRecord, reward: NodeRecord) -> bool:
    """Return whether a product is one of a log-probability and of what is to become large, as their names say."""
    names = _words(survey, product)
    of_reward = {survey.timeline.info(reward.node).name, *(name for name in names if _is_of(_REWARD, name))}
    if any(_is_of(_COST, name) for name in names - {survey.timeline.info(policy.node).name}):
        return False
    of_policy = {survey.timeline.info(policy.node).name, *names, *_words(survey, policy)}
    return any(_is_of(_REWARD, name) for name in of_reward) and any(_is_of(_POLICY, name) for name in of_policy)


def _words(survey: Survey, record: NodeRecord) -> set[str]:
    """Return the last parts of the names that the line of a node reads: ``log_prob`` of ``dist.log_prob(action)``."""
    source = statement_at(survey.timeline, survey.at(record))
    if source is None:
        return set()
    attributes = {part.attr for part in source[1].parts(ast.Attribute)}
    return attributes | set(names_read(source[1].node))


def _is_of(pattern: re.Pattern[str], name: str) -> bool:
    """Return whether one of the words of a name fits: ``step_rewards``, ``logProb``."""
    last = name.rpartition(".")[2]
    return bool(pattern.fullmatch(last)) or any(pattern.fullmatch(word) for word in last.split("_"))


def _sign_of_policy(survey: Survey, policy: NodeRecord) -> int:
    """Return -1 for the negative of a log-probability, such as a cross-entropy for each action; else 1."""
    sign = 1
    for _ in range(_MOST):
        tracked = [one for one in survey.sources(policy) if one.created.requires_grad]
        if policy.op in _NEGATIVE_LOG_PROBABILITIES:
            return -sign
        if policy.op not in RESHAPING | {"neg", "sum"} or len(tracked) != 1:
            break
        sign, policy = (-sign if policy.op == "neg" else sign), tracked[0]
    return sign


def _sign_of_reward(survey: Survey, reward: NodeRecord) -> int:
    """Return -1 for the negative of a reward, and for ``baseline - reward``; else 1, as for ``reward = -cost``."""
    sources = list(survey.sources(reward))
    if reward.op == "neg" and sources and not _is_of(_REWARD, survey.timeline.info(reward.node).name):
        return -_sign_of_reward(survey, sources[0])
    if reward.op in ("sub", "rsub") and len(sources) == 2:
        subtracted, other = sources[::-1] if reward.op == "sub" else sources
        named = [_is_of(_REWARD, survey.timeline.info(one.node).name) for one in (subtracted, other)]
        return -1 if named == [True, False] else 1
    return 1


def _finding(survey: Survey, roots: Sequence[NodeRecord], found: _Product) -> Finding:
    timeline, product, reward = survey.timeline, found.record, found.reward
    name = timeline.info(reward.node).name
    what = label(timeline, reward.node) if name else "the reward"
    text = titled("{} has the wrong sign: it makes actions with a high reward rarer", label(timeline, product.node))
    why = f"steps make the loss smaller, and with it the log-probability of actions for which {what} is high"
    parts = [Finding("sign", why, product.seq, product.node)]
    means = _mean_rewards(survey, roots)
    numbers: tuple[Number, ...] = ()
    third = len(means) // 3
    falls = len(means) >= _FEWEST and fmean(means[-third:]) < fmean(means[:third]) - pstdev(means[:third])
    if falls:
        first, last = fmean(means[:third]), fmean(means[-third:])
        fell = f"its mean falls from {number(first, 3)} to {number(last, 3)} in {len(means)} passes"
        parts.append(Finding("falls", fell, roots[-1].seq, reward.node))
        numbers = (Number("first", first), Number("last", last))
    fix = "-(log_prob * advantage).mean(): the loss is the negative of what is to become large"
    return Finding(
        "policy-sign",
        text,
        product.seq,
        product.node,
        tuple(parts),
        fix,
        survey.at(product),
        numbers,
        suspected=not falls,
    )


def _mean_rewards(survey: Survey, roots: Sequence[NodeRecord]) -> list[float]:
    """Return the mean of the rewards of each pass: of the first tensor behind its products that is called a reward."""
    means = []
    for root in roots:
        found = next((one for one in _products(survey, root) if one.sign > 0), None)
        behind = (
            (survey.nodes.get(node) for node in ancestors(survey.timeline, found.reward.node)) if found else iter(())
        )
        named = (one for one in behind if one is not None and _is_of(_REWARD, survey.timeline.info(one.node).name))
        stats = one.stats if (one := next(named, found.reward if found else None)) is not None else None
        if stats is not None and isfinite(stats.mean):
            means.append(stats.mean)
    return means
