"""A softmax of a softmax: an operation that takes logits, such as cross_entropy, gets probabilities."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.display_names import label, label_at, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import SOFTMAXES
from gviz.explain.recording_survey import Survey
from gviz.explain.source_edit import without_call
from gviz.explain.source_frames import innermost

_TWICE = {
    "log_softmax": {*SOFTMAXES, "sigmoid"},
    "softmax": SOFTMAXES,
    "binary_cross_entropy_with_logits": {"sigmoid", "softmax"},
}
"""The operation -> the operations that must not make its input."""


def softmax_twice(survey: Survey) -> Iterator[Finding]:
    """Yield operations that take logits and got probabilities."""
    timeline = survey.timeline
    for record in survey.ops(*_TWICE):
        first = next(survey.sources(record), None)
        before = survey.unwrapped(first) if first is not None else None
        if before is None or before.op not in _TWICE[record.op]:
            continue
        if record.op == before.op == "log_softmax":  # the second log_softmax changes nothing
            continue
        names = label(timeline, record.node), label(timeline, before.node)
        text = titled("{} takes logits, but gets {}", *names)
        first_at = innermost(timeline.info(before.node))
        part = Finding(
            "first", f"{label_at(timeline, before.node)} took it first", before.seq, before.node, at=first_at
        )
        fix = f"give it the input of that {before.op}: cross_entropy and the losses with logits apply it themselves"
        at = innermost(timeline.info(record.node))
        edit = without_call(timeline, survey.at(before), before.op)
        yield Finding("softmax-twice", text, record.seq, record.node, (part,), fix, at, edit=edit)
