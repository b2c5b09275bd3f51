"""Weights that are frozen while all of them are zero, so that their layer never gives anything else.

Adapters such as LoRA's, and the last layers of new branches, begin with zeros, so that they change nothing before the
training. ``requires_grad_(False)`` of the whole model after they were added freezes them, too, and nothing ever moves
them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.events import RequiresGradSet
from gviz.explain.display_names import label, titled
from gviz.explain.finding import Finding, Number
from gviz.explain.operation_sets import LAYER_PRODUCTS
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_frames import at_text
from gviz.explain.tracking import ancestors
from gviz.values.value import Value

_FEWEST_DIMENSIONS = 2
"""Biases and scales have one. They may well be zero."""


def frozen_zero_weights(survey: Survey) -> Iterator[Finding | None]:
    """Yield the lines that freeze weights of zeros for good, if a later loss is computed with their layers.

    Limits. A weight counts only as a factor of an input that is no parameter itself, as a frozen first state of a
    recurrent layer is. One that gets a gradient at some time, is set to other numbers, or trains again does not count.
    """
    timeline = survey.timeline
    frozen: dict[int, tuple[int, RequiresGradSet]] = {}
    for seq, event in timeline.select((RequiresGradSet,)):
        if event.requires_grad:
            frozen.pop(event.node, None)
        else:
            frozen.setdefault(event.node, (seq, event))
    learnt = {event.node for _, event in survey.accumulated}
    zeros = {
        node: one
        for node, one in frozen.items()
        if node in survey.nodes and node not in learnt and _is_zero_weight(survey, node, one[0])
    }
    yield None
    after = min((seq for seq, _ in zeros.values()), default=survey.end)
    later = [event for seq, event in survey.passes if seq > after]
    if not zeros or not later or not any(seq > after for seq, _ in survey.accumulated):
        return
    roots = [node for node, _ in later[-1].roots if node]
    behind = {*roots, *ancestors(timeline, *roots)}
    yield None
    lines: defaultdict[tuple[str, int], dict[int, NodeRecord]] = defaultdict(dict)
    for record in survey.nodes.values():
        if record.node not in behind or record.op not in LAYER_PRODUCTS:
            continue
        factors = [survey.unwrapped(source) for source in survey.sources(record)]
        weights = [one.node for one in factors if one.node in zeros]
        if len(weights) == 1 and any(one.created.kind != "parameter" for one in factors):
            frames = timeline.stack(zeros[weights[0]][1].stack)
            if frames:
                lines[frames[0].path, frames[0].line].setdefault(weights[0], record)
    for uses in lines.values():
        yield _finding(survey, uses, zeros)


def _is_zero_weight(survey: Survey, node: int, seq: int) -> bool:
    """Return whether a parameter has two dimensions or more and was zero when it was frozen, and is zero at the end."""
    created = survey.nodes[node].created
    values = (survey.timeline.memory_value(node, 0, n) for n in (seq, survey.end))
    return created.kind == "parameter" and all(_is_zero(value) for value in values)


def _is_zero(value: Value | None) -> bool:
    stats = value.statistics() if value is not None and len(value.shape) >= _FEWEST_DIMENSIONS else None
    return value is not None and stats is not None and value.size > 0 and stats.zero == value.size


def _finding(survey: Survey, uses: dict[int, NodeRecord], zeros: dict[int, tuple[int, RequiresGradSet]]) -> Finding:
    timeline, node = survey.timeline, next(iter(uses))
    seq, event = zeros[node]
    frames = timeline.stack(event.stack)
    others = f" and {len(uses) - 1} more" if len(uses) > 1 else ""
    text = titled(f"{{}}{others} frozen while all zero: nothing can train them", label(timeline, node))
    used = survey.at(uses[node])
    where = at_text((used,)) if used is not None else ""
    part = Finding("used", f"its layer{where} multiplies by zeros in every iteration", uses[node].seq, node, at=used)
    fix = "freeze before these layers are added, or unfreeze them after this line: requires_grad_(True)"
    numbers = (Number("weights of zeros", len(uses), seq),)
    return Finding("frozen-zero", text, seq, node, (part,), fix, frames[0], numbers)
