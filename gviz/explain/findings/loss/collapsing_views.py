"""Losses that only pull two results of one model together, so that a constant result has the least loss.

Idea. Every term of the loss is a distance, or a negative cosine, of two results of the same parameters, such as those
of two views of a batch, and a gradient reaches both. Nothing keeps the results of different samples apart: no target,
no negative pair, no variance. The values confirm it: the loss comes near its least value.

Example. ``-cosine_similarity(predictor(z1), z2).mean()`` without ``z2.detach()``.

Limits. Only the parameters at the beginning may meet data: a residual of the input, for example, cannot be constant.
Products of two results, as in a covariance or a whitening, and statistics over the batch separate the samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from gviz.explain.display_names import is_mask, label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.loss_terms import Term, scalar_terms, tensor_terms
from gviz.explain.operation_sets import MATRIX_PRODUCTS, SAME_NUMBERS
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import operand
from gviz.explain.source_frames import own_frames
from gviz.explain.tracking import ancestors
from gviz.source.call_stack import Frame
from gviz.values.number_text import number

_FEWEST = 8
"""The fewest passes that show where a loss goes."""
_NEAR, _FAR = 0.97, 0.9
"""The cosine of two results that point the same way, and one from which it was still far at the beginning."""
_LEFT = 0.1
"""The part of a distance that is left when two results have come together."""
_MOST_TERMS = 20
_UNIT = 1e-3

_DISTANCES = frozenset({"mse_loss", "smooth_l1_loss", "huber_loss", "l1_loss"})
_OF_BATCH = frozenset(
    {"std", "var", "std_mean", "var_mean", "mean", "sum", "norm", "cholesky", "linalg_cholesky", "svd"}
)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A term of a loss that pulls two results together, and the two: `size` is their cosine or their distance."""

    record: NodeRecord
    one: NodeRecord
    other: NodeRecord
    is_cosine: bool
    size: float


def collapsing_views(survey: Survey) -> Iterator[Finding | None]:
    """Yield the places where a loss pairs two results of one model, if it does nothing else; each line once."""
    passes: dict[int, list[NodeRecord]] = {}
    for _, event in survey.passes:
        for node, _ in event.roots:
            if node in survey.nodes:
                passes.setdefault(event.stack, []).append(survey.nodes[node])
    for roots in passes.values():
        yield None
        if len(roots) < _FEWEST:
            continue
        last = _pairs(survey, roots[-1])
        if not last or not all(_are_of_one_model(survey, one) for one in last):
            continue
        parameters = {node for one in last for side in (one.one, one.other) for node in _parameters(survey, side)}
        meanwhile = [each[-1] for each in passes.values() if each is not roots and each[0].seq < roots[-1].seq]
        if any(parameters & _parameters(survey, other) for other in meanwhile):
            continue
        first = {_place(one): one for one in _pairs(survey, roots[0])}
        changes = [(first[_place(one)], one) for one in last if _place(one) in first]
        if len(changes) == len(last) and all(_has_come_together(*pair) for pair in changes):
            yield from _findings(survey, changes, len(roots))


def _place(pair: _Pair) -> tuple[int, int]:
    return pair.record.created.stack, pair.record.created.op


def _has_come_together(before: _Pair, after: _Pair) -> bool:
    if after.is_cosine:
        return before.size < _FAR and after.size > _NEAR
    return after.size < _LEFT * before.size


# The terms of a loss


def _pairs(survey: Survey, root: NodeRecord) -> list[_Pair]:
    """Return the pairs that a loss pulls together; nothing if it has any other term."""
    found = list[_Pair]()
    if root.shape:
        return []
    for scalar in scalar_terms(survey, root):
        for term in tensor_terms(survey, scalar):
            pair = _pair(survey, term)
            if pair is None or len(found) > _MOST_TERMS:
                return []
            found.append(pair)
    return found


