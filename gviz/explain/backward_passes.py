"""Backward passes: where each began, with which arguments, and from which losses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from gviz.events import BackwardStarted, Edge, GradAccumulated
from gviz.trace.graph_state import Phase
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number


def start_of_pass(timeline: Timeline, pass_nr: int) -> int:
    """Return the event with which a pass began; 0 without a pass, for a nested one, and if it was not recorded."""
    latest_first = reversed(timeline.phases)
    return next((phase.start for phase in latest_first if pass_nr and phase.pass_nr == pass_nr), 0)


def pass_started(timeline: Timeline, pass_nr: int) -> BackwardStarted | None:
    """Return the event that describes a pass; None where `start_of_pass` has no event."""
    start = start_of_pass(timeline, pass_nr)
    event = timeline.event(start) if start else None
    return event if isinstance(event, BackwardStarted) else None


# The numbers at which passes began

_MOST_NAMES = 4
_GROWING, _TIMES = 3, 10.0
"""A loss grows if this many values in a row increase, and the last is this many times the first."""


def call_of_pass(timeline: Timeline, pass_nr: int) -> int:
    """Return the stack of the call that started a pass; 0 if it is unknown."""
    started = pass_started(timeline, pass_nr)
    return started.stack if started is not None else 0


def roots_of_pass(timeline: Timeline, pass_nr: int) -> list[int]:
    """Return the nodes at which a pass began; empty if it is unknown."""
    started = pass_started(timeline, pass_nr)
    return [node for node, _ in started.roots if node in timeline.nodes] if started is not None else []


def loss_at(timeline: Timeline, start: int) -> tuple[int, float] | None:
    """Return the node and the number at which the pass of event `start` began; None if it is not one known number.

    An unnamed multiple, as a `GradScaler` or ``(loss / 4).backward()`` makes, is replaced by the named number.
    """
    event = timeline.event(start)
    if not isinstance(event, BackwardStarted) or len(event.roots) != 1 or event.roots[0][0] not in timeline.nodes:
        return None
    root = event.roots[0]
    of_loss = _scaled_output(timeline, root)
    known = ((each, _number(timeline, each, start)) for each in (of_loss, root) if each is not None)
    return next(((node, value) for (node, _), value in known if value is not None), None)


def root_value(timeline: Timeline, start: int) -> float | None:
    """Return the value of the loss at which a pass began; see `loss_at`."""
    loss = loss_at(timeline, start)
    return loss[1] if loss is not None else None


def _number(timeline: Timeline, output: Edge, n: int) -> float | None:
    value = timeline.memory_value(*output, n)
    array = timeline.array(value) if value is not None and value.size == 1 else None
    return float(array.reshape(())) if array is not None and array.dtype.kind == "f" else None


def _scaled_output(timeline: Timeline, root: Edge) -> Edge | None:
    """Return the named output that an unnamed root is a multiple of, as in ``(loss / 4).backward()``; else None."""
    info = timeline.info(root[0])
    if info.name or info.op.base_name not in ("mul", "div"):
        return None
    tracked = [edge for edge in info.created.inputs if edge[0] and timeline.info(edge[0]).created.requires_grad]
    if len(tracked) != 1:
        return None
    source = timeline.info(tracked[0][0])
    return tracked[0] if source.name and source.created.kind == "op" else None


def loss_values(timeline: Timeline) -> Iterator[float]:
    """Yield the loss of each backward pass, in order, if it is one known number."""
    return (value for _, value in _losses_in_order(timeline))


def loss_values_by_name(timeline: Timeline) -> dict[str, list[float]]:
    """Return the known losses by name, see `passes_by_loss`; under the empty name if there is only one loss."""
    groups = passes_by_loss(timeline)
    rows = [
        [value for phase in one.phases if (value := root_value(timeline, phase.start)) is not None] for one in groups
    ]
    return {one.name if len(groups) > 1 else "": row for one, row in zip(groups, rows, strict=True)}


def _losses_in_order(timeline: Timeline) -> Iterator[tuple[int, float]]:
    """Yield the node and the number at which each backward pass began, in order, if it is one known number."""
    for phase in timeline.phases:
        loss = loss_at(timeline, phase.start)
        if loss is not None:
            yield loss


# The passes of each loss


@dataclass(frozen=True, slots=True)
class PassesOfLoss:
    """The backward passes of one loss of the program, in order.

    `name` is that of the loss, empty if it has several roots. Losses of the same name have their lines, or a number.
    """

    name: str
    phases: tuple[Phase, ...]


def passes_by_loss(timeline: Timeline, n: int = 0) -> tuple[PassesOfLoss, ...]:
    """Return the backward passes that began by moment `n` (0: the end), by loss, in the order of their first pass.

    Each call of ``backward()`` that comes again has a loss of its own. The passes of one call are of several losses if
    these have a few names, or parameters without a common one, each more than once: as in a loop over two models. In a
    program without a loop the losses differ in their names only.
    """
    return timeline.once(_passes_by_loss, n or len(timeline))


def _passes_by_loss(timeline: Timeline, n: int) -> tuple[PassesOfLoss, ...]:
    phases = [phase for phase in timeline.phases if phase.kind == "backward" and phase.start <= n]
    calls = _by_key(phases, lambda phase: _call(timeline, phase))
    if all(len(group) == 1 for group in calls):
        groups = _by_key(phases, lambda phase: _root_name(timeline, phase))
    else:
        named = (part for group in calls for part in _parts(group, lambda phase: _root_name(timeline, phase)))
        groups = [part for group in named for part in _by_parameters(timeline, group)]
    groups.sort(key=lambda group: group[0].start)
    names = _distinct_names(timeline, groups)
    return tuple(PassesOfLoss(name, tuple(group)) for name, group in zip(names, groups, strict=True))


def _by_key(phases: Sequence[Phase], key: Callable[[Phase], Hashable]) -> list[list[Phase]]:
    groups: dict[Hashable, list[Phase]] = {}
    for phase in phases:
        groups.setdefault(key(phase), []).append(phase)
    return [*groups.values()]


def _parts(phases: list[Phase], key: Callable[[Phase], Hashable]) -> list[list[Phase]]:
    """Return the passes by key, if there are a few keys and each comes again; else all together."""
    parts = _by_key(phases, key)
    return parts if len(parts) <= _MOST_NAMES and min(map(len, parts)) > 1 else [phases]


def _by_parameters(timeline: Timeline, phases: list[Phase]) -> list[list[Phase]]:
    """Return the passes of one call by the model that they reach, if there are a few models without a common leaf."""
    parts = _parts(phases, lambda phase: next(leaves_of_pass(timeline, phase), 0))
    reached = [{*leaves_of_pass(timeline, part[0])} for part in parts]
    return parts if sum(map(len, reached)) == len(set().union(*reached)) and all(reached) else [phases]


def leaves_of_pass(timeline: Timeline, phase: Phase) -> Iterator[int]:
    """Yield the leaves whose gradient a pass adds to, in order."""
    events = timeline.select((GradAccumulated,), phase.start, phase.end + 1)
    return (event.node for _, event in events if event.pass_nr == phase.pass_nr)


def _call(timeline: Timeline, phase: Phase) -> int:
    event = timeline.event(phase.start)
    return event.stack if isinstance(event, BackwardStarted) else 0


def _root_name(timeline: Timeline, phase: Phase) -> str:
    event = timeline.event(phase.start)
    if not isinstance(event, BackwardStarted) or len(event.roots) != 1 or event.roots[0][0] not in timeline.nodes:
        return ""
    root = event.roots[0]
    node, _ = _scaled_output(timeline, root) or root
    return timeline.info(node).title


def _distinct_names(timeline: Timeline, groups: Sequence[Sequence[Phase]]) -> list[str]:
    """Return a name for each loss; those with the same name have their lines, or a number if these are the same."""
    names = [_root_name(timeline, group[0]) for group in groups]
    stacks = [timeline.stack(_call(timeline, group[0])) for group in groups]
    lines = [
        f"{name or 'loss'}, line {stack[0].line}" if stack else name for name, stack in zip(names, stacks, strict=True)
    ]
    same = {name for name, count in Counter(names).items() if count > 1}
    same_lines = {line for line, count in Counter(lines).items() if count > 1}
    distinct, counts = list[str](), Counter[str]()
    for name, line in zip(names, lines, strict=True):
        counts[name] += 1
        numbered = f"{name or 'loss'} ({counts[name]})" if line in same_lines else line
        distinct.append(numbered if name in same else name)
    return distinct


def growing_losses(timeline: Timeline, n: int) -> Sequence[float]:
    """Return the values before event `n` of a loss that grew from pass to pass, in order; empty if none grew."""
    latest_first = sorted(passes_by_loss(timeline, n - 1), key=lambda one: -one.phases[-1].start) if n > 1 else ()
    return next((row for one in latest_first if (row := _growing_end(timeline, one.phases))), ())


def _growing_end(timeline: Timeline, phases: Sequence[Phase]) -> Sequence[float]:
    """Return the last values of a loss that grew from pass to pass, in order; empty if it did not grow."""
    row: list[float] = []
    for phase in reversed(phases):
        value = root_value(timeline, phase.start)
        if value is None or not math.isfinite(value):
            continue
        if row and value >= row[-1]:
            break
        row.append(value)
    row.reverse()
    return row if len(row) >= _GROWING and row[-1] > _TIMES * abs(row[0]) else ()


_DIVERGED = 1e3
"""How many times its first values a loss has if it has diverged."""


def divergence_bound(losses: Sequence[float]) -> float:
    """Return the size above which a loss has diverged, by the first two of its values."""
    return _DIVERGED * max(map(abs, losses[:2]))


def row_text(values: Sequence[float]) -> str:
    """Return the first three and the last two: ``0.2924, 857.3, 9.391e+07, …, 5.1e+28, 4.9e+33``."""
    numbers = [number(value) for value in values]
    return ", ".join(numbers if len(numbers) <= 6 else [*numbers[:3], "…", *numbers[-2:]])


# Loss scaling: the root of a pass is the loss times a large number, so that small gradients stay above 0 in float16


def loss_scale(timeline: Timeline, pass_nr: int) -> float:
    """Return the factor by which a loss was multiplied before a pass, as by a ``GradScaler``; 1 without one."""
    start = pass_started(timeline, pass_nr)
    return factor_of_loss(timeline, start.roots[0][0]) if start is not None and len(start.roots) == 1 else 1.0


def factor_of_loss(timeline: Timeline, root: int) -> float:
    """Return the large untracked number by which a root is a multiple of a loss; 1 without one."""
    info = timeline.info(root) if root in timeline.nodes else None
    if info is None or info.op.base_name != "mul":
        return 1.0
    factors = [timeline.info(source) for source, _ in info.created.inputs if source]
    values = [one.created.first_value for one in factors if not one.created.requires_grad]
    known = (value.statistics() for value in values if value is not None and value.size == 1)
    scale = max((stats.max for stats in known if stats is not None), default=1.0)
    return scale if scale >= _LEAST_SCALE else 1.0


_LEAST_SCALE = 8
"""A smaller factor may be a weight of the loss."""
