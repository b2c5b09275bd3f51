"""Losses of one line that no backward pass goes through, but for a few: backward outside of the loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, made_at
from gviz.explain.survey import Made, Survey
from gviz.explain.ways import ancestors

_FEWEST = 3
"""So many losses of one line are made in a loop; fewer may be looked at only."""


def found(survey: Survey) -> Iterator[Finding]:
    """Lines whose losses are started from, most of which no pass has started from or gone through."""
    roots = {node for _, event in survey.passes for node, _ in event.roots if node in survey.nodes}
    if survey.timeline.failures:  # backward may be what the program did not come to
        return
    by_line: defaultdict[int, list[Made]] = defaultdict(list)
    stacks = {survey.nodes[root].created.stack for root in roots} - {0}
    for made in survey.nodes.values():
        if made.created.stack in stacks and made.node not in roots and _may_be_a_loss(made):
            by_line[made.created.stack].append(made)
    if not any(len(losses) >= _FEWEST for losses in by_line.values()):
        return
    gone_through = set(ancestors(survey.timeline, *roots))
    for stack, losses in by_line.items():
        unused = [made for made in losses if made.node not in gone_through]
        used = [survey.nodes[root] for root in roots if survey.nodes[root].created.stack == stack]
        if len(unused) >= _FEWEST and len(unused) > len(used):
            yield _finding(survey, unused, used)


def _may_be_a_loss(made: Made) -> bool:
    return made.created.kind == "op" and made.created.requires_grad and made.value is not None and made.value.size == 1


def _finding(survey: Survey, unused: list[Made], used: list[Made]) -> Finding:
    timeline, first, last = survey.timeline, unused[0], max(used, key=lambda made: made.node)
    info, count = timeline.info(last.node), len(unused) + len(used)
    text = f"backward goes through {len(used)} of {count} losses{made_at(info.frames)}"
    others = f"{label(timeline, first.node)} and {len(unused) - 1} others have brought no gradient to anything"
    parts = (Finding("beside", others, first.seq, first.node),)
    numbers = (Number("losses", count), Number("gone through", len(used)))
    fix = "call backward() and the step in the loop, after each loss (or no_grad() where none is meant)"
    at = innermost(info)
    return Finding("unused-losses", text, last.seq, last.node, parts, fix, at, numbers, suspected=True)


UNUSED_LOSSES = Kind("unused-losses", "warning", "losses of a loop that no backward pass goes through", find=found)
