"""Terms of a loss that do not fit together: the mean of a batch, and the sum of one or of its rows.

Idea. A loss is a sum of terms, each with a factor. If one is the mean of all elements of a batch, and another the sum
of the elements of the same batch, the second counts as many times more as the first has elements.

Example. The reconstruction of a VAE as ``F.mse_loss(x_hat, x)`` with 128 rows of 24, and its divergence as
``-0.5 * torch.sum(...)``: the divergence has 3072 times the weight that it should have, and the latents collapse.

Limits. A weight may be meant: a sum with a small factor, or divided by the size of the batch, is left out, and so is
one of parameters only. The mean of sums over rows, as ``kl.sum(1).mean()``, is common next to a mean of all elements:
it is only reported if the divergence has fallen to nothing, and the other term does not fall any more.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose, prod
from statistics import fmean

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.loss.batch_sum import is_weighted_mean
from gviz.explain.loss_terms import Term, scalar_terms, summands_by_element
from gviz.explain.operation_sets import CLASS_LOSSES, ELEMENTWISE, LOSSES, RESHAPING
from gviz.explain.program_text import ProgramText, called_function, called_name, statement_at
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Change, Edit, renamed_call, rewritten, with_keyword
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number, shape_text

_LOSSES = LOSSES | CLASS_LOSSES | {"kl_div"}
_FEWEST_ROWS = 8
_SMALL = 0.1
"""A factor, in comparison to that of the mean, from which on a weight is no accident."""


def mean_and_sum(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses that add the mean of a batch and the sum of a batch: each line once."""
    seen: set[int] = set()
    reported: set[int] = set()
    training = {event.pass_nr for _, event in survey.accumulated if event.node in survey.optimized}
    for _, event in survey.passes:
        if event.pass_nr not in training or event.stack in seen or len(event.roots) != 1:
            continue
        root = survey.nodes.get(event.roots[0][0])
        if root is None or root.shape:
            continue
        yield None
        seen.add(event.stack)
        terms = scalar_terms(survey, root)
        means = [one for one in terms if _reduction(survey, one.record) == "mean"]
        sums = [one for one in terms if _reduction(survey, one.record) == "sum"]
        pairs = ((mean, total) for mean in means for total in sums if _is_of_one_batch(survey, mean, total))
        if (pair := next(pairs, None)) is not None:
            reported.add(event.stack)
            yield _finding(survey, root, *pair)
    yield from _collapsed(survey, training, reported)


def _reduction(survey: Survey, record: NodeRecord) -> str:
    """Return how a term reduces a batch to a number: ``mean`` or ``sum``; empty if it does otherwise."""
    if record.op in ("mean", "sum"):
        return record.op if len(list(survey.sources(record))) == 1 else ""
    reduction = dict(record.created.attrs).get("reduction")
    return reduction if record.op in _LOSSES and reduction in ("mean", "sum") else ""


def _batch(survey: Survey, record: NodeRecord) -> tuple[int, ...]:
    source = next(survey.sources(record), None)
    return source.shape if source is not None else ()


def _is_of_one_batch(survey: Survey, mean: Term, total: Term) -> bool:
    """Return whether two terms reduce as many rows, and the sum has a weight that is not small."""
    one, other = _batch(survey, mean.record), _batch(survey, total.record)
    if not one or not other or one[0] != other[0] or one[0] < _FEWEST_ROWS:
        return False
    if is_weighted_mean(survey, total.record) or _is_of_weights(survey, total.record):
        return False
    if abs(total.factor) < _SMALL * abs(mean.factor) or _is_divided_by_its_size(survey, total.record):
        return False
    known = (survey.nodes[node] for node in ancestors(survey.timeline, total.record.node) if node in survey.nodes)
    data = (each for each in known if each.created.kind in ("constant", "op") and not each.created.requires_grad)
    return any(output.value is not None and output.value.shape[:1] == one[:1]
               for each in data for output in each.created.outputs)  # fmt: skip


