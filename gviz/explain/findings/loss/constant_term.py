"""A term of a loss that has the same value in every backward pass, although what it is computed from changes.

Idea. If a term is the same number for all batches and all parameters, its gradient is 0 for every parameter. The
recorded numbers show it: the term stays within rounding, and tensors from which sums and products make it do not.

Example. A load-balancing loss of a mixture of experts multiplies two distributions as an outer product,
``(fraction[:, None] * score[None]).sum()``. The sum is the product of two sums that are both 1.

The sum or the mean of all numbers of a softmax is constant whatever the parameters are, also if it is the whole loss.

Limits. At least four passes are needed, and other terms need a second one. A term that a clamp, a choice or a rounding
keeps constant is left out, and so is one near 0. The squares of normalized numbers may be a part of a distance, and are
a note.

A sum is also constant in a formula that holds for any numbers, if the program gives it normalized ones: the Poisson
likelihood ``rate.sum() - (counts * rate.log()).sum()`` with rates of a known total, ``- plan.sum()`` in the divergence
of a transport plan, or the number of all trips that a softmax distributes. There the tensor that is summed is used by
another term, too: in the same statement, or it is no distribution but an amount.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import isfinite

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.loss_terms import scalar_terms
from gviz.explain.operation_sets import LISTS, RESHAPING, SOFTMAXES, WEIGHTED_SUMS, WEIGHTING
from gviz.explain.program_text import statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.tracking import ancestors, descendants
from gviz.values.number_text import number

_SMOOTH = RESHAPING | LISTS | WEIGHTED_SUMS | {
    "add", "sub", "rsub", "mul", "div", "neg", "sum", "mean", "pow", "square", "dot", "t", "transpose", "permute",
    "flatten",
}  # fmt: skip
"""Operations through which a change of their inputs shows, however small it is."""

_FEWEST_PASSES, _MOST_PASSES = 4, 24
_SCALING = RESHAPING | {"mul", "div", "neg", "sum", "mean"}
_MOST_NODES = 40
_MOST_BEHIND = 2_000
_ROUNDING = 2e-6
_CHANGE = 0.01
_LEAST = 1e-4


@dataclass(frozen=True, slots=True)
class _Input:
    """A tensor behind a constant term in the first and last pass; `has_one_sum` if its mean is the same in all.

    `is_multiplied` is whether each of its numbers is multiplied by each of another tensor.
    """

    first: NodeRecord
    last: NodeRecord
    has_one_sum: bool
    is_squared: bool = False
    is_multiplied: bool = False


def constant_terms(survey: Survey) -> Iterator[Finding | None]:
    """Yield the terms of losses that are the same number in every pass: each line once."""
    training = {event.pass_nr for _, event in survey.accumulated if event.node in survey.optimized}
    calls: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    for _, event in survey.passes:
        root = survey.nodes.get(event.roots[0][0]) if len(event.roots) == 1 else None
        if event.pass_nr in training and root is not None and root.value is not None and root.value.size == 1:
            calls[event.stack].append(root)
    reported: set[int] = set()
    for roots in calls.values():
        if len(roots) < _FEWEST_PASSES:
            continue
        by_place: defaultdict[tuple[int, int], list[NodeRecord]] = defaultdict(list)
        for root in roots[:_MOST_PASSES]:
            yield None
            terms = [one.record for one in scalar_terms(survey, root)]
            counts: defaultdict[int, int] = defaultdict(int)
            for term in terms if len(terms) > 1 else [root]:
                stack = term.created.stack
                by_place[stack, counts[stack]].append(term)
                counts[stack] += 1
        for (stack, _), terms in by_place.items():
            yield None
            if stack in reported or not _is_constant(terms) or _is_of_formula(survey, terms[-1]):
                continue
            if terms[-1].node in survey.roots:  # else a loss may be constant at its least value
                if (softmax := _summed_softmax(survey, terms[-1])) is not None:
                    reported.add(stack)
                    yield _softmax_finding(survey, terms, softmax)
                continue
            if (changed := _changed(survey, terms)) is not None:
                reported.add(stack)
                yield _finding(survey, terms, changed)


def _is_constant(terms: Sequence[NodeRecord]) -> bool:
    """Return whether a term has one value, up to rounding, that is not near 0."""
    known = [stats.mean for one in terms if (stats := one.stats) is not None and isfinite(stats.mean)]
    if len(known) < max(_FEWEST_PASSES, len(terms)) or abs(known[0]) < _LEAST:
        return False
    return max(known) - min(known) <= _ROUNDING * abs(known[0])


def _is_of_formula(survey: Survey, term: NodeRecord) -> bool:
    """Return whether another term of the loss uses the tensor whose sum a term is, as in a divergence of amounts."""
    total, sources = term, list(survey.sources(term))
    while total.op in _SCALING and len(tracked := [one for one in sources if one.created.requires_grad]) == 1:
        if total.op in ("sum", "mean") and (tracked[0].shape or total.op == "sum"):
            break
        total, sources = tracked[0], list(survey.sources(tracked[0]))
    if total.op != "sum" or total.shape or not sources or not sources[0].shape:
        return False
    summed = survey.unwrapped(sources[0])
    before = {term.node, *islice(ancestors(survey.timeline, term.node), _MOST_BEHIND)}
    users = (survey.nodes[user] for user in survey.timeline.nodes.users(summed.node) if user in survey.nodes)
    others = [one for one in users if one.node not in before and one.created.requires_grad]
    line = _line(survey, total)
    if line and any(_line(survey, one) == line for one in others):
        return True
    if _is_distribution(survey, summed):
        return False
    return any(not survey.roots.isdisjoint(descendants(survey.timeline, one.node)) for one in others)


def _summed_softmax(survey: Survey, loss: NodeRecord) -> NodeRecord | None:
    """Return the softmax all of whose numbers a loss adds up: their sum is the number of its rows."""
    record = loss
    for _ in range(_MOST_NODES):
        sources = list(survey.sources(record))
        tracked = [one for one in sources if one.created.requires_grad]
        if record.op in WEIGHTING:
            return record
        if record.op not in _SCALING or len(tracked) != 1:
            return None
        if any(one is not tracked[0] and one.value is not None and one.value.size > 1 for one in sources):
            return None
        record = tracked[0]
    return None


def _line(survey: Survey, record: NodeRecord) -> tuple[str, int] | None:
    """Return the file and the first line of the statement that made a node."""
    at = survey.at(record)
    source = statement_at(survey.timeline, at)
    return (at.path, source[1].first) if at is not None and source is not None else None


def _is_distribution(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a tensor is a softmax of results, or numbers divided by their own sum.

    A softmax of a parameter is an amount, too: a program that searches for shares of a budget has one.
    """
    if record.op in SOFTMAXES:
        return all(survey.unwrapped(one).created.kind == "op" for one in survey.sources(record))
    sources = [survey.unwrapped(one) for one in survey.sources(record)]
    if record.op != "div" or len(sources) != 2 or sources[1].op != "sum":
        return False
    return any(survey.unwrapped(one).node == sources[0].node for one in survey.sources(sources[1]))