def _pair(survey: Survey, term: Term) -> _Pair | None:
    record = term.record
    difference = next(survey.sources(record), None) if record.op in ("pow", "square", "abs", "norm") else None
    if difference is not None and (difference.op != "sub" or dict(record.created.attrs).get("exponent", 2) != 2):
        return None
    sources = list(survey.sources(difference or record))
    if len(sources) != 2 or sources[0] is sources[1]:
        return None
    one, other = sources
    if one.shape != other.shape or not one.shape:
        return None
    if not all(each.created.requires_grad and each.created.kind == "op" for each in sources):
        return None
    is_distance = difference is not None or record.op in _DISTANCES
    is_cosine = record.op == "mul" and all(_has_unit_rows(survey, each) for each in sources)
    size = _mean(record) if is_distance else _mean_cosine(survey, record, one.shape[-1])
    if size is None or not (is_distance or is_cosine) or (term.factor < 0) != is_cosine:
        return None
    return _Pair(record, one, other, is_cosine, size)


def _mean(record: NodeRecord) -> float | None:
    return record.stats.mean if record.stats is not None and isfinite(record.stats.mean) else None


def _mean_cosine(survey: Survey, product: NodeRecord, width: int) -> float | None:
    """Return the mean of the sums of the rows of a product: within a call of PyTorch, only its result is known."""
    mean = _mean(product)
    if mean is not None:
        return mean * width
    users = [survey.nodes[node] for node in survey.timeline.nodes.users(product.node) if node in survey.nodes]
    return _mean(users[0]) if len(users) == 1 and users[0].op == "sum" else None


def _has_unit_rows(survey: Survey, record: NodeRecord) -> bool:
    """Return whether the rows of a tensor have the length 1, by their numbers or by what made it."""
    if record.stats is not None:
        return abs(record.stats.rms**2 * record.shape[-1] - 1) < _UNIT
    sources = list(survey.sources(record))
    if record.op != "div" or len(sources) != 2:
        return False
    length = sources[1]
    while length.op in _KEEPING_LENGTHS and (below := next(survey.sources(length), None)) is not None:
        length = below
    return length.op == "norm" and next(survey.sources(length), None) is sources[0]


_KEEPING_LENGTHS = SAME_NUMBERS | {"clamp_min", "clamp", "expand", "add"}


# The two sides of a pair


def _parameters(survey: Survey, record: NodeRecord) -> set[int]:
    """Return the trained leaves from which a tensor is computed."""
    history = (survey.nodes[node] for node in survey.history(record.node))
    return {one.node for one in history if not one.created.inputs and one.created.requires_grad}


def _are_of_one_model(survey: Survey, pair: _Pair) -> bool:
    """Return whether two results come from the same parameters in separate calls, and a constant result is possible."""
    histories = [set(survey.history(side.node)) for side in (pair.one, pair.other)]
    common = [survey.nodes[node] for node in histories[0] & histories[1]]
    if any(one.created.kind == "op" and not _is_of_parameters(survey, one) for one in common):
        return False
    parameters = [_parameters(survey, side) for side in (pair.one, pair.other)]
    if not common or not (parameters[0] <= parameters[1] or parameters[1] <= parameters[0]):
        return False
    return all(_may_be_constant(survey, side) for side in (pair.one, pair.other))


