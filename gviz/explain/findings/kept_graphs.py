"""Graphs of many iterations that are alive at once, because something keeps a result of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind
from gviz.explain.names import innermost, label, made_at
from gviz.explain.survey import Made, Survey
from gviz.explain.ways import ancestors
from gviz.numbers import bytes_text

MOST_ALIVE = 3
"""So many graphs of one line may be alive at once: the one in use, the last one, and one that is just replaced."""


def found(survey: Survey) -> Iterator[Finding]:
    """Lines of which tracked results of more iterations are alive at the end than any loop needs."""
    if len(survey.timeline.iterations) <= MOST_ALIVE:
        return
    last_pass = max((seq for seq, _ in survey.passes), default=survey.end)  # later the program takes everything down
    in_use = _in_use(survey)
    tracked = (made for made in survey.alive(last_pass) if made.created.kind == "op" and made.created.requires_grad)
    alive = [made for made in tracked if made.node not in in_use]
    by_line: defaultdict[int, dict[int, Made]] = defaultdict(dict)
    for made in alive:
        by_line[made.created.stack][survey.timeline.iteration_at(made.seq).index] = made
    last = max((one for one in by_line.values() if len(one) > MOST_ALIVE), key=_latest, default=None)
    if last is not None:
        yield _finding(survey, list(last.values()), alive)


def _in_use(survey: Survey) -> set[int]:
    """What the last pass goes back through and none has before: kept for it, as adapted weights are."""
    if not survey.passes:
        return set()
    start, last = survey.passes[-1]
    reached = list(ancestors(survey.timeline, *(node for node, _ in last.roots)))
    states = survey.timeline.at(start - 1).states(reached)
    return {node for node, state in zip(reached, states, strict=True) if state is not None and not state.pass_nr}


def _latest(line: dict[int, Made]) -> int:
    return max(made.seq for made in line.values())


def _finding(survey: Survey, roots: list[Made], alive: list[Made]) -> Finding:
    timeline = survey.timeline
    first, last = roots[0], roots[-1]
    states = timeline.at(last.seq).states([made.node for made in alive])
    saved = [state for state in states if state is not None and state.saved == "held"]
    size = sum(made.value.nbytes for made in alive if made.value is not None)
    info = timeline.info(last.node)
    text = (
        f"{len(roots)} graphs are alive at once: the results of {label(timeline, last.node)}{made_at(info.frames)} of "
        f"{len(roots)} iterations are kept, the first since event {first.seq}"
    )
    held = f"{len(alive)} nodes with results of {bytes_text(size)}, saved tensors of {len(saved)} of them still held"
    parts = (
        Finding("alive", held, last.seq, last.node),
        Finding("since", f"the oldest is {label(timeline, first.node)}", first.seq, first.node),
    )
    fix = "keep the number, not the tensor: losses.append(loss.item()), total += loss.item(), or loss.detach()"
    numbers = (Number("graphs alive", len(roots), last.seq), Number("nodes alive", len(alive), last.seq))
    return Finding("graphs-kept", text, last.seq, last.node, parts, fix, innermost(info), numbers)


GRAPHS_KEPT = Kind("graphs-kept", "warning", "graphs of many iterations that something keeps alive", find=found)
