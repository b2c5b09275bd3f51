"""A loss that adds up the rows of a batch where a mean is expected: its gradients are larger by the batch size."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose

from gviz.events import OptimizerStepped
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.findings.training_loop.gradient_accumulation import divided_passes
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_frames import innermost
from gviz.values.number_text import shape_text

_FEWEST_ROWS = 16
"""The batch size from which on a sum instead of a mean changes the learning rate noticeably."""


def summed_loss(survey: Survey) -> Iterator[Finding]:
    """Yield losses that sum over the first dimension, and from which an optimizer's parameters get their gradients.

    A program that divides these gradients before the step has its mean.
    """
    timeline = survey.timeline
    last_step = max((seq for seq, _ in survey.select(OptimizerStepped)), default=0)
    accumulated = ((seq, event) for seq, event in survey.accumulated if event.node in survey.optimized)
    training = {event.pass_nr for seq, event in accumulated if seq < last_step}  # a later one reads gradients of data
    training -= divided_passes(survey)
    roots = dict.fromkeys(node for _, event in survey.passes if event.pass_nr in training for node, _ in event.roots)
    for record in (survey.nodes[node] for node in roots if node in survey.nodes):
        source = next(survey.sources(record), None)
        if source is None or not _adds_up(record) or not source.shape or source.shape[0] < _FEWEST_ROWS:
            continue
        if is_weighted_mean(survey, record):
            continue
        rows = source.shape[0]
        text = titled(f"{{}} adds up {rows} rows, and does not take their mean", label(timeline, record.node))
        size = f"it adds up {shape_text(source.shape)}: every gradient is {rows} times that of the mean"
        part = Finding("operand", size, source.seq, source.node)
        fix = f"mean() or reduction='mean'; if the sum is meant, a learning rate {rows} times smaller"
        at, numbers = innermost(timeline.info(record.node)), (Number("rows", rows, source.seq),)
        yield Finding("summed-loss", text, record.seq, record.node, (part,), fix, at, numbers, suspected=True)


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
