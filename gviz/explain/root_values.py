"""What the backward passes of a recording began at: the losses of its iterations, in a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gviz.events import BackwardStarted, Edge
from gviz.numbers import number
from gviz.trace.timeline import Timeline

_MOST_NAMES = 4
_GROWING, _TIMES = 3, 10.0
"""So many numbers, each larger than the one before and the last so many times the first, are no chance."""


def loss_at(timeline: Timeline, start: int) -> tuple[int, float] | None:
    """The node of the one number that the pass of event `start` began at, and it; None if it is not one, or not known.

    Of a multiple without a name, as a `GradScaler` makes it, or ``(loss / 4).backward()``, the number that has one.
    """
    event = timeline.event(start)
    if not isinstance(event, BackwardStarted) or len(event.roots) != 1 or event.roots[0][0] not in timeline.nodes:
        return None
    root = event.roots[0]
    of_loss = _multiplied(timeline, root)
    known = ((each, _number(timeline, each, start)) for each in (of_loss, root) if each is not None)
    return next(((node, value) for (node, _), value in known if value is not None), None)


def root_value(timeline: Timeline, start: int) -> float | None:
    """The number alone."""
    found = loss_at(timeline, start)
    return found[1] if found is not None else None


def _number(timeline: Timeline, output: Edge, n: int) -> float | None:
    value = timeline.held(*output, n)
    array = timeline.array(value) if value is not None and value.size == 1 else None
    return float(array.reshape(())) if array is not None and array.dtype.kind == "f" else None


def _multiplied(timeline: Timeline, root: Edge) -> Edge | None:
    """The output with a name of which a root without one is a multiple; None if there is none."""
    info = timeline.info(root[0])
    if info.name or info.op.base_name not in ("mul", "div"):
        return None
    tracked = [edge for edge in info.created.inputs if edge[0] and timeline.info(edge[0]).created.requires_grad]
    if len(tracked) != 1:
        return None
    source = timeline.info(tracked[0][0])
    return tracked[0] if source.name and source.created.kind == "op" else None


def losses(timeline: Timeline) -> Iterator[float]:
    """The loss that each backward pass began at, in order, as far as it was one number that is known."""
    return (value for _, value in _begun_at(timeline))


def losses_by_name(timeline: Timeline) -> dict[str, list[float]]:
    """The same by the names of what the passes began at, where some of a few names come again; else all under none."""
    found: dict[str, list[float]] = {}
    for root, value in _begun_at(timeline):
        found.setdefault(timeline.info(root).title, []).append(value)
    come_again = any(len(row) > 1 for row in found.values())
    return found if come_again and 1 < len(found) <= _MOST_NAMES else {"": [*losses(timeline)]}


def _begun_at(timeline: Timeline) -> Iterator[tuple[int, float]]:
    """The node that each backward pass began at and its number, in order, where it was one that is known."""
    for phase in timeline.phases:
        found = loss_at(timeline, phase.start)
        if found is not None:
            yield found


def grown_until(timeline: Timeline, n: int) -> Sequence[float]:
    """The losses up to event `n` if they have grown from pass to pass, the first from where they did; else none."""
    row: list[float] = []
    for value in _finite_before(timeline, n):
        if row and value >= row[-1]:
            break
        row.append(value)
    row.reverse()
    return row if len(row) >= _GROWING and row[-1] > _TIMES * abs(row[0]) else ()


def in_a_row(values: Sequence[float]) -> str:
    """The first three and the last two: ``0.2924, 857.3, 9.391e+07, …, 5.1e+28, 4.9e+33``."""
    told = [number(value) for value in values]
    return ", ".join(told if len(told) <= 6 else [*told[:3], "…", *told[-2:]])


def _finite_before(timeline: Timeline, n: int) -> Iterator[float]:
    """The finite losses before event `n`, the last first."""
    for phase in reversed(timeline.phases):
        value = root_value(timeline, phase.start) if phase.kind == "backward" and phase.start < n else None
        if value is not None and math.isfinite(value):
            yield value
