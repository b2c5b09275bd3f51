"""The measured times of module calls, backward rules and optimizers, in iterations that record nothing else.

Numbers from a trace are not trusted: an iteration whose calls or times cannot be is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST_TEXT = 1000


@dataclass(frozen=True, slots=True)
class TimedCall:
    """A module call of a timed iteration: `parent` is the index of the call that contains it (-1: none).

    `forward` and `backward` are in nanoseconds, without the calls that it contains.
    """

    path: str
    kind: str
    parent: int
    forward: int
    backward: int


@dataclass(frozen=True, slots=True)
class TimedIteration:
    """An iteration in which module calls were timed and nothing else was recorded. All times are in nanoseconds.

    `outside` is the time of backward rules that belong to no module. `clock` is ``cpu`` or ``cuda``.
    """

    iteration: int
    clock: str
    total: int
    calls: tuple[TimedCall, ...]
    outside: int
    optimizer: int


def timed_iteration(iteration: int, data: Mapping[str, Any]) -> TimedIteration:
    """Return a timed iteration from its stored form.

    Raises ValueError if a call comes before the call that contains it, or if a time does not fit into 64 bits.
    """
    calls = [TimedCall(str(path)[:_LONGEST_TEXT], str(kind)[:_LONGEST_TEXT], int(parent), int(forward), int(backward))
             for path, kind, parent, forward, backward in data["calls"]]  # fmt: skip
    if any(not -1 <= call.parent < at for at, call in enumerate(calls)):
        raise ValueError("a call is inside a later one")
    total, outside, optimizer = (int(data[name]) for name in ("total", "outside", "optimizer"))
    if any(abs(time) >> 63 for call in calls for time in (call.forward, call.backward)):
        raise ValueError("a call took too long")
    if any(abs(time) >> 63 for time in (total, outside, optimizer)):
        raise ValueError("an iteration took too long")
    return TimedIteration(iteration, str(data["clock"])[:_LONGEST_TEXT], total, tuple(calls), outside, optimizer)
