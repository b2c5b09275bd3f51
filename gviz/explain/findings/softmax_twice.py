"""A softmax of what is a softmax already: cross_entropy takes logits."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label_at
from gviz.explain.operations import SOFTMAXES
from gviz.explain.survey import Survey

_TWICE = {
    "log_softmax": {*SOFTMAXES, "sigmoid"},
    "softmax": SOFTMAXES,
    "binary_cross_entropy_with_logits": {"sigmoid", "softmax"},
}
"""By operation: what its input must not be."""


def found(survey: Survey) -> Iterator[Finding]:
    """Operations that take logits and were given probabilities."""
    timeline = survey.timeline
    for made in survey.ops(*_TWICE):
        first = next(survey.sources(made), None)
        before = survey.unwrapped(first) if first is not None else None
        if before is None or before.op not in _TWICE[made.op] or _idempotent(made.op, before.op):
            continue
        text = (
            f"{label_at(timeline, made.node)} takes logits, but its input is {label_at(timeline, before.node)} already"
        )
        part = Finding("first", f"{before.op} was taken here", before.seq, before.node)
        fix = f"give it the input of that {before.op}: cross_entropy and the losses with logits apply it themselves"
        yield Finding("softmax-twice", text, made.seq, made.node, (part,), fix, innermost(timeline.info(made.node)))


def _idempotent(op: str, before: str) -> bool:
    """log_softmax of log_softmax changes nothing but the time it takes."""
    return op == before == "log_softmax"


SOFTMAX_TWICE = Kind("softmax-twice", "warning", "a softmax of probabilities: the loss applies it itself", find=found)