def _is_of_parameters(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a tensor is computed from parameters only, such as a transposed weight."""
    sources = (survey.nodes.get(node) for node in ancestors(survey.timeline, record.node))
    return not any(one is not None and not one.created.inputs and _is_data(one) for one in sources)


def _is_data(record: NodeRecord) -> bool:
    return not record.created.requires_grad and record.value is not None and record.value.size > 1


def _may_be_constant(survey: Survey, side: NodeRecord) -> bool:
    """Return whether a model can make the same result of all data: no operation of it separates the samples."""
    has_data = False
    for node in survey.history(side.node):
        record = survey.nodes[node]
        if record.created.during[0]:
            return False
        sources = list(survey.sources(record))
        results = [one for one in sources if one.created.requires_grad and not _is_of_parameters(survey, one)]
        data = [one for one in sources if _is_data(one) and not is_mask(one.created)]
        if data and not results:
            has_data = True
        if data and results and "norm" not in record.op:  # the running statistics of a normalization are no data
            return False
        if record.op in MATRIX_PRODUCTS and len(results) > 1:
            return False
        if results and record.op in _OF_BATCH and _is_over_batch(record, results[0]):
            return False
    return has_data


def _is_over_batch(record: NodeRecord, source: NodeRecord) -> bool:
    """Return whether an operation reduces the first dimension, which has the samples, or decomposes a matrix."""
    attributes = dict(record.created.attrs)
    if "dim" not in attributes:
        return record.op in _OF_BATCH
    named = attributes["dim"]
    dimensions = named if isinstance(named, list | tuple) else [named]
    return any(one in (0, -len(source.shape)) for one in dimensions)


# What is reported


def _findings(survey: Survey, changes: Sequence[tuple[_Pair, _Pair]], passes: int) -> Iterator[Finding]:
    timeline, seen = survey.timeline, set[tuple[str, int]]()
    for before, after in changes:
        results = [_result(survey, after, side) for side in (after.one, after.other)]
        at = _pairing(survey, after, results)
        if at is None or (at.path, at.line) in seen:
            continue
        seen.add((at.path, at.line))
        sizes = [len(_parameters(survey, one)) for one in results]
        nr = 0 if sizes[0] < sizes[1] else 1
        target, other = results[nr], results[1 - nr]
        names = label(timeline, other.node), label(timeline, target.node)
        text = titled("{} and {} are only pulled together", *names)
        same = (
            f"{label_at(timeline, target.node)} gets the gradient, too: the same result for all data has the least loss"
        )
        what, size = ("cosine", "mean cosine") if after.is_cosine else ("distance", "mean distance")
        went = f"their {size} went from {number(before.size, 3)} to {number(after.size, 4)} in {passes} passes"
        parts = (
            Finding("falls", went, after.record.seq, after.record.node, at=survey.at(after.record)),
            Finding("target", same, target.seq, target.node, at=survey.at(target)),
        )
        fix = "detach() the target side of each pair, or a term that keeps samples apart: negatives, or a variance"
        numbers = (Number(f"first {what}", before.size, before.record.seq), Number(what, after.size, after.record.seq))
        is_call = at == survey.at(after.record)  # the order of another function's arguments is unknown
        edit = operand(timeline, at, nr, ".detach()") if len(changes) == 1 and is_call else None
        yield Finding("collapsing-views", text, after.record.seq, target.node, parts, fix, at, numbers, edit=edit)


def _result(survey: Survey, pair: _Pair, side: NodeRecord) -> NodeRecord:
    """Return the result of the model that a function of the loss has got, back from what the function made of it."""
    frames = _frames(survey, pair.record)
    while True:
        sources = [one for one in survey.sources(side) if one.created.requires_grad]
        is_here = len(frames) > 1 and _frames(survey, side)[1:] == frames[1:]
        is_step = is_here or side.op == "div"  # a normalization
        if not is_step or not sources or sources[0].created.kind != "op":
            return side
        side = sources[0]


def _pairing(survey: Survey, pair: _Pair, results: Sequence[NodeRecord]) -> Frame | None:
    """Return the line that brings two results together: the call of the function of the loss, if there is one."""
    frames, stacks = _frames(survey, pair.record), [_frames(survey, one) for one in results]
    for level, frame in enumerate(frames):
        around = frames[level + 1 :]
        if not around or any(len(stack) > len(around) and stack[-len(around) :] == around for stack in stacks):
            return frame
    return survey.at(pair.record)


def _frames(survey: Survey, record: NodeRecord) -> list[Frame]:
    return own_frames(survey.timeline.stack(record.created.stack))
