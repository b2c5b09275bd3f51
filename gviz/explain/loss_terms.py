"""The terms of a loss: the losses whose sum a pass begins from, and the numbers and tensors that a loss is the sum of.

A term has the factor with which the loss takes it: ``loss = a - 2 * b`` has the terms a with 1 and b with -2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gviz.explain.operation_sets import LISTS, RESHAPING
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline

_MOST = 200
"""The most nodes of one loss that are examined."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a loss with its factor; `turned` is the last node on its path that changed the sign.

    `sum` is the last node on its path that adds other terms, or subtracts one from the other, and `is_right` if the
    term is the second operand there. `operand` is that operand, or the tensor with a name that it is a multiple of.
    """

    record: NodeRecord
    factor: float = 1.0
    turned: NodeRecord | None = None
    sum: NodeRecord | None = None
    is_right: bool = False
    operand: NodeRecord | None = None


def scalar_terms(survey: Survey, root: NodeRecord) -> list[Term]:
    """Return the numbers whose sum is a loss."""
    return [*_walk(survey, Term(root), scalars=True)]


def tensor_terms(survey: Survey, term: Term) -> Iterator[Term]:
    """Yield the tensors whose sum is a term: of all elements, or their mean."""
    return _walk(survey, term, scalars=False)


def _walk(survey: Survey, start: Term, *, scalars: bool) -> Iterator[Term]:
    waiting, count = [start], 0
    while waiting and count < _MOST:
        term = waiting.pop()
        count += 1
        below = summands(survey, term)
        if scalars and any(one.record.shape for one in below):
            below = []
        if below:
            waiting += reversed(below)
        elif term.record.created.requires_grad:
            yield term


def summands(survey: Survey, term: Term) -> list[Term]:
    """Return the terms of a sum or a multiple, with their factors; nothing for anything else."""
    record, sources = term.record, list(survey.sources(term.record))
    if len(sources) != len(record.created.inputs) or not sources:
        return []
    factors: list[float | None] = []
    alpha = dict(record.created.attrs).get("alpha", 1)
    weight = float(alpha) if isinstance(alpha, int | float) else 1.0
    match record.op, len(sources):
        case ("add", 2):
            factors = [1.0, weight]
        case ("sub", 2):
            factors = [1.0, -weight]
        case ("rsub", 2):
            factors = [-weight, 1.0]
        case ("neg", 1):
            factors = [-1.0]
        case ("mul", 2):
            signs = [None if source.created.requires_grad else _sign(source) for source in sources]
            factors = signs[::-1]
        case ("div", 2) if not sources[1].created.requires_grad:
            divisor = _sign(sources[1])
            factors = [1 / divisor if divisor else None]
        case (op, 1) if op in RESHAPING or op in ("sum", "mean"):
            factors = [1.0]
        case ("stack" | "cat", _):
            factors = [1.0] * len(sources)
    is_sum = record.op in ("add", "sub") and all(source.created.requires_grad for source in sources)
    terms = []
    for at, (source, factor) in enumerate(zip(sources, factors, strict=False)):
        if factor:
            one = replace(term, record=source, factor=term.factor * factor)
            one = one if factor > 0 else replace(one, turned=record)
            if is_sum and not source.shape:
                one = replace(one, sum=record, is_right=at == 1, operand=source)
            elif one.operand is not None and not survey.timeline.info(one.operand.node).name and not source.shape:
                one = replace(one, operand=source)
            terms.append(one)
    return terms


def summands_by_element(survey: Survey, term: Term) -> list[Term]:
    """Return the terms of a sum or a multiple with the factor of each element: that of a mean is shared by all."""
    record, source = term.record, next(survey.sources(term.record), None)
    below = summands(survey, term)
    sizes = [one.value.size for one in (record, source) if one is not None and one.value is not None]
    if record.op != "mean" or len(sizes) < 2 or not sizes[1]:
        return below
    return [replace(one, factor=one.factor * sizes[0] / sizes[1]) for one in below]


def _sign(factor: NodeRecord) -> float | None:
    """Return a number, or for a tensor of numbers of one sign that sign; None for any other."""
    stats = factor.value.statistics() if factor.value is not None else None
    if stats is None or factor.created.requires_grad or stats.nan or stats.inf:
        return None
    if factor.value is not None and factor.value.size == 1:
        return stats.mean
    return 1.0 if stats.min >= 0 else -1.0 if stats.max <= 0 else None


# The losses whose sum is the root of a pass

MOST_LOSSES = 20
"""A sum of more terms is one loss of many steps or rows."""

_SUMS = {"add", "sub", "sum", "mean", *LISTS}
_SCALES = {"mul", "div", "neg", *RESHAPING}


@dataclass(frozen=True, slots=True)
class Losses:
    """For each loss, the nodes of the sum that use it; and all nodes of the sum."""

    uses: Mapping[int, frozenset[int]]
    summing: frozenset[int]


def losses_of(timeline: Timeline, roots: Sequence[int]) -> Losses | None:
    """Return the losses whose sum is the root of a pass; None if there is only one.

    Factors between the root and the losses belong to the sum: the losses of ``l1 + 0.1 * l2`` are ``l1`` and ``l2``.
    """
    uses: dict[int, frozenset[int]] = {}
    summing: set[int] = set()
    waiting = [(root, 0) for root in reversed(roots)]
    while waiting and len(uses) <= MOST_LOSSES:
        node, user = waiting.pop()
        if node in summing:
            continue  # a sum that is used twice, as in x + dt * x: its terms are known
        below = _summands(timeline, timeline.info(node))
        if below and not _is_named_loss(timeline, node, below):
            summing.add(node)
            waiting += [(source, node) for source in reversed(below)]
        else:
            uses[node] = uses.get(node, frozenset()) | {user}
    return Losses(uses, frozenset(summing)) if 1 < len(uses) <= MOST_LOSSES else None


def _is_named_loss(timeline: Timeline, node: int, below: Sequence[int]) -> bool:
    """Return whether a multiple has the name of the loss that it is made from: ``kd = 0.5 * mse_loss(a, b)``."""
    is_multiple = timeline.info(node).op.base_name in _SCALES and len(below) == 1 and not timeline.info(below[0]).name
    return is_multiple and bool(timeline.info(node).name) and not _summands(timeline, timeline.info(below[0]))


def _summands(timeline: Timeline, info: NodeInfo) -> list[int]:
    """Return the terms of a sum, or the tensor that a multiple is made from; nothing for a loss."""
    sources = _tracked(timeline, info)
    op = info.op.base_name
    known = (op in _SUMS and bool(sources)) or (op in _SCALES and len(sources) == 1)
    if known and all(map(_is_scalar, sources)):
        return [source.node for source in sources]
    stacked = op in {"sum", "mean"} and len(sources) == 1 and sources[0].op.name in LISTS
    return [sources[0].node] if stacked and all(map(_is_scalar, _tracked(timeline, sources[0]))) else []


def _tracked(timeline: Timeline, info: NodeInfo) -> list[NodeInfo]:
    sources = (timeline.info(node) for node, _ in info.created.inputs if node)
    return [source for source in sources if source.created.requires_grad]


def _is_scalar(info: NodeInfo) -> bool:
    value = info.created.first_value
    return value is not None and value.size == 1
