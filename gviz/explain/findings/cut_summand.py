"""A summand of a loss that brings no gradient, as its way back to what is trained is cut, while others have theirs."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.explain.finding import Finding
from gviz.explain.findings.tracked import cut_fix, loses
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, label_at, why_cut
from gviz.explain.operations import LISTS, RESHAPING
from gviz.explain.survey import Made, Survey
from gviz.explain.ways import ancestors

_SUMMING = {"add", "sub", *LISTS}
_ON_THE_WAY = {"sum", "mean", "mul", "div", "neg", *RESHAPING}
_MOST = 200
"""So many summands of one loss are looked at."""


def found(survey: Survey) -> Iterator[Finding | None]:
    """For each line that makes what backward is called on: what it adds that was made of parameters, and is cut."""
    roots = [survey.nodes[node] for _, event in survey.passes for node, _ in event.roots if node in survey.nodes]
    for root in {made.created.stack: made for made in roots}.values():
        yield None
        for made, beside in _cut_off(survey, root):
            lost = _lost(survey, made, beside)
            if lost:
                yield _finding(survey, root, made, lost)


def _cut_off(survey: Survey, root: Made) -> Iterator[tuple[Made, list[Made]]]:
    """The summands of a loss that autograd does not follow, each with those beside it that it follows."""
    waiting, seen = [root], {root.node}
    while waiting and len(seen) < _MOST:
        made = waiting.pop()
        sources = list(survey.sources(made))
        tracked = [source for source in sources if source.created.requires_grad]
        if made.op in _SUMMING:
            yield from ((one, tracked) for one in sources if tracked and _is_result(one))
        elif made.op not in _ON_THE_WAY or len(tracked) != 1:
            continue
        waiting += [source for source in tracked if source.node not in seen]
        seen.update(source.node for source in tracked)


def _is_result(made: Made) -> bool:
    return made.created.kind == "op" and not made.created.requires_grad


def _lost(survey: Survey, made: Made, beside: list[Made]) -> int:
    """Where the way from what is trained to a summand is cut; 0 if nowhere, or if it was made of what stands beside it.

    Of that it may be a correction on purpose: ``x + (y - x).detach()``, ``x - x.max().detach()``.
    """
    timeline = survey.timeline
    before = [made.node, *ancestors(timeline, made.node)]
    if any(one.node in before for one in beside):
        return 0
    lost = (node for node in before if loses(timeline, node))
    return next((node for node in lost if not survey.optimized.isdisjoint(ancestors(timeline, node))), 0)


def _finding(survey: Survey, root: Made, made: Made, lost: int) -> Finding:
    timeline = survey.timeline
    cut = timeline.info(lost)
    summand, loss = label_at(timeline, made.node), label(timeline, root.node)
    text = f"{summand} is a part of {loss}, but brings no gradient to anything"
    part = Finding("cut", f"cut at {label_at(timeline, lost)}: {why_cut(cut)}", cut.born, lost, at=innermost(cut))
    fix = cut_fix(timeline, cut)
    return Finding("cut-summand", text, made.seq, made.node, (part,), fix, innermost(cut), suspected=True)


CUT_SUMMAND = Kind("cut-summand", "suspicion", "a part of a loss that is cut off from what is trained", find=found)
