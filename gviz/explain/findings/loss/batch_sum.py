"""A sum over a batch where a mean is expected: of the loss, or of one of its terms.

Idea. A loss that adds up the rows of a batch has gradients that are larger by the size of the batch. A term can do the
same: there is one number for each sample, and one number for the whole batch, and their sum broadcasts the second to
every sample. The mean over the samples then has it in full, and not divided by their number.

Example. ``torch.mean(likelihood - sum(log_det))`` with one log-determinant for each sample: ``sum`` adds up the batch,
so that the term counts as often as the batch has samples. The value of each sample is ``likelihood - log_det``.

Limits. The sum of a term must be one of numbers that were computed from the data of the batch, and not from the other
operand, as ``x - x.sum()`` is. A sum with a small factor, or divided by the number of samples, is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator
from itertools import islice
from math import isclose

from gviz.events import GradAccumulated, GradSet, OptimizerStepped
from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.gradient_accumulation import divided_passes
from gviz.explain.grad_history import additions_at_steps
from gviz.explain.operation_sets import RESHAPING
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_edit import Edit, with_dim, without_call, without_method
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.values.number_text import shape_text

_FEWEST_ROWS = 4
_SMALL = 0.1
_MOST_STEPS, _MOST_BEHIND, _MOST_ROWS = 12, 2_000, 4_096
_FACTORS = {"mul", "div", "neg"}
_BY_SAMPLE = {"add", "sub", "rsub", "clamp", "clamp_min"} | _FACTORS | RESHAPING


def batch_sums(survey: Survey) -> Iterator[Finding | None]:
    """Yield the sums of a batch that are added to the values of samples: each line once."""
    seen = set[int]()
    for record in survey.ops("add", "sub", "rsub"):
        yield None
        sources = list(survey.sources(record))
        if record.created.stack in seen or len(record.shape) != 1 or len(sources) != 2:
            continue
        rows, total = sorted(sources, key=lambda one: -len(one.shape))
        is_tracked = rows.created.requires_grad and total.created.requires_grad
        if total.shape or rows.shape != record.shape or rows.shape[0] < _FEWEST_ROWS or not is_tracked:
            continue
        found = _summed(survey, total, rows.shape[0])
        if found is None:
            continue
        seen.add(record.created.stack)
        if not _is_related(survey, rows, found[1]) and _is_of_batch(survey, found[1]) and _mean_of(survey, record):
            yield _finding(survey, record, rows, *found)


def _summed(survey: Survey, total: NodeRecord, rows: int) -> tuple[NodeRecord, NodeRecord] | None:
    """Return the operation that adds up all rows, and the tensor that it adds up."""
    factor, record = 1.0, total
    for _ in range(_MOST_STEPS):
        sources = list(survey.sources(record))
        tracked = [one for one in sources if one.created.requires_grad]
        if record.op not in _FACTORS or len(tracked) != 1:
            break
        for one in sources:
            if one is not tracked[0]:
                if not one.number:
                    return None
                factor = factor / one.number if record.op == "div" else factor * one.number
        record = tracked[0]
    if abs(factor) < _SMALL:
        return None
    tensor = next(survey.sources(record), None) if record.op == "sum" else _added_one_by_one(survey, record, rows)
    if tensor is None or tensor.shape[:1] != (rows,) or tensor.shape == (rows, rows):
        return None
    return record, tensor


def _added_one_by_one(survey: Survey, record: NodeRecord, rows: int) -> NodeRecord | None:
    """Return the tensor whose rows ``sum(x)`` adds up, one after the other."""
    stack, tensors, count = record.created.stack, set[int](), 0
    while record.op == "add" and record.created.stack == stack and count <= _MOST_ROWS:
        sources = [one for one in survey.sources(record) if one.created.kind == "op"]
        parts = [one for one in sources if one.op in ("unbind", "select", "getitem")]
        tensors |= {node for one in parts for node, _ in one.created.inputs[:1]}
        count += len(parts)
        if len(sources) == len(parts):
            break
        record = next(one for one in sources if one not in parts)
    return survey.nodes.get(tensors.pop()) if len(tensors) == 1 and count == rows else None


def _is_related(survey: Survey, rows: NodeRecord, tensor: NodeRecord) -> bool:
    """Return whether one of two tensors is computed from the other, as for a mean that leaves one out."""
    first, second = survey.unwrapped(rows), survey.unwrapped(tensor)
    pairs = ((first, second), (second, first))
    return any(
        one is other or other.node in islice(ancestors(survey.timeline, one.node), _MOST_BEHIND) for one, other in pairs
    )


def _is_of_batch(survey: Survey, tensor: NodeRecord) -> bool:
    """Return whether a tensor was computed from data with as many rows."""
    rows = tensor.shape[0]
    for node in islice(ancestors(survey.timeline, tensor.node), _MOST_BEHIND):
        one = survey.nodes.get(node)
        if one is None or one.created.requires_grad or one.created.kind not in ("constant", "op"):
            continue
        if any(each.value is not None and each.value.shape[:1] == (rows,) for each in one.created.outputs):
            return True
    return False


def _mean_of(survey: Survey, record: NodeRecord) -> bool:
    """Return whether the values of the samples end up in their mean."""
    waiting, seen = [record], {record.node}
    while waiting and len(seen) < _MOST_STEPS:
        one = waiting.pop()
        for node in survey.timeline.nodes.users(one.node):
            user = survey.nodes.get(node)
            if user is None or user.node in seen or not user.created.requires_grad:
                continue
            if user.op == "mean" and not user.shape:
                return True
            if user.op in _BY_SAMPLE and user.shape[:1] == record.shape:
                seen.add(user.node)
                waiting.append(user)
    return False


def _finding(survey: Survey, record: NodeRecord, rows: NodeRecord, total: NodeRecord, tensor: NodeRecord) -> Finding:
    timeline, count = survey.timeline, rows.shape[0]
    text = titled("{} adds the sum of a whole batch to each sample", label(timeline, record.node))
    sums = (
        f"the sum of {label_at(timeline, tensor.node)} {shape_text(tensor.shape)} is added to each of {count} samples"
    )
    part = Finding("terms", f"{sums}: in their mean it weighs {count} times", total.seq, tensor.node)
    own = "the numbers themselves" if len(tensor.shape) == 1 else "the sum over dim 1"
    fix = f"{own}, one for each sample, instead of the sum over all {count}"
    at = survey.at(total)
    edit = _edit(survey, tensor, total)
    numbers = (Number("times", count, total.seq),)
    return Finding("batch-sum", text, record.seq, record.node, (part,), fix, at, numbers, edit=edit)


def _edit(survey: Survey, tensor: NodeRecord, total: NodeRecord) -> Edit | None:
    timeline, at = survey.timeline, survey.at(total)
    if len(tensor.shape) == 1:
        return without_call(timeline, at, "sum") or without_method(timeline, at, "sum")
    return with_dim(timeline, at, "sum", "1") if len(tensor.shape) == 2 and total.op == "sum" else None


# ----------------------------------------------------------------------------------------------------------------------
# A loss that adds up the rows of a batch where a mean is expected: its gradients are larger by the batch size.

_FEWEST_SUMMED_ROWS = 16
"""The batch size from which on a sum instead of a mean changes the learning rate noticeably."""


def summed_loss(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses that sum over the first dimension, and whose gradients the steps of an optimizer use.

    A program that divides these gradients before the step has its mean. If each row of the loss has its own row of all
    parameters, the sum is that of independent problems, and each gradient is the one of its problem.
    """
    timeline = survey.timeline
    leaves = yield from survey.once(_leaves_of_passes)
    training = leaves.keys() - divided_passes(survey)
    passes = [event for _, event in survey.passes if event.pass_nr in training]
    roots = {node: leaves[event.pass_nr] for event in passes for node, _ in event.roots if node in survey.nodes}
    for record, parameters in ((survey.nodes[node], parameters) for node, parameters in roots.items()):
        yield None
        source = next(survey.sources(record), None)
        if source is None or not _adds_up(record) or not source.shape or source.shape[0] < _FEWEST_SUMMED_ROWS:
            continue
        if is_weighted_mean(survey, record):
            continue
        rows = source.shape[0]
        known = [survey.nodes[node] for node in parameters if node in survey.nodes]
        if known and all(one.shape[:1] == (rows,) for one in known):
            continue
        text = titled(f"{{}} adds up {rows} rows, and does not take their mean", label(timeline, record.node))
        size = f"it adds up {shape_text(source.shape)}: every gradient is {rows} times that of the mean"
        part = Finding("operand", size, source.seq, source.node)
        fix = f"mean() or reduction='mean'; if the sum is meant, a learning rate {rows} times smaller"
        at, numbers = innermost(timeline.info(record.node)), (Number("rows", rows, source.seq),)
        yield Finding("summed-loss", text, record.seq, record.node, (part,), fix, at, numbers, suspected=True)