def _changed(survey: Survey, terms: Sequence[NodeRecord]) -> _Input | None:
    """Return the farthest tensor behind a term that changes but has one sum in all passes, or the nearest other."""
    waiting: list[tuple[Sequence[NodeRecord], bool, bool]] = [(terms, False, False)]
    seen, found = 0, list[_Input]()
    while waiting and seen < _MOST_NODES:
        alike, is_squared, is_multiplied = waiting.pop(0)
        seen += 1
        first = alike[0]
        if first.op not in _SMOOTH or any(one.op != first.op for one in alike):
            continue
        rows = [list(survey.sources(one)) for one in alike]
        if len({len(row) for row in rows}) != 1:
            continue
        is_squared = is_squared or survey.is_square(first)
        sizes = [one.value.size for one in (first, *survey.sources(first)) if one.value is not None]
        is_multiplied = is_multiplied or (first.op == "mul" and sizes[0] > max(sizes[1:], default=sizes[0]))
        for sources in zip(*rows, strict=True):
            if not all(one.created.requires_grad for one in sources):
                continue
            one = _as_changed(sources)
            if one is not None:
                is_square = is_squared or survey.is_square(sources[0])
                found.append(replace(one, is_squared=is_square, is_multiplied=is_multiplied))
            waiting.append((sources, is_squared, is_multiplied))
    constant = [one for one in found if one.has_one_sum]
    return constant[-1] if constant else found[0] if found else None


