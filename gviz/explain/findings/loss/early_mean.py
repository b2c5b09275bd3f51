"""A mean over samples that is taken before each sample gets its own weight: of a focal loss, of a return, of a weight.

Idea. ``mean(w * loss)`` weights each sample. If the mean comes first, ``w * loss.mean()``, every weight meets the same
number: the loss is the mean of the weights times the mean of the losses, and the weights change nothing but the scale.

Examples. ``ce = F.cross_entropy(x, y)`` and ``(1 - torch.exp(-ce)) ** 2 * ce`` is no focal loss, as the weight is one
number for the whole batch. ``(log_probs.mean() * returns).sum()`` does not credit an action with its own return. With
normalized returns, which add up to 0, the loss and all its gradients are 0. A ratio of policies
``(log_probs.mean() - old.mean()).exp()`` is one number for all advantages, too.

Limits. Only weights of data that differ count, as many as the mean has elements or rows. A mask of 0 and 1 is left out:
it selects what is added up. A ratio for each sequence, as the one of GSPO, is right. The product of two sums may be
meant, as the return of a whole episode is, so this is a note, unless the weights add up to 0 or the program takes a
mean of the product that is one number already.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import LISTS, RESHAPING
from gviz.explain.program_text import called_function
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, renamed_variable, with_keyword, without_call, without_method
from gviz.explain.tracking import ancestors
from gviz.values.number_text import number, shape_text
from gviz.values.value import Value

_ADDING = {"add", "sub", "rsub", *LISTS}
_CARRYING = {"sum", "mean", "mul", "div", "neg", "expand", "to", "float", *RESHAPING}
"""Operations whose result is a multiple of their tracked input, a sum of its elements, or the same numbers."""

_LIMITING = {"minimum", "min", "maximum", "max", "clamp", "clamp_min", "clamp_max"}
_OF_RATIO = {"sub", "rsub", "add", "neg", "mul", "div", *_LIMITING}
"""Operations between a mean of log-probabilities and the ratio that is made from it."""

_LOSSES = {
    "nll_loss", "nll_loss2d", "cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss",
    "smooth_l1_loss", "huber_loss", "l1_loss",
}  # fmt: skip
_MOST = 2_000
"""The most nodes of a loss that are searched."""

_MOST_BETWEEN = 8
_MOST_OF_WEIGHT = 40
_NOTHING = 1e-3
"""The most that the mean of weights is, in comparison to their rms, if they add up to 0."""

_FEWEST = 3
"""The fewest weights in separate products."""


@dataclass(frozen=True, slots=True)
class _Mean:
    """A mean or a sum of several elements: the operation, what it reduces, and the shape of that."""

    record: NodeRecord
    source: NodeRecord | None
    shape: tuple[int, ...]

    @property
    def word(self) -> str:
        """Return ``mean`` or ``sum``."""
        reduction = dict(self.record.created.attrs).get("reduction")
        return "sum" if self.record.op in ("sum", "add") or reduction == "sum" else "mean"


def early_means(survey: Survey) -> Iterator[Finding | None]:
    """Yield products in a loss whose one factor is a mean, and whose other factor has a number for each element."""
    seen = set[int]()
    for root in {event.stack: event.roots[0][0] for _, event in survey.passes if len(event.roots) == 1}.values():
        record = survey.nodes.get(root)
        if record is None or record.shape:
            continue
        yield None
        by_mean = defaultdict[int, list[tuple[NodeRecord, _Mean, float]]](list)
        for product, is_averaged in _products(survey, record):
            if product.created.stack in seen:
                continue
            finding = (
                _focal(survey, product, is_averaged=is_averaged)
                or _weighted(survey, product)
                or _ratio(survey, product, seen)
            )
            if finding is not None:
                seen.add(product.created.stack)
                yield finding
            elif (single := _single(survey, product)) is not None:
                by_mean[single[0].record.node].append((product, *single))
        for products in by_mean.values():
            if (finding := _separate(survey, products)) is not None and products[0][0].created.stack not in seen:
                seen.add(products[0][0].created.stack)
                yield finding


def _products(survey: Survey, root: NodeRecord) -> Iterator[tuple[NodeRecord, bool]]:
    """Yield the products that a loss adds up, and whether the program takes the mean of such a single number."""
    waiting, seen = [(root, False)], {root.node}
    while waiting and len(seen) < _MOST:
        record, is_averaged = waiting.pop()
        if record.op == "mul":
            yield record, is_averaged
        if record.op not in _ADDING | _CARRYING | _LIMITING:
            continue
        for source in survey.sources(record):
            if source.node not in seen and source.created.requires_grad:
                seen.add(source.node)
                is_of_one = record.op in ("mean", "sum") and _size(source) == 1
                waiting.append((source, is_averaged or is_of_one))


def _size(record: NodeRecord) -> int:
    return record.value.size if record.value is not None else prod(record.shape)


def _value(user: NodeRecord, source: NodeRecord) -> Value | None:
    """Return the value of the output of a node that another one takes: one of several, as of an `unbind`."""
    number = next((nr for node, nr in user.created.inputs if node == source.node), 0)
    outputs = source.created.outputs
    return outputs[number].value if number < len(outputs) else None


def _mean_of(survey: Survey, record: NodeRecord) -> _Mean | None:
    """Return the mean or sum that a tracked tensor is, up to a factor, its shape and a copy; None if it is neither."""
    for _ in range(_MOST_BETWEEN):
        sources = list(survey.sources(record))
        tracked = [source for source in sources if source.created.requires_grad]
        if record.op in ("mean", "sum") and len(tracked) == len(sources) == 1:
            if _size(sources[0]) > _size(record) and sources[0].created.kind == "op":
                return _Mean(record, sources[0], sources[0].shape)
        elif record.op in _LOSSES and not record.shape and len(sources) > 1:
            is_of_rows = record.op in ("nll_loss", "nll_loss2d", "cross_entropy")
            shape = (sources[1] if is_of_rows else sources[0]).shape
            return _Mean(record, None, shape) if prod(shape) > 1 else None
        elif record.op == "add" and not record.shape and len(sources) > 1:
            count = _added_up(survey, record)
            return _Mean(record, None, (count,)) if count > 1 else None
        if record.op not in {*_CARRYING, "detach", "clone"} or not sources:
            return None
        others = [source for source in sources if _size(source) > 1] if record.op in ("mul", "div") else []
        if others and _size(record) > 1:
            return None
        record = (tracked or sources)[0]
    return None


def _added_up(survey: Survey, record: NodeRecord) -> int:
    """Return how many numbers of one line a chain of additions adds up, as ``sum(log_probs)`` does."""
    count, stack = 0, record.created.stack
    while record.op == "add" and not record.shape and record.created.stack == stack:
        sources = [source for source in survey.sources(record) if source.created.requires_grad]
        count += 1
        nested = [source for source in sources if source.op == "add" and source.created.stack == stack]
        if len(nested) != 1:
            return count + (len(sources) == 2)
        record = nested[0]
    return count


# A weight that is computed from the mean itself: (1 - exp(-ce)) ** gamma * ce


def _focal(survey: Survey, product: NodeRecord, *, is_averaged: bool) -> Finding | None:
    """Return the finding about a mean of losses times a function of its own exponential, as of a focal loss."""
    sources = list(survey.sources(product))
    if len(sources) != 2 or _size(product) != 1:
        return None
    for one, other in (sources, sources[::-1]):
        mean = _mean_of(survey, one)
        if mean is None or mean.record.op == "add":
            continue
        exponential = _exponential_of(survey, other, mean)
        if exponential is not None:
            return _focal_finding(survey, product, mean, exponential, is_averaged=is_averaged)
    return None


def _exponential_of(survey: Survey, weight: NodeRecord, mean: _Mean) -> NodeRecord | None:
    """Return the exponential of a mean that a weight is made from."""
    waiting, seen = [weight], {weight.node}
    while waiting and len(seen) < _MOST_OF_WEIGHT:
        record = waiting.pop()
        sources = list(survey.sources(record))
        if record.op == "exp" and sources and record is not mean.record:
            below = _mean_of(survey, sources[0])
            stats = record.value.statistics() if record.value is not None else None
            if below is not None and below.record is mean.record and (stats is None or stats.max <= 1):
                return record
        for source in sources:
            if source.node not in seen and source.node > mean.record.node and _size(source) == 1:
                seen.add(source.node)
                waiting.append(source)
    return None


def _focal_finding(
    survey: Survey, product: NodeRecord, mean: _Mean, exponential: NodeRecord, *, is_averaged: bool
) -> Finding:
    timeline, count = survey.timeline, prod(mean.shape)
    text = titled(f"{{}} weights one {mean.word} of {count} losses, and not each loss", label(timeline, product.node))
    one = f"{label_at(timeline, exponential.node)} is a single number, made from {label_at(timeline, mean.record.node)}"
    same = f"{one}: every sample gets the same weight"
    parts = (Finding("operand", same, exponential.seq, exponential.node, at=survey.at(exponential)),)
    at = survey.at(mean.record)
    fix = "a loss for each sample (reduction='none'), and the mean of the product at the end"
    function = called_function(timeline, at)
    is_safe = is_averaged and function in _LOSSES
    edit = with_keyword(timeline, at, function, "reduction", '"none"') if is_safe else None
    numbers = (Number("losses", count, mean.record.seq),)
    return Finding(
        "early-mean", text, product.seq, product.node, parts, fix, at, numbers, suspected=not is_averaged, edit=edit
    )


# Weights of data: each of them meets the same mean


def _weighted(survey: Survey, product: NodeRecord) -> Finding | None:
    """Return the finding about a mean that is multiplied by as many weights as it has elements or rows."""
    sources = list(survey.sources(product))
    if len(sources) != 2:
        return None
    tracked, weights = sorted(sources, key=lambda one: not one.created.requires_grad)
    if not tracked.created.requires_grad or not _are_weights(weights) or weights.shape != product.shape:
        return None
    if _size(tracked) >= _size(weights):
        return None
    mean = _mean_of(survey, tracked)
    if mean is None or not _fit(mean, tracked, weights):
        return None
    if mean.source is not None and mean.source.node in ancestors(survey.timeline, weights.node):
        return None
    return _weighted_finding(survey, product, mean, tracked, weights)


def _are_weights(record: NodeRecord) -> bool:
    """Return whether a tensor has data whose numbers differ, and are no mask of 0 and 1."""
    value = record.value
    stats = value.statistics() if value is not None else None
    if value is None or stats is None or record.created.requires_grad or record.created.kind == "parameter":
        return False
    if value.size < 2 or value.dtype == "bool" or stats.nan or stats.inf or not stats.min < stats.max:
        return False
    ones = value.size - stats.zero
    is_mask = stats.min == 0 and stats.max == 1 and abs(stats.mean * value.size - ones) < _NOTHING * value.size
    return not is_mask


def _fit(mean: _Mean, tracked: NodeRecord, weights: NodeRecord) -> bool:
    """Return whether there is a weight for each element of what a mean reduces, or for each of its rows."""
    if _size(tracked) > 1:
        return mean.shape == weights.shape
    size, rows = prod(mean.shape), mean.shape[0] if mean.shape else 1
    return weights.shape[0] == rows and _size(weights) in (size, rows)


def _weighted_finding(
    survey: Survey, product: NodeRecord, mean: _Mean, tracked: NodeRecord, weights: NodeRecord
) -> Finding:
    timeline, count = survey.timeline, prod(mean.shape) // _size(tracked)
    text = titled(f"{{}} weights one {mean.word} of {count} numbers, and not each", label(timeline, weights.node))
    each = f"{label_at(timeline, mean.record.node)} has added up {shape_text(mean.shape)} before"
    lost = f"{each}: each number meets the {mean.word} of all"
    parts = [Finding("term", lost, mean.record.seq, mean.record.node, at=survey.at(mean.record))]
    stats = weights.value.statistics() if weights.value is not None else None
    adds_to_nothing = stats is not None and abs(stats.mean) <= _NOTHING * stats.rms and _size(tracked) == 1
    if adds_to_nothing and stats is not None:
        nothing = f"{label_at(timeline, weights.node)} adds up to {number(stats.mean * _size(weights), 2)}"
        parts.insert(0, Finding("sum", f"{nothing}, so the product and its gradient are 0", weights.seq, weights.node))
    at, numbers = survey.at(product), (Number("elements", count, mean.record.seq),)
    fix = "the product of each element with its own number, and the sum or mean of the products at the end"
    edit = _without_mean(survey, product, mean, tracked, weights)
    return Finding(
        "early-mean", text, product.seq, product.node, tuple(parts), fix, at, numbers,
        suspected=not adds_to_nothing, edit=edit,
    )  # fmt: skip


def _without_mean(
    survey: Survey, product: NodeRecord, mean: _Mean, tracked: NodeRecord, weights: NodeRecord
) -> Edit | None:
    """Return the edit that multiplies the elements themselves, if they have the shape of the weights."""
    timeline, at = survey.timeline, survey.at(mean.record)
    line = survey.at(product)
    if mean.shape != weights.shape or at is None or line is None:
        return None
    name = timeline.info(tracked.node).name
    users = [node for node in timeline.nodes.users(mean.record.node) if survey.nodes[node].created.requires_grad]
    if mean.source is not None and (at.path, at.line) != (line.path, line.line):
        source = timeline.info(mean.source.node).name
        is_named = tracked.node == mean.record.node and name.isidentifier() and source.isidentifier()
        return renamed_variable(timeline, line, name, source) if is_named and at.function == line.function else None
    if len(users) != 1 or (at.path, at.line) != (line.path, line.line):
        return None
    if mean.source is not None:
        return without_method(timeline, at, mean.record.op) or without_call(timeline, at, mean.record.op)
    function = called_function(timeline, at)
    return with_keyword(timeline, at, function, "reduction", '"none"') if function in _LOSSES else None


# A ratio of two policies that is one number for all samples


def _ratio(survey: Survey, product: NodeRecord, seen: set[int]) -> Finding | None:
    """Return the finding about advantages that all meet the exponential of one mean of log-probabilities.

    The product with the clipped ratio has the same mean, which is reported once.
    """
    sources = list(survey.sources(product))
    if len(sources) != 2:
        return None
    tracked, weights = sorted(sources, key=lambda one: not one.created.requires_grad)
    if not tracked.created.requires_grad or _size(tracked) != 1 or weights.shape != product.shape:
        return None
    exponential = _through(survey, tracked, "exp") if _are_weights(weights) else None
    mean = _ratio_mean(survey, exponential) if exponential is not None else None
    if exponential is None or mean is None or not _fit(mean, tracked, weights) or mean.record.created.stack in seen:
        return None
    seen.add(mean.record.created.stack)
    return _ratio_finding(survey, product, mean, exponential, weights)


def _through(survey: Survey, record: NodeRecord, op: str) -> NodeRecord | None:
    """Return the operation with a name from which a number comes through limits and factors."""
    for _ in range(_MOST_BETWEEN):
        if record.op == op:
            return record
        source = next((one for one in survey.sources(record) if one.created.requires_grad), None)
        if source is None or record.op not in _OF_RATIO | _CARRYING:
            return None
        record = source
    return None


def _ratio_mean(survey: Survey, exponential: NodeRecord) -> _Mean | None:
    """Return the mean of tracked log-probabilities in an exponential; None if there are several, or another sum.

    The exponential of a sum over samples is not meant as a ratio of policies, but one over the dimensions of an action
    or over tokens may be.
    """
    record, is_divided = exponential, False
    for _ in range(_MOST_BETWEEN):
        tracked = [one for one in survey.sources(record) if one.created.requires_grad]
        if len(tracked) != 1:
            return None
        record = tracked[0]
        if record.op == "mean" or (record.op == "sum" and is_divided):
            return _mean_of(survey, record)
        if record.op not in _OF_RATIO | {"view", "reshape", "squeeze"}:
            return None
        is_divided |= record.op == "div"
    return None


def _ratio_finding(
    survey: Survey, product: NodeRecord, mean: _Mean, exponential: NodeRecord, weights: NodeRecord
) -> Finding:
    timeline, count = survey.timeline, prod(mean.shape)
    text = titled(f"{{}} is one ratio for {count} samples, not one for each", label(timeline, exponential.node))
    each = f"{label_at(timeline, mean.record.node)} takes the mean of {shape_text(mean.shape)} before"
    same = f"{each}: each of {label(timeline, weights.node)} meets the same ratio"
    parts = [Finding("term", same, mean.record.seq, mean.record.node, at=survey.at(mean.record))]
    stats = weights.value.statistics() if weights.value is not None else None
    adds_to_nothing = stats is not None and abs(stats.mean) <= _NOTHING * stats.rms
    if adds_to_nothing and stats is not None:
        nothing = f"{label_at(timeline, weights.node)} adds up to {number(stats.mean * _size(weights), 2)}"
        parts.insert(0, Finding("sum", f"{nothing}, so the product has almost no gradient", weights.seq, weights.node))
    at, numbers = survey.at(mean.record), (Number("elements", count, mean.record.seq),)
    fix = "the ratio of each sample, (log_probs - old).exp(), and the mean of the products at the end"
    is_difference = mean.source is not None and mean.source.op == "sub" and len(mean.source.created.inputs) == 2
    is_single = is_difference and mean.shape == weights.shape
    edit = None
    if is_single and len([*timeline.nodes.users(mean.record.node)]) == 1:
        edit = without_method(timeline, at, mean.record.op) or without_call(timeline, at, mean.record.op)
    return Finding(
        "early-mean", text, product.seq, product.node, tuple(parts), fix, at, numbers,
        suspected=not adds_to_nothing, edit=edit,
    )  # fmt: skip


# The same in a loop: a product of the mean with each of the numbers, one after the other


def _single(survey: Survey, product: NodeRecord) -> tuple[_Mean, float] | None:
    """Return a mean and the single number that it is multiplied by."""
    sources = list(survey.sources(product))
    if len(sources) != 2 or _size(product) != 1:
        return None
    tracked, weight = sorted(sources, key=lambda one: not one.created.requires_grad)
    value = _value(product, weight) if not weight.created.requires_grad else None
    stats = value.statistics() if value is not None else None
    mean = _mean_of(survey, tracked) if tracked.created.requires_grad and stats is not None else None
    return (mean, stats.mean) if mean is not None and stats is not None else None


def _separate(survey: Survey, products: list[tuple[NodeRecord, _Mean, float]]) -> Finding | None:
    """Return the finding about as many products of one line as the mean has elements, with different numbers."""
    by_line = defaultdict[int, list[tuple[NodeRecord, _Mean, float]]](list)
    for one in products:
        by_line[one[0].created.stack].append(one)
    for of_line in by_line.values():
        record, mean, _ = of_line[-1]
        numbers = [one for *_, one in of_line]
        if len(of_line) < _FEWEST or len(of_line) != prod(mean.shape) or min(numbers) == max(numbers):
            continue
        timeline, total = survey.timeline, sum(numbers)
        text = titled(
            f"{{}} weights one {mean.word} of {len(numbers)} numbers, and not each", label(timeline, record.node)
        )
        same = f"each of {len(numbers)} products has {label_at(timeline, mean.record.node)}"
        part = Finding("term", f"{same}: their sum is {number(total, 3)} times it", mean.record.seq, mean.record.node)
        fix = "the product of each element with its own number, and the sum or mean of the products at the end"
        parts = (replace(part, at=survey.at(mean.record)),)
        return Finding("early-mean", text, record.seq, record.node, parts, fix, survey.at(record), suspected=True)
    return None
