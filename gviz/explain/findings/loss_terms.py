"""Terms of a loss that do not fit together: the mean of a batch, and the sum of one.

Idea. A loss is a sum of terms, each with a factor. If one is the mean of all elements of a batch, and another the sum
of the elements of the same batch, the second counts as many times more as the first has elements.

Example. The reconstruction of a VAE as ``F.mse_loss(x_hat, x)`` with 128 rows of 24, and its divergence as
``-0.5 * torch.sum(...)``: the divergence has 3072 times the weight that it should have, and the latents collapse.

Limits. A weight may be meant: a sum with a small factor, or divided by the size of the batch, is left out, and so is
one of parameters only.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.edit import renamed_call, with_keyword
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.loss import is_weighted_mean
from gviz.explain.findings.unbounded_loss import Term, scalar_terms
from gviz.explain.operation_sets import LOSSES
from gviz.explain.program_source import called_function
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.values.number_text import shape_text

_LOSSES = LOSSES | {"nll_loss", "nll_loss2d", "cross_entropy", "kl_div"}
_FEWEST_ROWS = 8
_SMALL = 0.1
"""A factor, in comparison to that of the mean, from which on a weight is no accident."""


def mean_and_sum(survey: Survey) -> Iterator[Finding | None]:
    """Yield losses that add the mean of a batch and the sum of a batch: each line once."""
    seen: set[int] = set()
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
            yield _finding(survey, root, *pair)


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
    if is_weighted_mean(survey, total.record):
        return False
    if abs(total.factor) < _SMALL * abs(mean.factor) or _is_divided_by_its_size(survey, total.record):
        return False
    known = (survey.nodes[node] for node in ancestors(survey.timeline, total.record.node) if node in survey.nodes)
    data = (each for each in known if each.created.kind in ("constant", "op") and not each.created.requires_grad)
    return any(output.value is not None and output.value.shape[:1] == one[:1]
               for each in data for output in each.created.outputs)  # fmt: skip


def _is_divided_by_its_size(survey: Survey, record: NodeRecord) -> bool:
    """Return whether a sum is divided by its number of rows or elements, as ``reduction="batchmean"`` does."""
    shape = _batch(survey, record)
    for node in survey.timeline.nodes.users(record.node):
        user = survey.nodes.get(node)
        if user is not None and user.op == "div":
            divisor = [*survey.sources(user)][1:]
            stats = divisor[0].value.statistics() if divisor and divisor[0].value is not None else None
            if stats is not None and stats.mean in (shape[0], prod(shape)):
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