def _is_of_weights(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a sum adds up the elements of a parameter, as a penalty does, and not rows of a batch."""
    shape, seen, waiting = _batch(survey, record), set[int](), list(survey.sources(record))
    while waiting:
        one = waiting.pop()
        if one.node in seen or one.shape != shape or not one.created.requires_grad:
            continue
        seen.add(one.node)
        if one.node in survey.optimized:
            return True
        waiting += survey.sources(one)
    return False


def _is_divided_by_its_size(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a sum is divided by its number of rows or elements, as ``reduction="batchmean"`` does."""
    shape, waiting = _batch(survey, record), [record]
    while waiting:
        one = waiting.pop()
        for user in (survey.nodes[node] for node in survey.timeline.nodes.users(one.node) if node in survey.nodes):
            if user.op not in ("div", "mul", "neg") or user.shape:
                continue
            waiting.append(user)
            others = [other.value for other in survey.sources(user) if other.node != one.node]
            stats = others[0].statistics() if others and others[0] is not None else None
            factors = [float(size) if user.op == "div" else 1 / size for size in (shape[0], prod(shape))]
            if stats is not None and any(isclose(stats.mean, factor, rel_tol=1e-6) for factor in factors):
                return True
    return False


def _finding(survey: Survey, root: NodeRecord, mean: Term, total: Term) -> Finding:
    timeline = survey.timeline
    shapes = _batch(survey, mean.record), _batch(survey, total.record)
    times = prod(shapes[0])
    names = label(timeline, total.record.node), label(timeline, mean.record.node)
    text = titled("{} adds up a batch, and {} takes the mean of one", *names)
    one = f"{label_at(timeline, mean.record.node)} is the mean of {shape_text(shapes[0])}"
    means = f"{one}, and this the sum of {shape_text(shapes[1])}: it weighs {times} times as much"
    part = Finding("terms", means, mean.record.seq, mean.record.node, at=survey.at(mean.record))
    fix = "the sum of both, reduction='sum', or divide this one by the elements of the mean"
    line, at = survey.at(mean.record), survey.at(total.record)
    edit = renamed_call(timeline, line, "mean", "sum") if mean.record.op == "mean" else None
    function = called_function(timeline, line)
    if mean.record.op != "mean" and function:
        edit = with_keyword(timeline, line, function, "reduction", '"sum"')
    numbers = (Number("times", times, mean.record.seq),)
    node = total.record.node
    return Finding("mean-and-sum", text, root.seq, node, (part,), fix, at, numbers, suspected=True, edit=edit)


# A divergence that is summed over the latents, and a reconstruction that is the mean of all pixels
#
# The divergence then has as many times the weight as a row has pixels. Whether that is too much, the passes show: the
# divergence falls to almost nothing, and with it all that the latents carry; the decoder then learns the mean of the
# data, and no more.

_FEWEST_PASSES = 16
_FEWEST_ELEMENTS = 16
_NOTHING = 0.02
"""A divergence for each row, in nats, below which its latents carry nothing."""

_LEAST_FALL = 5.0
"""How many times as large the divergence was at first."""

_STILL = 0.1
"""The share by which the other term still falls in the last quarter of the passes."""

_MOST_FOLLOWED, _MOST_STEPS = 200, 4
_LOGARITHMS = {"exp", "log", "softplus", "log1p", "expm1"}
_SQUARES = {"pow", "square"}


@dataclass(frozen=True, slots=True)
class _Share:
    """The elements that a loss reduces, by their first reduction, and the weight of each of them in the loss."""

    reduction: NodeRecord
    shape: tuple[int, ...]
    weight: float


def _collapsed(survey: Survey, training: set[int], reported: set[int]) -> Iterator[Finding | None]:
    """Yield losses of a mean of elements and a divergence summed over columns that has fallen to nothing."""
    calls: defaultdict[int, list[int]] = defaultdict(list)
    for _, event in survey.passes:
        if event.pass_nr in training and len(event.roots) == 1 and event.stack not in reported:
            calls[event.stack].append(event.roots[0][0])
    for roots in calls.values():
        root = survey.nodes.get(roots[-1])
        if root is None or root.shape or len(roots) < _FEWEST_PASSES:
            continue
        yield None
        shares = _shares(survey, root)
        means = [one for one in shares if _is_of_elements(one)]
        sums = [one for one in shares if means and _is_of_columns(one)]
        pairs = ((mean, total) for mean in means for total in sums if _outweighs(total, mean))
        pair = next((pair for pair in pairs if _is_divergence(survey, pair[1], pair[0])), None)
        if pair is not None and (finding := _collapse_finding(survey, *pair)) is not None:
            yield finding


def _shares(survey: Survey, root: NodeRecord) -> list[_Share]:
    """Return what a loss reduces, each with the weight of an element."""
    shares: dict[int, _Share] = {}
    waiting: list[tuple[Term, NodeRecord | None]] = [(Term(root), None)]
    for _ in range(_MOST_FOLLOWED):
        if not waiting:
            break
        term, reduction = waiting.pop()
        record, source = term.record, next(survey.sources(term.record), None)
        size = source.value.size if source is not None and source.value is not None else 0
        kind = dict(record.created.attrs).get("reduction") if record.op in _LOSSES else None
        if source is not None and kind in ("mean", "sum"):
            weight = abs(term.factor) / (size if kind == "mean" and size else 1)
            shares.setdefault(record.node, _Share(record, source.shape, weight))
            continue
        below = summands_by_element(survey, term)
        if record.op in ("mean", "sum") and below and below[0].record.shape:
            reduction = record
        waiting += [(one, reduction) for one in below if one.record.created.requires_grad]
        if not below and reduction is not None:
            of = _batch(survey, reduction)
            shares.setdefault(reduction.node, _Share(reduction, of, abs(term.factor)))
    return [*shares.values()]


def _is_of_elements(share: _Share) -> bool:
    """Return whether it is a mean over the elements of long rows."""
    is_mean = share.reduction.op == "mean" or dict(share.reduction.created.attrs).get("reduction") == "mean"
    is_over_rows = not share.reduction.shape or share.reduction.shape == share.shape[:1]
    return is_mean and is_over_rows and len(share.shape) > 1 and prod(share.shape[1:]) >= _FEWEST_ELEMENTS


def _is_of_columns(share: _Share) -> bool:
    """Return whether it is a sum over columns, or a mean over the batch that a later sum adds up."""
    if len(share.shape) < 2:
        return False
    return share.reduction.op == "sum" or (share.reduction.op == "mean" and share.reduction.shape == share.shape[1:])


def _outweighs(total: _Share, mean: _Share) -> bool:
    """Return whether an element of a sum counts far more than one of a mean over as many rows."""
    return total.shape[0] == mean.shape[0] >= _FEWEST_ROWS and total.weight > mean.weight / _SMALL


def _is_divergence(survey: Survey, total: _Share, mean: _Share) -> bool:
    """Return whether a sum is a divergence of normal distributions that a mean needs: it has squares and logarithms."""
    waiting, seen, ops = [*survey.sources(total.reduction)], {total.reduction.node}, set[str]()
    while waiting and len(seen) < _MOST_FOLLOWED:
        one = waiting.pop()
        inputs = one.created.inputs
        if one.node in seen or one.shape != total.shape or not one.created.requires_grad:
            continue
        seen.add(one.node)
        is_product = one.op == "mul" and len(inputs) == 2 and inputs[0] == inputs[1]
        ops.add("square" if is_product else one.op)
        if one.op in ELEMENTWISE or one.op in _LOGARITHMS | _SQUARES | RESHAPING:
            waiting += survey.sources(one)
    needed = {*ancestors(survey.timeline, mean.reduction.node)}
    return bool(ops & _LOGARITHMS) and bool(ops & _SQUARES) and bool(needed & seen)


def _by_row(survey: Survey, share: _Share) -> list[float]:
    """Return, for each pass, the sum of a row of the elements on average, by what their first reduction gave."""
    rows, like = share.shape[0], share.reduction.created.stack
    values = []
    for record in survey.ops(share.reduction.op):
        stats = record.value.statistics() if record.created.stack == like and record.value is not None else None
        if stats is not None and record.value is not None and record.created.requires_grad:
            total = stats.mean * record.value.size
            values.append(abs(total) if share.reduction.op == "mean" else abs(total) / rows)
    return values


def _named(survey: Survey, record: NodeRecord) -> NodeRecord:
    """Return the first multiple or mean of a sum that has a name, or else the sum."""
    one = record
    for _ in range(_MOST_STEPS):
        if survey.timeline.info(one.node).name:
            return one
        users = [survey.nodes[node] for node in survey.timeline.nodes.users(one.node) if node in survey.nodes]
        tracked = [user for user in users if user.created.requires_grad]
        if len(tracked) != 1 or tracked[0].op not in ("mul", "neg", "div", "mean", "sum"):
            break
        one = tracked[0]
    return record


def _collapse_finding(survey: Survey, mean: _Share, total: _Share) -> Finding | None:
    """Return the finding, if the divergence has fallen to nothing while the other term has stopped to fall."""
    timeline, divergence = survey.timeline, _by_row(survey, total)
    errors = [one.value.statistics() for one in survey.ops(mean.reduction.op)
              if one.created.stack == mean.reduction.created.stack and one.value is not None]  # fmt: skip
    values = [one.mean for one in errors if one is not None]
    quarter = len(values) // 4
    if len(divergence) < _FEWEST_PASSES or quarter < _FEWEST_PASSES // 4:
        return None
    before, last = fmean(values[-2 * quarter : -quarter]), fmean(values[-quarter:])
    end = fmean(divergence[-(len(divergence) // 4) :])
    start = max(divergence[: len(divergence) // 4])
    if not (end < _NOTHING and end * _LEAST_FALL < start and before - last < _STILL * abs(before)):
        return None
    pixels = prod(mean.shape[1:])
    first, second = mean.reduction, total.reduction
    names = label(timeline, first.node), label(timeline, _named(survey, second).node)
    text = titled("{} takes the mean of each row, but {} the sum", *names)
    shapes = f"next to a mean of {shape_text(mean.shape)}, the sum of {shape_text(total.shape)} weighs {pixels} times"
    fell = f"{shapes} as much: it fell from {number(start, 3)} to {number(end, 3)} for each row"
    stays = f"in the last half of {len(values)} passes this term goes from {number(before, 3)} to {number(last, 3)}"
    parts = (
        Finding("terms", fell, second.seq, second.node, at=survey.at(second)),
        Finding("term", f"{stays}: the latents carry nothing", first.seq, first.node),
    )
    at = survey.at(first)
    function = called_function(timeline, at)
    edit = None
    if first.shape:
        edit = renamed_call(timeline, at, "mean", "sum") if function == "mean" else None
    elif function == "mean" or function in _LOSSES:
        edit = _summed_rows(timeline, at, function)
    fix = "the sum of each row in both, then the mean of the rows; or divide the divergence by the elements of a row"
    numbers = (Number("times", pixels, first.seq),)
    return Finding("mean-and-sum", text, first.seq, first.node, parts, fix, at, numbers, suspected=True, edit=edit)


# What the program's source code shows


def _summed_rows(timeline: Timeline, at: Frame | None, function: str) -> Edit | None:
    """Replace the mean of a loss with that of the sums of rows: ``F.mse_loss(y, x, reduction="sum") / len(y)``.

    A method ``e.mean()`` becomes ``e.flatten(1).sum(1).mean()``.
    """
    source = statement_at(timeline, at)
    whole = getattr(source[1].node, "value", None) if source is not None else None

    def change(text: ProgramText) -> Change:
        def known(part: ast.expr) -> str | None:
            match part:
                case ast.Call(func=ast.Attribute(attr="mean"), args=[], keywords=[]) if function == "mean":
                    return re.sub(r"mean\(\s*\)$", "flatten(1).sum(1).mean()", text.segment(part))
                case ast.Call(args=[ast.Name(id=first), *_], keywords=keywords) if called_name(part) == function:
                    if any(one.arg in ("reduction", "size_average", "reduce", None) for one in keywords):
                        return None
                    call = text.segment(part)[:-1].rstrip().rstrip(",")
                    new = f'{call}, reduction="sum") / len({first})'
                    return new if part is whole else f"({new})"
            return None

        return known

    return rewritten(timeline, at, change) if function else None
