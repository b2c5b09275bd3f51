"""A gradient of an earlier step that was already used, and that the next backward added to."""

from __future__ import annotations

from collections.abc import Iterator

from gviz.events import BackwardStarted, Event, GradAccumulated, GradSet, OptimizerStepped, StorageWritten
from gviz.explain.finding import Finding
from gviz.explain.kind import Kind
from gviz.explain.names import label, made_at
from gviz.explain.survey import Survey
from gviz.numbers import grad
from gviz.trace.timeline import Timeline


class _Leaf:
    """What has happened to the ``.grad`` of one leaf: the pass that filled it, and whether a step has used it."""

    __slots__ = ("filled", "used")

    def __init__(self) -> None:
        self.filled, self.used = 0, 0


def found(survey: Survey) -> Iterator[Finding]:
    """The first such addition; the others are of the same loop."""
    leaves: dict[int, _Leaf] = {}
    holders: dict[int, int] = {}
    kinds = (GradAccumulated, GradSet, OptimizerStepped, StorageWritten)
    for seq, event in survey.select(*kinds):
        if isinstance(event, GradAccumulated):
            leaf = leaves.setdefault(event.node, _Leaf())
            if event.value is not None and leaf.used and event.node in survey.nodes:
                yield _finding(survey.timeline, seq, event, leaf)
                return
            leaf.filled, leaf.used = seq, 0
            holders |= {out.storage: event.node for out in survey.nodes[event.node].created.outputs}
        else:
            _note(leaves, holders, seq, event)


def _note(leaves: dict[int, _Leaf], holders: dict[int, int], seq: int, event: Event) -> None:
    match event:
        case GradSet(node=node):
            leaves.pop(node, None)
        case OptimizerStepped(parameters=parameters):
            for node in parameters:
                leaves.setdefault(node, _Leaf()).used = seq
        case StorageWritten(storage=storage) if storage in holders:
            leaves.setdefault(holders[storage], _Leaf()).used = seq


def _finding(timeline: Timeline, seq: int, event: GradAccumulated, leaf: _Leaf) -> Finding:
    name, moment = label(timeline, event.node), timeline.at(seq)
    before = timeline.event(leaf.filled) if leaf.filled else None
    had = (
        before.part if isinstance(before, GradAccumulated) and before.value is None else getattr(before, "value", None)
    )
    since = f" from backward pass {before.pass_nr}" if isinstance(before, GradAccumulated) else ""
    started = next(
        (timeline.event(p.start) for p in timeline.phases if p.pass_nr == moment.pass_nr and p.pass_nr), None
    )
    frames = timeline.stack(started.stack) if isinstance(started, BackwardStarted) else ()
    text = (
        f"the .grad of {name} still held {grad(had)}{since}, which a step had used, when "
        f"backward{made_at(frames)} added {grad(event.part)}"
    )
    parts = (
        Finding("accumulated", f"{grad(had)} was there before{since}", leaf.filled, event.node),
        Finding("used", "the parameter was updated with it here", leaf.used, event.node),
        Finding("sum", f"the sum is {grad(event.value)}", seq, event.node),
    )
    fix = "optimizer.zero_grad() before each backward(), or w.grad = None after the update"
    return Finding("not-cleared", text, seq, event.node, parts, fix, frames[0] if frames else None)


NOT_CLEARED = Kind("not-cleared", "error", "a gradient that a step has used and nothing has cleared", find=found)
