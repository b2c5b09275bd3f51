"""A loss that adds up a batch: every gradient is larger than that of the mean by the size of the batch."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label_at
from gviz.explain.survey import Made, Survey
from gviz.numbers import shape_text

FEWEST = 16
"""Rows from which on the difference between a sum and a mean is that between two learning rates."""


def found(survey: Survey) -> Iterator[Finding]:
    """The losses of a program with an optimizer that are a sum over the first dimension of what they are made from."""
    timeline = survey.timeline
    roots = dict.fromkeys(node for _, event in survey.passes for node, _ in event.roots) if survey.optimized else {}
    for made in (survey.nodes[node] for node in roots if node in survey.nodes):
        source = next(survey.sources(made), None)
        if source is None or not _adds_up(made) or not source.shape or source.shape[0] < FEWEST:
            continue
        rows = source.shape[0]
        text = f"{label_at(timeline, made.node)} adds up {rows} rows: every gradient is {rows} times that of their mean"
        part = Finding("operand", f"what it adds up is {shape_text(source.shape)}", source.seq, source.node)
        fix = f"mean() or reduction='mean'; if the sum is meant, a learning rate {rows} times smaller"
        at, numbers = innermost(timeline.info(made.node)), (Number("rows", rows, source.seq),)
        yield Finding("summed-loss", text, made.seq, made.node, (part,), fix, at, numbers, suspected=True)


def _adds_up(made: Made) -> bool:
    return not made.shape and (made.op == "sum" or dict(made.created.attrs).get("reduction") == "sum")


SUMMED_LOSS = Kind("summed-loss", "suspicion", "a loss that adds up a batch instead of taking its mean", find=found)
