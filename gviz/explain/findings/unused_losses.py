"""Losses of one line that no backward pass goes through, but for a few: backward outside of the loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, made_at
from gviz.explain.survey import Made, Survey
from gviz.explain.ways import ancestors

_FEWEST = 8
"""So many losses of one line are made in a loop; fewer may be tried, as in a line search."""

_TIMES = 10
"""A program that calls backward now and then may choose among so many losses each time."""

_LOOKED_AT = 4
"""Of so many it is asked what they were made of."""


def found(survey: Survey) -> Iterator[Finding]:
    """Lines whose losses are started from, most of which no pass has started from or gone through."""
    if survey.timeline.cut_off:  # backward may be what it was to come to
        return
    roots = {node for _, event in survey.passes for node, _ in event.roots if node in survey.nodes}
    lines = [losses for losses in _by_line(survey, roots) if len(losses) > _FEWEST]
    gone_through = {*ancestors(survey.timeline, *roots), *roots} if lines else set()
    for losses in lines:
        used = [made for made in losses if made.node in gone_through]
        unused = [made for made in losses if made.node not in gone_through]
        fewest = max(_FEWEST, _TIMES * (len(used) - 1))
        if len(unused) >= fewest and not _are_choices(survey, unused, gone_through):
            yield _finding(survey, unused, used)


def _by_line(survey: Survey, roots: set[int]) -> Iterable[list[Made]]:
    """The scalars that were made where the root of a pass was."""
    found: defaultdict[int, list[Made]] = defaultdict(list)
    stacks = {survey.nodes[root].created.stack for root in roots} - {0}
    for made in survey.nodes.values():
        if made.created.stack in stacks and _may_be_a_loss(made):
            found[made.created.stack].append(made)
    return found.values()


def _are_choices(survey: Survey, unused: list[Made], gone_through: set[int]) -> bool:
    """Whether the losses share operations with one that was used: the program has chosen among them."""
    shared = (node for made in unused[-_LOOKED_AT:] for node in ancestors(survey.timeline, made.node))
    return any(node in gone_through and survey.nodes[node].created.kind == "op" for node in shared)


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


UNUSED_LOSSES = Kind("unused-losses", "suspicion", "losses of a loop that no backward pass goes through", find=found)