def _leaves_of_passes(survey: Survey) -> Generator[None, None, dict[int, set[int]]]:
    """Return by pass the parameters to which it brought a gradient that a step used."""
    leaves: defaultdict[int, set[int]] = defaultdict(set)
    for found in additions_at_steps(survey.select(GradAccumulated, GradSet, OptimizerStepped)):
        yield None
        if found is not None:
            for node, parts in found[2].items():
                for _, part in parts:
                    leaves[part.pass_nr].add(node)
    return dict(leaves)


def is_weighted_mean(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a sum adds up products with weights that add up to one: ``(w * error).sum()``."""
    source = next(survey.sources(record), None)
    if source is None or source.op != "mul":
        return False
    factors = (one.value for one in survey.sources(source))  # a factor that is broadcast adds up to more than one
    known = ((one.size, one.statistics()) for one in factors if one is not None and one.shape == source.shape)
    return any(
        stats is not None and stats.min >= 0 and isclose(stats.mean * size, 1.0, rel_tol=_NEARLY_ONE)
        for size, stats in known
    )


_NEARLY_ONE = 1e-2
"""The relative error up to which weights add up to one: a transport plan does so after some iterations."""


def _adds_up(record: NodeRecord) -> bool:
    return not record.shape and (record.op == "sum" or dict(record.created.attrs).get("reduction") == "sum")
