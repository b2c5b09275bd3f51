"""A column against a row of as many elements: (n,1) with (n,) gives (n,n), and a loss of every pair."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, label_at
from gviz.explain.operations import ELEMENT_BY_ELEMENT
from gviz.explain.survey import Made, Survey
from gviz.numbers import shape_text


def found(survey: Survey) -> Iterator[Finding | None]:
    """Operations element by element of which neither input has the shape of the result."""
    for made in survey.ops(*ELEMENT_BY_ELEMENT):
        yield None
        if len(made.shape) == 2 and made.shape[0] != made.shape[1]:
            continue
        pair = [_before_widening(survey, source) for source in survey.sources(made)][:2]
        shapes = [source.shape for source in pair]
        if len(pair) == 2 and _column_and_row(*shapes) and made.created.requires_grad:
            yield _finding(survey, made, pair)


def _before_widening(survey: Survey, made: Made) -> Made:
    """What a loss function was given: it widens what it was given itself before the two meet."""
    source = next(survey.sources(made), None) if made.op == "expand" else None
    return made if source is None else _before_widening(survey, source)


def _column_and_row(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    row, column = sorted((one, other), key=len)
    return len(row) == 1 and row[0] > 1 and column == (row[0], 1)


def _finding(survey: Survey, made: Made, pair: list[Made]) -> Finding:
    timeline = survey.timeline
    one, other = (shape_text(source.shape) for source in pair)
    n = max(chain.from_iterable(source.shape for source in pair))
    text = f"{label_at(timeline, made.node)}: {one} with {other} becomes ({n},{n}), every element against every other"
    parts = tuple(
        Finding("operand", f"{label(timeline, source.node)} is {shape_text(source.shape)}", source.seq, source.node)
        for source in pair
    )
    fix = "squeeze(-1) the column, or unsqueeze(-1) the row, so that both have the same shape"
    return Finding("broadcast", text, made.seq, made.node, parts, fix, innermost(timeline.info(made.node)))


BROADCAST = Kind("broadcast", "warning", "a column met a row of as many elements and became a square", find=found)
