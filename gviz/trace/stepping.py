"""The moves of one command from a moment to another: step, next, finish, phase, continue, and their reverse.

A step goes one event forward, and skips the events of `gviz.events.SILENT`, which show nothing. Each other command goes
to the next of its moments: a whole node, the end of a call or phase, a stop. `stops` are those where every run stops; a
front end adds breakpoints (`gviz.tui.stop_search`). A running program stops at the same moments (`gviz.live.gate`).

At both ends of a recording, a move returns the moment it got; that is not an error.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from gviz import events as e
from gviz.errors import GvizError
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped

Move = Callable[[Timeline, int], int]


def no_event(timeline: Timeline, text: str) -> GvizError:
    """Return the error for an event number that does not exist."""
    return GvizError(f"there is no event {clipped(text, 20)}", hint=f"events go from 0 to {len(timeline)}", exit_code=2)


def start(timeline: Timeline, n: int) -> int:
    """Move before the first event."""
    return 0


def end(timeline: Timeline, n: int) -> int:
    """Move after the last event."""
    return len(timeline)


def step(timeline: Timeline, n: int) -> int:
    """Move one event forward, past those of `gviz.events.SILENT`."""
    n += 1
    while n < len(timeline) and isinstance(timeline.event(n), e.SILENT):
        n += 1
    return min(n, len(timeline))


def reverse_step(timeline: Timeline, n: int) -> int:
    """Move one event back, past those of `gviz.events.SILENT`."""
    n -= 1
    while n > 0 and isinstance(timeline.event(n), e.SILENT):
        n -= 1
    return max(n, 0)


def next_node(timeline: Timeline, n: int) -> int:
    """Move one whole node forward: its creation, its backward step with all contributions, or a leaf's gradient.

    The end of an optimizer step counts too.
    """
    return _after(timeline.contexts.node_ends, n, len(timeline))


def reverse_next_node(timeline: Timeline, n: int) -> int:
    """Move one whole node back."""
    return _before(timeline.contexts.node_ends, n, 0)


def finish(timeline: Timeline, n: int) -> int:
    """Move to the end of the current module call, otherwise of the phase; from there to the end of the next phase."""
    _, _, left = timeline.contexts.scope_at(n)
    if left > n:
        return left
    return _after(sorted(phase.end for phase in timeline.phases), n, len(timeline))


def reverse_finish(timeline: Timeline, n: int) -> int:
    """Move to the start of the current module call, otherwise of the phase; from there to the start before that."""
    entered = timeline.contexts.scope_at(n)[1]
    if entered == n:
        entered = timeline.contexts.scope_at(n - 1)[1]
    return entered or reverse_phase(timeline, n)


def phase(timeline: Timeline, n: int) -> int:
    """Move to the start of the next phase."""
    return _after([phase.start for phase in timeline.phases], n, len(timeline))


def reverse_phase(timeline: Timeline, n: int) -> int:
    """Move to the start of the phase; from there to the start of the previous one."""
    return _before([phase.start for phase in timeline.phases], n, 0)


def continue_(timeline: Timeline, n: int) -> int:
    """Move to the next stop: an error, the first nan or infinity, or a mark; otherwise to the end."""
    return _after(stops(timeline), n, len(timeline))


def reverse_continue(timeline: Timeline, n: int) -> int:
    """Move to the previous stop, otherwise to the start."""
    return _before(stops(timeline), n, 0)


def to_node(timeline: Timeline, n: int, node: int) -> int:
    """Move to the next event of the node; stays if there is none."""
    return _after(timeline.events_of(node), n, n)


def reverse_to_node(timeline: Timeline, n: int, node: int) -> int:
    """Move to the previous event of the node; stays if there is none."""
    return _before(timeline.events_of(node), n, n)


def stops(timeline: Timeline) -> list[int]:
    """Return the moments at which `continue_` stops."""
    seqs = {*timeline.errors, *(seq for seq, _ in timeline.marks), timeline.error_index.first_bad()}
    return sorted(seqs - {0})


def _after(moments: Sequence[int], n: int, otherwise: int) -> int:
    at = bisect_right(moments, n)
    return moments[at] if at < len(moments) else otherwise


def _before(moments: Sequence[int], n: int, otherwise: int) -> int:
    at = bisect_left(moments, n)
    return moments[at - 1] if at else otherwise
