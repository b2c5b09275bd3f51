"""Losses that a line makes in every iteration, but for which no backward runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gviz.explain.display_names import label
from gviz.explain.finding import Finding, Number
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors

# A line makes many losses, but backward runs for only a few: it is probably outside the loop

_FEWEST = 8
"""The fewest losses of one line that show a loop; fewer may be a line search."""

_TIMES = 10
"""At least this many unused losses for each backward are reported. A program may choose among fewer losses."""

_LOOKED_AT = 4
"""The number of unused losses whose ancestors are searched."""


def unused_losses(survey: Survey) -> Iterator[Finding]:
    """Yield lines that make losses, if no pass goes through most of these losses."""
    if survey.timeline.cut_off:  # the next event may have been a backward
        return
    roots = survey.roots & survey.nodes.keys()
    lines = [losses for losses in _by_line(survey, roots) if len(losses) > _FEWEST]
    used_nodes = {*ancestors(survey.timeline, *roots), *roots} if lines else set()
    for losses in lines:
        used = [record for record in losses if record.node in used_nodes]
        unused = [record for record in losses if record.node not in used_nodes]
        fewest = max(_FEWEST, _TIMES * (len(used) - 1))
        if len(unused) >= fewest and not _are_choices(survey, unused, used_nodes):
            yield _unused_finding(survey, unused, used)


def _by_line(survey: Survey, roots: frozenset[int]) -> Iterable[list[NodeRecord]]:
    """Return, for each line that made the root of a pass, the scalars that the line made."""
    lines: defaultdict[int, list[NodeRecord]] = defaultdict(list)
    stacks = {survey.nodes[root].created.stack for root in roots} - {0}
    for record in survey.nodes.values():
        if record.created.stack in stacks and _may_be_a_loss(record):
            lines[record.created.stack].append(record)
    return lines.values()


def _are_choices(survey: Survey, unused: list[NodeRecord], used_nodes: set[int]) -> bool:
    """Return whether the losses share operations with one that was used: the program has chosen among them."""
    shared = (node for record in unused[-_LOOKED_AT:] for node in ancestors(survey.timeline, record.node))
    return any(node in used_nodes and survey.nodes[node].created.kind == "op" for node in shared)


def _may_be_a_loss(record: NodeRecord) -> bool:
    return (
        record.created.kind == "op"
        and record.created.requires_grad
        and record.value is not None
        and record.value.size == 1
    )


def _unused_finding(survey: Survey, unused: list[NodeRecord], used: list[NodeRecord]) -> Finding:
    timeline, first, last = survey.timeline, unused[0], max(used, key=lambda record: record.node)
    info, count = timeline.info(last.node), len(unused) + len(used)
    text = f"backward goes through {len(used)} of {count} losses"
    others = f"{label(timeline, first.node)} and {len(unused) - 1} others have brought no gradient to anything"
    parts = (Finding("beside", others, first.seq, first.node),)
    numbers = (Number("losses", count), Number("gone through", len(used)))
    fix = "call backward() and the step in the loop, after each loss (or no_grad() where none is meant)"
    at = innermost(info)
    return Finding("unused-losses", text, last.seq, last.node, parts, fix, at, numbers, suspected=True)
