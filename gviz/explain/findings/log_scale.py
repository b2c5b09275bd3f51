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

from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import LISTS, SAME_NUMBERS
from gviz.explain.recording_overview import NodeRecord, Survey

_CARRYING = SAME_NUMBERS | LISTS | {"add", "sum", "mean", "expand"}
_MOST = 2_000
"""The most nodes of a loss that are searched."""


@dataclass(frozen=True, slots=True)
class _Summand:
    """A tensor that a loss adds, with the sign, and what was made of it on the way to the loss."""

    sign: int
    user: NodeRecord


def wrong_log_scales(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first logarithm of a scale in each loss whose sign is that of the exponent."""
    last = {event.stack: event for _, event in survey.passes if len(event.roots) == 1 and not event.inputs}
    for event in last.values():
        yield None
        root = survey.nodes.get(event.roots[0][0])
        if root is None or root.shape:
            continue
        summands = _summands(survey, root)
        found = (one for record in _exponentials(survey, root) if (one := _misfit(survey, record, summands)))
        if (finding := next(found, None)) is not None:
            yield finding


def _summands(survey: Survey, root: NodeRecord) -> dict[int, _Summand]:
    """Return the tensors that a loss adds up, by node, and the sums between."""
    found, waiting = dict[int, _Summand](), [(root, 1)]
    while waiting and len(found) < _MOST:
        record, sign = waiting.pop()
        for source, factor in _signed_sources(survey, record, sign):
            if source.created.requires_grad and source.node not in found:
                found[source.node] = _Summand(factor, record)
                waiting.append((source, factor))
    return found


def _signed_sources(survey: Survey, record: NodeRecord, sign: int) -> Iterator[tuple[NodeRecord, int]]:
    """Yield the inputs of a linear operation, with the sign that each has in its result; nothing for any other."""
    sources = list(survey.sources(record))
    if record.op in _CARRYING:
        yield from ((source, sign) for source in sources)
    elif record.op == "neg":
        yield from ((source, -sign) for source in sources)
    elif record.op == "sub":
        yield from ((source, -sign if place else sign) for place, source in enumerate(sources))
    elif record.op in ("mul", "div"):
        yield from ((source, sign * factor) for source, factor in _multiple(record, sources))


def _multiple(record: NodeRecord, sources: list[NodeRecord]) -> Iterator[tuple[NodeRecord, int]]:
    """Yield the tensor that an operation multiplies by a number, with the sign of the number."""
    for place, source in enumerate(sources):
        others = [one for one in sources if one is not source]
        stats = others[0].value.statistics() if len(others) == 1 and others[0].value is not None else None
        is_number = len(others) == 1 and not others[0].shape and not others[0].created.requires_grad
        if is_number and stats is not None and stats.min and (record.op == "mul" or place == 0):
            yield source, 1 if stats.min > 0 else -1


def _exponentials(survey: Survey, root: NodeRecord) -> Iterator[NodeRecord]:
    """Yield the tracked ``exp`` on the way to a loss that its module, or the program, multiplies or divides by."""
    waiting, seen = [root], {root.node}
    while waiting and len(seen) < _MOST:
        record = waiting.pop()
        if record.op == "exp":
            yield record
        for source in survey.sources(record):
            if source.node not in seen and source.created.requires_grad:
                seen.add(source.node)
                waiting.append(source)


def _misfit(survey: Survey, exponential: NodeRecord, summands: dict[int, _Summand]) -> Finding | None:
    power = _power(survey, exponential)
    if exponential.node in summands or not power:
        return None  # a divergence has both
    record, sign = exponential, power
    while True:
        signed = (
            list(_signed_sources(survey, record, sign))
            if record is not exponential
            else [(source, sign) for source in survey.sources(record)]
        )
        if len(signed) != 1:
            return None
        record, sign = signed[0]
        summand = summands.get(record.node)
        if summand is not None:
            return _finding(survey, exponential, record, summand, sign) if summand.sign == sign else None


def _power(survey: Survey, exponential: NodeRecord) -> int:
    """Return 1 if something is multiplied by an exponential, -1 if it is divided by it, 0 for anything else."""
    node, power = exponential, 1
    for _ in range(_MOST_BETWEEN):
        users = [survey.nodes[one] for one in survey.timeline.nodes.users(node.node) if one in survey.nodes]
        tracked = [one for one in users if one.created.requires_grad]
        if len(tracked) != 1:
            return 0
        user, sources = tracked[0], list(survey.sources(tracked[0]))
        if user.op in ("mul", "div") and len(sources) == 2 and all(source.shape for source in sources):
            return -power if user.op == "div" and sources[1].node == node.node else power
        if user.op == "reciprocal":
            power = -power
        elif user.op not in SAME_NUMBERS | {"pow", "square", "sqrt", "mul", "add"}:
            return 0
        node = user
    return 0


_MOST_BETWEEN = 4


def _finding(survey: Survey, exponential: NodeRecord, record: NodeRecord, summand: _Summand, sign: int) -> Finding:
    timeline = survey.timeline
    names = label(timeline, record.node), label(timeline, exponential.node)
    text = titled("the loss has {} with the sign that it has in {}", *names)
    way = "less" if summand.sign > 0 else "more"
    both = f"with {way} of it the loss falls, and what {label_at(timeline, exponential.node)} scales gets smaller, too"
    part = Finding("sum", f"{both}: nothing holds it back", exponential.seq, exponential.node)
    fix = "the other sign: x * exp(s) has the log-determinant s.sum(), x * exp(-s) has -s.sum(); the loss subtracts it"
    at = survey.at(summand.user)
    return Finding("log-scale", text, summand.user.seq, record.node, (part,), fix, at, suspected=True)
