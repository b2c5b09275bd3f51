"""A target that depends on what is trained: the gradient goes into it too."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label_at
from gviz.explain.operations import LOSSES_OF_PAIRS
from gviz.explain.survey import Survey


def found(survey: Survey) -> Iterator[Finding]:
    """Losses whose second argument requires a gradient as well."""
    timeline = survey.timeline
    for made in survey.ops(*LOSSES_OF_PAIRS):
        pair = list(survey.sources(made))[:2]
        if len(pair) == 2 and all(source.created.requires_grad and source.created.kind == "op" for source in pair):
            target = survey.unwrapped(pair[1])
            text = (
                f"{label_at(timeline, made.node)} sends a gradient into its target, {label_at(timeline, target.node)}"
            )
            fix = "target.detach(), if the prediction is to come to the target and not the target to the prediction"
            at = innermost(timeline.info(made.node))
            yield Finding("attached-target", text, made.seq, target.node, (), fix, at, suspected=True)


ATTACHED_TARGET = Kind("attached-target", "suspicion", "a loss whose target depends on what is trained", find=found)