def _as_changed(alike: Sequence[NodeRecord]) -> _Input | None:
    """Return a tensor that a pass has changed, by its extremes, its mean or its mean square."""
    known = [stats for one in alike if (stats := one.stats) is not None]
    if len(known) < len(alike) or alike[0].value is None or alike[0].value.size < 2:
        return None
    size = max(one.rms for one in known)
    means = [one.mean for one in known]
    has_one_sum = max(means) - min(means) <= _ROUNDING * size and abs(means[0]) > _LEAST * size
    rows = [[one.min for one in known], [one.max for one in known], means, [one.rms for one in known]]
    if not isfinite(size) or not size or max(max(row) - min(row) for row in rows) < _CHANGE * size:
        return None
    return _Input(alike[0], alike[-1], has_one_sum)


def _softmax_finding(survey: Survey, losses: Sequence[NodeRecord], softmax: NodeRecord) -> Finding:
    timeline, last = survey.timeline, losses[-1]
    value = last.stats.mean if last.stats is not None else 0.0
    text = titled(f"{{}} is {number(value, 4)} in every backward pass: it trains nothing", label(timeline, last.node))
    facts = f"it adds up {label_at(timeline, softmax.node)}, and a softmax adds up to 1 whatever the parameters are"
    fix = (
        "take the numbers before the softmax, or the probabilities of the right classes: cross_entropy(logits, labels)"
    )
    part = Finding("root", facts, softmax.seq, softmax.node)
    numbers = (Number("value", value, last.seq), Number("passes", len(losses)))
    return Finding("constant-term", text, last.seq, last.node, (part,), fix, survey.at(last), numbers)


def _finding(survey: Survey, terms: Sequence[NodeRecord], changed: _Input) -> Finding:
    timeline, last = survey.timeline, terms[-1]
    stats = last.stats
    value = stats.mean if stats is not None else 0.0
    text = titled(f"{{}} is {number(value, 4)} in every backward pass: it trains nothing", label(timeline, last.node))
    name = label_at(timeline, changed.last.node)
    ends = [one for record in (changed.first, changed.last) if (one := record.stats) is not None]
    span = (
        f"from {number(ends[0].min, 4)}..{number(ends[0].max, 4)} to {number(ends[1].min, 4)}..{number(ends[1].max, 4)}"
    )
    facts = f"the same number in {len(terms)} passes, but {name} goes {span}"
    fix = "make it from numbers that depend on the parameters, or leave it out"
    if changed.has_one_sum:
        mean, size = ends[1].mean, changed.last.value.size if changed.last.value is not None else 0
        facts = (
            f"it is made from {name}: its {size:,} numbers sum to {number(mean * size, 4)} in all {len(terms)} passes"
        )
        fix = "take the numbers before they are normalized, or a function of each number, or leave this term out"
        if changed.is_multiplied:
            fix = "multiply numbers of the same class or expert, (p * q).sum(): the sum of each factor is constant"
        if changed.is_squared:
            fix = "take the numbers before they are normalized, or leave this term out"
    part = Finding("term", facts, last.seq, changed.last.node, at=survey.at(changed.last))
    numbers = (Number("value", value, last.seq), Number("passes", len(terms)))
    suspected = not changed.has_one_sum or changed.is_squared
    at = survey.at(last)
    return Finding("constant-term", text, last.seq, last.node, (part,), fix, at, numbers, suspected=suspected)
