"""The moments at which an iteration is worth a look: what it has made is there, and not yet used or taken down."""

from __future__ import annotations

from gviz import events as e
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline


def through(timeline: Timeline, iteration: Iteration) -> int:
    """Where an iteration is through: its end or, where an optimizer used the gradients, before that.

    Then the weights are those that gave these results, and their gradients.
    """
    return _before_step(timeline, iteration) or end_of(timeline, iteration)


def end_of(timeline: Timeline, iteration: Iteration) -> int:
    """The end of an iteration, before the program took its graph down."""
    n = iteration.end
    while n > max(iteration.start, 1) and isinstance(timeline.event(n), e.NodeFreed | e.Printed | e.ScopeLeft):
        n -= 1
    return n


def _before_step(timeline: Timeline, iteration: Iteration) -> int:
    """The moment before an optimizer used what the last backward pass of an iteration left; 0 if none did."""
    passes = timeline.pass_ends(iteration)
    after = timeline.select((e.OptimizerStarted,), passes[-1], iteration.end + 1) if passes else iter(())
    return next((n - 1 for n, _ in after), 0)
