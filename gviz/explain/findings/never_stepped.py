"""A parameter that gets gradients and that no optimizer has."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label
from gviz.explain.survey import Survey


def found(survey: Survey) -> Iterator[Finding]:
    """Parameters with a gradient of some pass, in a program in which optimizers step, but never with these."""
    if not survey.optimized or survey.timeline.failures:  # its step may be what the program did not come to
        return
    timeline, seen = survey.timeline, set(survey.optimized)
    for seq, event in survey.accumulated:
        made = survey.nodes.get(event.node)
        if made is None or event.node in seen or made.created.kind != "parameter":
            continue
        seen.add(event.node)
        text = f"{label(timeline, event.node)} gets a gradient, but no optimizer has updated it"
        fix = "give its module's parameters() to the optimizer, or freeze it with requires_grad_(False)"
        yield Finding(
            "never-stepped", text, seq, event.node, (), fix, innermost(timeline.info(event.node)), suspected=True
        )


NEVER_STEPPED = Kind("never-stepped", "warning", "a parameter that gets gradients and is in no optimizer", find=found)
