"""The logarithm of a scale in a loss, with the wrong sign: a log-determinant of a flow, the variance of a Gaussian.

Idea. A model that computes a scale as ``exp(s)`` has a term ``s`` in its loss, which holds the scale back: data is
divided by the scale and the loss adds ``s``, or noise is multiplied by it and the loss subtracts ``s``. If ``s`` has
the sign of the exponent, both get smaller together, and nothing holds the scale.

Example. ``u = (x - m) * exp(-s)`` is the step of a flow from data to noise. Its log-determinant is ``-s``, and the loss
``-(log_p(u) - s)`` adds ``s``. With ``+s`` as the log-determinant the loss falls as ``u`` shrinks to nothing.

Limits. The term must be a plain sum of ``s`` on its way to the loss. A weight of ``s`` may hold something else, so this
is a note.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from math import nan

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.loss_terms import Term, summands, summands_by_element
from gviz.explain.operation_sets import SAME_NUMBERS
from gviz.explain.recording_survey import NodeRecord, Survey

_MOST = 2_000
"""The most nodes of a loss that are searched."""


@dataclass(frozen=True, slots=True)
class _Summand:
    """A tensor that a loss adds: the factor of its elements, nan if it is added several times, and the sum it is in.

    `subtracted` is the difference nearest to it that turns its sign, such as ``base - log_det``.
    """

    factor: float
    user: NodeRecord
    subtracted: NodeRecord | None = None


def wrong_log_scales(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first logarithm of a scale in each loss whose sign is that of the exponent."""
    last = {event.stack: event for _, event in survey.passes if len(event.roots) == 1 and not event.inputs}
    for event in last.values():
        yield None
        root = survey.nodes.get(event.roots[0][0])
        if root is None or root.shape:
            continue
        added = _summands(survey, root)
        found = (one for record in _exponentials(survey, root) if (one := _misfit(survey, record, added)))
        if (finding := next(found, None)) is not None:
            yield finding


def _summands(survey: Survey, root: NodeRecord) -> dict[int, _Summand]:
    """Return the tensors that a loss adds up, by node, and the sums between."""
    found = dict[int, _Summand]()
    waiting: list[tuple[Term, NodeRecord | None]] = [(Term(root), None)]
    while waiting and len(found) < _MOST:
        term, subtracted = waiting.pop()
        for one in summands_by_element(survey, term):
            node, is_known = one.record.node, one.record.node in found
            if one.record.created.requires_grad:
                is_turned = term.record.op in ("sub", "rsub") and one.factor * term.factor < 0
                nearest = term.record if is_turned else subtracted
                found[node] = _Summand(nan if is_known else one.factor, term.record, nearest)
                waiting += [] if is_known else [(one, nearest)]
    return found


def _exponentials(survey: Survey, root: NodeRecord) -> Iterator[NodeRecord]:
    """Yield the tracked ``exp`` that a loss was made from."""
    waiting, seen = [root], {root.node}
    while waiting and len(seen) < _MOST:
        record = waiting.pop()
        if record.op == "exp":
            yield record
        for source in survey.sources(record):
            if source.node not in seen and source.created.requires_grad:
                seen.add(source.node)
                waiting.append(source)


def _misfit(survey: Survey, exponential: NodeRecord, added: dict[int, _Summand]) -> Finding | None:
    """Return what is wrong with the logarithm of a scale, if its term has the sign of the error that is scaled.

    Both must count alike: the weight of a logarithm is once or twice that of the square, or half of it.
    """
    scaled = None if exponential.node in added else _scaled(survey, exponential)  # a divergence has both
    error = _error_of(survey, scaled[0], added) if scaled is not None else None
    source = next(survey.sources(exponential), None)
    if scaled is None or error is None or source is None:
        return None
    record, power = source, scaled[1]
    while (summand := added.get(record.node)) is None:
        below = [one for one in summands(survey, Term(record, power)) if one.record.created.requires_grad]
        if len(below) != 1:
            return None
        record, power = below[0].record, below[0].factor
    ratio = summand.factor / error
    if not _LEAST_RATIO <= abs(ratio) <= _MOST_RATIO or (ratio > 0) != (power > 0):
        return None
    return _finding(survey, exponential, record, summand)


_LEAST_RATIO, _MOST_RATIO = 0.4, 2.5


def _scaled(survey: Survey, exponential: NodeRecord) -> tuple[NodeRecord, float] | None:
    """Return what is multiplied or divided by an exponential, with the power of the exponential in it: 1 or -1."""
    node, power = exponential, 1.0
    for _ in range(_MOST_BETWEEN):
        users = [survey.nodes[one] for one in survey.timeline.nodes.users(node.node) if one in survey.nodes]
        tracked = [one for one in users if one.created.requires_grad]
        if len(tracked) != 1:
            return None
        user, sources = tracked[0], list(survey.sources(tracked[0]))
        if user.op in ("mul", "div") and len(sources) == 2 and all(source.shape for source in sources):
            return user, -power if user.op == "div" and sources[1].node == node.node else power
        if user.op == "reciprocal":
            power = -power
        elif user.op not in SAME_NUMBERS | {"pow", "square", "sqrt", "mul", "add"}:
            return None
        node = user
    return None


def _error_of(survey: Survey, scaled: NodeRecord, added: dict[int, _Summand]) -> float | None:
    """Return the factor in a loss of the square of what is scaled, or of a scaled square; None if there is none."""
    if scaled.node in added and any(_is_square(survey, source) for source in survey.sources(scaled)):
        return added[scaled.node].factor
    waiting, seen = deque([scaled]), {scaled.node}
    while waiting and len(seen) < _MOST_FOLLOWED:
        for node in survey.timeline.nodes.users(waiting.popleft().node):
            user = survey.nodes.get(node)
            if user is None or node in seen or not user.created.requires_grad:
                continue
            seen.add(node)
            if user.node in added and _is_square(survey, user):
                return added[user.node].factor
            waiting.append(user)
    return None


def _is_square(survey: Survey, record: NodeRecord) -> bool:
    return record.op == "abs" or survey.is_square(record)


_MOST_FOLLOWED = 400
_MOST_BETWEEN = 4


def _finding(survey: Survey, exponential: NodeRecord, record: NodeRecord, summand: _Summand) -> Finding:
    timeline = survey.timeline
    names = label(timeline, record.node), label(timeline, exponential.node)
    text = titled("the loss has {} with the sign that it has in {}", *names)
    way = "smaller" if summand.factor > 0 else "larger"
    both = f"the {way} it is, the smaller are the loss and the error that {label_at(timeline, exponential.node)} scales"
    part = Finding("sum", f"{both}: nothing holds it back", exponential.seq, exponential.node)
    fix = "the other sign: x * exp(s) has the log-determinant s.sum(), x * exp(-s) has -s.sum(); the loss subtracts it"
    at = survey.at(summand.subtracted or summand.user)
    return Finding("log-scale", text, summand.user.seq, record.node, (part,), fix, at, suspected=True)
