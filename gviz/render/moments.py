"""Which moments there is something to draw at, and which is worth a picture if none is asked for."""

from __future__ import annotations

from gviz.errors import GvizError
from gviz.trace.navigation import end_of, no_event, through
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline


def check_moment(timeline: Timeline, n: int) -> None:
    """Raise `GvizError` if there is nothing to draw at a moment."""
    if not 0 <= n <= len(timeline):
        raise no_event(timeline, str(n))
    if not timeline.nodes:
        raise GvizError("this trace holds no graph", why="the program made no tensors", exit_code=2)


def first_moment(timeline: Timeline) -> int:
    """Where stepping begins: the first event."""
    return min(1, len(timeline))


def last_moment(timeline: Timeline) -> int:
    """The moment worth a picture if none is asked for: the end, or that of what a program did before it evaluates.

    An evaluation is what autograd does not follow, at the end of a program of which it has followed something. Where an
    optimizer used the gradients, it is before that: with the weights that gave these results, and their gradients.
    """
    if timeline.failures:
        return end_of(timeline, timeline.iterations[-1])
    return through(timeline, _last_followed(timeline))


def _last_followed(timeline: Timeline) -> Iteration:
    """The last iteration with a result that requires a gradient; the last one if there is none or no pass at all."""
    passes = any(phase.kind == "backward" for phase in timeline.phases)
    for iteration in reversed(timeline.iterations) if passes else ():
        made = timeline.nodes.all_created(timeline.nodes.of(iteration))
        if any(created.kind == "op" and created.requires_grad for _, created in made):
            return iteration
    return timeline.iterations[-1]
