"""A parameter that gets gradients, and that nothing ever updates."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import GradCaptured
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.neglected import neglected
from gviz.explain.survey import Survey


def found(survey: Survey) -> Iterator[Finding]:
    """Leaves with a gradient of some pass that no optimizer and no line of the program has changed since.

    Data that the program asks gradients of, as the points at which a differential equation is to hold, are none.
    """
    if survey.timeline.failures:  # the update may be what the program did not come to
        return
    asked_for = {event.node for _, event in survey.select(GradCaptured)}
    leaves = dict.fromkeys(event.node for _, event in survey.accumulated if event.node in survey.nodes)
    for node in leaves:
        is_data = node in asked_for and survey.nodes[node].created.kind != "parameter"
        finding = None if is_data or node in survey.optimized else neglected(survey.timeline, node, survey.end)
        if finding is not None:
            yield finding


NEVER_STEPPED = Kind("never-stepped", "warning", "a parameter that gets gradients and that nothing updates", find=found)
