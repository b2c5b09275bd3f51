"""A gradient of an earlier step that was already used, and that the next backward added to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gviz.events import DataSet, Event, GradAccumulated, GradSet, OptimizerStepped, StorageWritten
from gviz.explain.finding import Finding, Number
from gviz.explain.kind import Kind
from gviz.explain.names import iteration_called, label, made_at
from gviz.explain.pass_starts import pass_started
from gviz.explain.survey import Survey
from gviz.trace.timeline import Timeline
from gviz.value_text import grad, share
from gviz.values import Value

_CLEARED = {"none", "zero"}
_ROOM = 40
"""Characters for a gradient in a row of others."""


@dataclass(slots=True)
class _Leaf:
    """What has happened to the ``.grad`` of one leaf: the events that filled it, used it, and then added to it."""

    filled: int = 0
    used: int = 0
    added: int = 0


def found(survey: Survey) -> Iterator[Finding | None]:
    """Of each leaf the first sum of a used and a new gradient that was used in its turn, and how often it happened."""
    leaves: defaultdict[int, _Leaf] = defaultdict(_Leaf)
    holders: dict[int, int] = {}
    first: dict[int, _Leaf] = {}
    iterations: defaultdict[int, set[int]] = defaultdict(set)
    for seq, event in survey.select(GradAccumulated, GradSet, OptimizerStepped, StorageWritten, DataSet):
        yield None
        match event:
            case GradAccumulated(node=node, value=value) if node in survey.nodes:
                _fill(leaves[node], seq, summed=value is not None)
                holders |= {out.storage: node for out in survey.nodes[node].created.outputs} if value is None else {}
            case GradSet(node=node, how=how) if how in _CLEARED or _is_used(leaves[node]):
                leaves.pop(node, None)
            case GradSet():
                pass  # scaled or clipped, before its step
            case _:
                for node, leaf in [(node, leaves[node]) for node in _updated(event, holders) if node in leaves]:
                    if leaf.added > leaf.used:
                        first.setdefault(node, replace(leaf))
                        iterations[node].add(survey.timeline.iteration_at(leaf.added).index)
                    leaf.used = seq
    yield from (_finding(survey.timeline, leaf, len(iterations[node])) for node, leaf in first.items())


def _is_used(leaf: _Leaf) -> bool:
    """Whether a step came after the last that was added: whoever changes it now knows that it is still there."""
    return leaf.used > max(leaf.filled, leaf.added)


def _fill(leaf: _Leaf, seq: int, *, summed: bool) -> None:
    if summed and leaf.used:
        leaf.added = seq
    else:
        leaf.filled = seq


def _updated(event: Event, holders: dict[int, int]) -> Iterable[int]:
    """The leaves that an event says were updated."""
    match event:
        case OptimizerStepped(parameters=parameters):
            return parameters
        case StorageWritten(storage=storage) if storage in holders:
            return (holders[storage],)
        case DataSet(node=node):
            return (node,)
    return ()


def _finding(timeline: Timeline, leaf: _Leaf, times: int) -> Finding:
    seq, event = leaf.added, timeline.event(leaf.added)
    assert isinstance(event, GradAccumulated)
    name = label(timeline, event.node)
    before = timeline.event(leaf.filled) if leaf.filled else None
    had = (
        before.part if isinstance(before, GradAccumulated) and before.value is None else getattr(before, "value", None)
    )
    since = f" from backward pass {before.pass_nr}" if isinstance(before, GradAccumulated) else ""
    started = pass_started(timeline, event.pass_nr)
    frames = timeline.stack(started.stack) if started is not None else ()
    text = (
        f"the .grad of {name} still held the gradient{since}, which a step had used, when backward{made_at(frames)} "
        f"added to it{_how_often(timeline, times)}"
    )
    parts = (
        Finding("accumulated", f"{_brief(had)} was there before", leaf.filled, event.node),
        Finding("used", "the parameter was updated with it here", leaf.used, event.node),
        Finding("sum", f"{_brief(event.part)} was added to it: {_brief(event.value)}", seq, event.node),
    )
    fix = "optimizer.zero_grad() before each backward(), or w.grad = None after the update"
    numbers = (Number("iterations", times, seq),)
    return Finding("not-cleared", text, seq, event.node, parts, fix, frames[0] if frames else None, numbers)


def _how_often(timeline: Timeline, times: int) -> str:
    """In how many iterations it happened, of all that were recorded; empty for the only one."""
    count = len(timeline.iterations)
    if times < 2:
        return ""
    return f", in {times:,} of {count:,} {iteration_called(timeline)}s"


def _brief(value: Value | None) -> str:
    """A few numbers, of more their length."""
    return share(value, _ROOM) if value is not None else grad(value)


NOT_CLEARED = Kind("not-cleared", "error", "a gradient that a step has used and nothing has cleared", find=found)
