"""Ways through time: from one moment of a timeline to another. Both ends are normal stops, where ``n`` stays."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from gviz.errors import GvizError
from gviz.plain_text import clipped
from gviz.trace.timeline import Timeline

Move = Callable[[Timeline, int], int]


def no_event(timeline: Timeline, said: str) -> GvizError:
    """What to raise for an event number that there is not."""
    return GvizError(f"there is no event {clipped(said, 20)}", hint=f"events go from 0 to {len(timeline)}", exit_code=2)


def start(timeline: Timeline, n: int) -> int:
    """Before anything."""
    return 0


def end(timeline: Timeline, n: int) -> int:
    """After everything."""
    return len(timeline)


def step(timeline: Timeline, n: int) -> int:
    """One event on."""
    return min(n + 1, len(timeline))


def reverse_step(timeline: Timeline, n: int) -> int:
    """One event back."""
    return max(n - 1, 0)


def next_node(timeline: Timeline, n: int) -> int:
    """One whole node on: its creation, its backward step with all contributions, a leaf's gradient; or the end of an
    optimizer's step."""
    return _after(timeline.contexts.node_ends, n, len(timeline))


def reverse_next_node(timeline: Timeline, n: int) -> int:
    """One whole node back."""
    return _before(timeline.contexts.node_ends, n, 0)


def finish(timeline: Timeline, n: int) -> int:
    """To the end of the module call in progress, else of the phase; from there to the end of the next phase."""
    _, _, left = timeline.contexts.scope_at(n)
    if left > n:
        return left
    return _after(sorted(phase.end for phase in timeline.phases), n, len(timeline))


def reverse_finish(timeline: Timeline, n: int) -> int:
    """To the start of the module call in progress, else of the phase; from there to the start of the one before."""
    entered = timeline.contexts.scope_at(n)[1]
    if entered == n:
        entered = timeline.contexts.scope_at(n - 1)[1]
    return entered or reverse_phase(timeline, n)


def phase(timeline: Timeline, n: int) -> int:
    """To the start of the next phase."""
    return _after([phase.start for phase in timeline.phases], n, len(timeline))


def reverse_phase(timeline: Timeline, n: int) -> int:
    """To the start of the phase, or from there to the start of the one before."""
    return _before([phase.start for phase in timeline.phases], n, 0)


def continue_(timeline: Timeline, n: int) -> int:
    """To the next stop: an error, the first nan or infinity, a mark, else the end."""
    return _after(stops(timeline), n, len(timeline))


def reverse_continue(timeline: Timeline, n: int) -> int:
    """To the stop before, else the start."""
    return _before(stops(timeline), n, 0)


def to_node(timeline: Timeline, n: int, node: int) -> int:
    """To the next event that concerns the node; stays if there is none."""
    return _after(timeline.events_of(node), n, n)


def reverse_to_node(timeline: Timeline, n: int, node: int) -> int:
    """To the event before that concerns the node; stays if there is none."""
    return _before(timeline.events_of(node), n, n)


def stops(timeline: Timeline) -> list[int]:
    """The moments at which `continue_` stops."""
    found = {*timeline.errors, *(seq for seq, _ in timeline.marks), timeline.troubles.first_bad()}
    return sorted(found - {0})


def _after(moments: Sequence[int], n: int, otherwise: int) -> int:
    at = bisect_right(moments, n)
    return moments[at] if at < len(moments) else otherwise


def _before(moments: Sequence[int], n: int, otherwise: int) -> int:
    at = bisect_left(moments, n)
    return moments[at - 1] if at else otherwise
