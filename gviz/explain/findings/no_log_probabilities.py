"""An nll_loss, or ctc_loss, of what are no logarithms of probabilities, or not of those of its classes."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label_at
from gviz.explain.operations import SOFTMAXES
from gviz.explain.survey import Made, Survey
from gviz.numbers import number

_LOSSES = ("nll_loss", "nll_loss2d", "ctc_loss")
_PROBABILITIES = {"softmax", "sigmoid"}
_ROWS = {"getitem", "index", "index_select", "slice", "clone", "contiguous"}
_SLACK = 0.01
"""How far above 0 the logarithm of a probability may come to lie: of ``log(p + 0.001)`` it does."""


def found(survey: Survey) -> Iterator[Finding]:
    """The losses whose input is above 0 somewhere, or sums to one along another dimension than that of the classes."""
    for made in survey.ops(*_LOSSES):
        first = next(survey.sources(made), None)
        finding = (_too_great(survey, made, first) or _elsewhere(survey, made, first)) if first is not None else None
        if finding is not None:
            yield finding


def _too_great(survey: Survey, made: Made, first: Made) -> Finding | None:
    stats = first.value.statistics() if first.value is not None else None
    if stats is None or not stats.max > _SLACK:  # nan: no element is finite
        return None
    before, loss = survey.unwrapped(first), label_at(survey.timeline, made.node)
    where = label_at(survey.timeline, before.node)
    if before.op in _PROBABILITIES:
        text = f"{loss} takes logarithms of probabilities, but its input is {where}, the probabilities themselves"
        fix = f"log_softmax in the place of {before.op}{_instead(made, ', or cross_entropy of what went into it')}"
    else:
        text = f"{loss} takes logarithms of probabilities, but its input is {where}, which has numbers above 0"
        fix = f"log_softmax before it{_instead(made, ', or cross_entropy, which takes scores as they are')}"
    part = Finding(
        "operand", f"it reaches {number(stats.max)}, and no such logarithm is above 0", first.seq, first.node
    )
    return _finding(survey, made, text, part, fix)


def _instead(made: Made, loss: str) -> str:
    """Another loss that takes what there is; of sequences there is none."""
    return "" if made.op == "ctc_loss" else loss


def _elsewhere(survey: Survey, made: Made, first: Made) -> Finding | None:
    first = _of_rows(survey, first)
    before = _of_rows(survey, next(survey.sources(first), first)) if first.op == "log" else first
    rank, dim = len(before.shape), dict(before.created.attrs).get("dim")
    if made.op == "ctc_loss" or before.op not in SOFTMAXES or not rank or not isinstance(dim, int):
        return None
    classes, dim, timeline = min(1, rank - 1), dim % rank, survey.timeline
    if dim == classes:
        return None
    text = (
        f"{label_at(timeline, made.node)} has its classes along dimension {classes}, but gets those of dimension {dim}"
    )
    taken = f"{label_at(timeline, before.node)} makes probabilities that add up to 1 along dimension {dim}"
    part = Finding("operand", taken, before.seq, before.node)
    return _finding(survey, made, text, part, f"{before.op}(..., dim={classes})")


def _of_rows(survey: Survey, made: Made) -> Made:
    """What a node is rows of, or a copy: its dimensions mean what they meant."""
    source = next(survey.sources(made), None) if made.op in _ROWS else None
    if source is None or len(source.shape) != len(made.shape):
        return made
    return _of_rows(survey, source)


def _finding(survey: Survey, made: Made, text: str, part: Finding, fix: str) -> Finding:
    at = innermost(survey.timeline.info(made.node))
    return Finding("no-log-probabilities", text, made.seq, made.node, (part,), fix, at)


NO_LOG_PROBABILITIES = Kind(
    "no-log-probabilities",
    "warning",
    "an nll_loss or ctc_loss of scores or probabilities, or along the wrong dimension",
    find=found,
)
