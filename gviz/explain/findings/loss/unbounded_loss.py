"""A loss that falls without bound, because a term that is at least 0 is subtracted: its sign is wrong.

Idea. The loss of a pass is a sum of terms, each with a factor, and so is each term, down to squares, exponentials and
losses, which are at least 0. One of these with a negative factor has no least value: steps that make the loss smaller
make it larger and larger. It is reported if the loss in fact falls below 0, and faster and faster.

Example. ``kl = 0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()`` and ``loss = rec + kl``: the loss subtracts
``logvar.exp()``, which grows until it overflows. The divergence is ``-kl``.

Limits. Programs with several optimizers are left out, unless all of them follow one call of backward: a part of a GAN
may maximize what another one minimizes. So are programs whose optimizer has an input, as an attack or a search for
what a network likes best, and terms whose sign is not known, as the product of a log probability and an advantage, or
the score of a critic.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Generator, Iterator
from itertools import pairwise
from math import isfinite
from statistics import fmean

from gviz.events import OptimizerStepped
from gviz.explain.backward_passes import loss_at
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.learning_rate import whole_steps
from gviz.explain.loss_terms import Term, scalar_terms, tensor_terms
from gviz.explain.operation_sets import CLASS_LOSSES, LOSSES
from gviz.explain.parameter_updates import maximizes
from gviz.explain.program_text import ProgramText, is_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, rewritten
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number

_FEWEST = 8
"""The fewest passes that show how a loss develops."""

_TIMES = 3.0
"""How many times as far from 0 as at the start a loss is in the end."""

_SLOWING = 0.5
"""The least ratio of the last drop to the one before, as quarters of the passes show it."""

_AT_LEAST_ZERO = LOSSES | CLASS_LOSSES | {
    "square", "exp", "abs", "norm", "linalg_vector_norm", "softplus", "relu",
    "var", "std", "_cdist_forward", "cdist", "pairwise_distance",
}  # fmt: skip

_WITH_TARGETS = LOSSES | CLASS_LOSSES
"""Losses that compare with a target. A whole loss that is the negative of one is wrong, however slowly it falls."""


def falls_without_bound(survey: Survey) -> Iterator[Finding | None]:
    """Yield calls of backward whose loss falls below 0, faster and faster, by a subtracted term of at least 0."""
    timeline = survey.timeline
    steps = {event.stack for _, event in survey.select(OptimizerStepped) if event.parameters}
    calls: defaultdict[int, list[int]] = defaultdict(list)
    for seq, event in survey.passes:
        calls[event.stack].append(seq)
    if not steps or (len(steps) > 1 and len(calls) > 1):
        return
    for seqs in calls.values():
        yield None
        known = [one for seq in seqs if (one := loss_at(timeline, seq)) is not None and isfinite(one[1])]
        values = [value for _, value in known]
        if len(values) < _FEWEST or not values[-1] < min(0, values[0]):
            continue
        if (yield from survey.once(_is_maximizing)):
            return
        first, last = (survey.nodes[node] for node, _ in (known[0], known[-1]))
        terms = scalar_terms(survey, last)
        driver = min(terms, key=_share)
        is_whole = len(terms) == 1 and driver.record.op in _WITH_TARGETS
        if _share(driver) > values[-1] / 2 or not (_falls(values) or is_whole) or not _is_trained_alone(survey):
            continue
        subtracted = (one for one in tensor_terms(survey, driver) if one.factor < 0 and _is_at_least_zero(one.record))
        below = max(subtracted, key=_size, default=None)
        if below is not None:
            yield _unbounded_finding(survey, first, last, driver, below, values)


def _falls(values: list[float]) -> bool:
    """Return whether losses fall below 0 from quarter to quarter, and in the last one no slower than before."""
    size = len(values) // 4
    quarters = [fmean(values[at * size : (at + 1) * size]) for at in range(3)] + [fmean(values[-size:])]
    drops = [one - other for one, other in pairwise(quarters)]
    grown = max(abs(values[0]), abs(quarters[0]))
    return min(drops) > 0 and drops[2] >= _SLOWING * drops[1] and -values[-1] > _TIMES * grown


def _is_trained_alone(survey: Survey) -> bool:
    """Return whether the optimizer has all parameters that get gradients, and nothing else as an attack has."""
    added = {event.node for _, event in survey.accumulated}
    kinds = {survey.nodes[node].created.kind for node in survey.optimized if node in survey.nodes}
    trained = {node for node in added if survey.nodes[node].created.kind != "op"}
    return kinds == {"parameter"} and trained <= survey.optimized and len(survey.optimized) > 1


def _is_maximizing(survey: Survey) -> Generator[None, None, bool]:
    """Return whether an optimizer makes its loss larger, as its last step shows."""
    last = {step.end.stack: step.start for step in (yield from survey.once(whole_steps))}
    return any(map(maximizes, last.values()))


# The terms of a loss


def _share(term: Term) -> float:
    """Return what a term contributes to the loss; 0 if its value is unknown."""
    return term.factor * (term.record.number or 0.0)


def _size(term: Term) -> float:
    """Return how large the numbers of a term are on average."""
    stats = term.record.value.statistics() if term.record.value is not None else None
    return -term.factor * stats.mean if stats is not None and isfinite(stats.mean) else 0.0


def _is_at_least_zero(record: NodeRecord) -> bool:
    inputs = record.created.inputs
    is_square = record.op == "mul" and len(inputs) == 2 and inputs[0] == inputs[1]
    exponent = dict(record.created.attrs).get("exponent")
    is_power = record.op == "pow" and isinstance(exponent, int | float) and exponent % 2 == 0
    stats = record.value.statistics() if record.value is not None else None
    return record.op in _AT_LEAST_ZERO or is_square or (is_power and stats is not None and stats.min >= 0)


# What is reported


def _unbounded_finding(
    survey: Survey, first: NodeRecord, last: NodeRecord, driver: Term, below: Term, values: list[float]
) -> Finding:
    timeline = survey.timeline
    is_subtracted = driver.sum is not None and driver.sum.op == "sub" and driver.is_right
    turned = (driver.sum if is_subtracted else None) or below.turned or driver.turned or last
    at = survey.at(turned)
    text = titled(
        "{} falls without bound: {} is subtracted", label(timeline, last.node), label(timeline, below.record.node)
    )
    fell = f"the loss falls from {number(values[0])} to {number(values[-1])} in {len(values)} passes"
    part = Finding("falls", fell, last.seq, last.node)
    before = next((one for one in scalar_terms(survey, first) if _place(one) == _place(driver)), None)
    parts = [part]
    term = driver.operand or driver.record
    if term is not last:
        start = f" from {number(_share(before))}" if before is not None else ""
        one = f"the part of {label_at(timeline, term.node)} falls{start} to {number(_share(driver))}"
        parts.append(Finding("term", one, term.seq, term.node, at=survey.at(term)))
    why = f"{label_at(timeline, below.record.node)} is at least 0 and has a negative sign: it has no least value there"
    parts.append(Finding("sign", why, below.record.seq, below.record.node, at=survey.at(below.record)))
    name = timeline.info(term.node).name if term is not last else ""
    fix = f"the other sign{f' for {name}' * bool(name)}, if it is to become small; a margin, if it is to become large"
    row = (Number("first", values[0], first.seq), Number("last", values[-1], last.seq))
    edit = _edit(survey, driver, below)
    return Finding("unbounded-loss", text, last.seq, last.node, tuple(parts), fix, at, row, edit=edit)


def _place(term: Term) -> tuple[int, int]:
    return term.record.created.stack, term.record.created.op


def _edit(survey: Survey, driver: Term, below: Term) -> Edit | None:
    """Return the edit that changes the sign with which the loss takes the term, or that of the whole loss."""
    if driver.sum is not None:
        return _with_other_sign(survey.timeline, survey.at(driver.sum)) if driver.is_right else None
    turned = driver.turned or below.turned
    return _with_other_sign(survey.timeline, survey.at(turned)) if turned is not None else None


# What the program's source code shows


def _with_other_sign(timeline: Timeline, at: Frame | None) -> Edit | None:
    """Replace ``a + b`` with ``a - b`` or the other way round, or leave out the minus of ``-a`` or ``-2 * a``."""
    if at is None or at.column < 0:
        return None

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            if not is_at(part, at):
                return None
            match part:
                case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                    sign = "-" if isinstance(op, ast.Add) else "+"
                    whole, first, last = text.segment(part), text.segment(left), text.segment(right)
                    between = whole[len(first) : len(whole) - len(last)]
                    is_plain = whole.startswith(first) and whole.endswith(last) and between.strip() in ("+", "-")
                    return f"{first}{re.sub('[+-]', sign, between)}{last}" if is_plain else None
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    return text.segment(operand)
                case ast.BinOp(left=ast.UnaryOp(op=ast.USub(), operand=operand) as left, op=ast.Mult() | ast.Div()):
                    return text.with_part(part, left, text.segment(operand))
            return None

        return known

    return rewritten(timeline, at, change)
