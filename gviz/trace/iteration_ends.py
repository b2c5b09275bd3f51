"""The moments at which an iteration is worth a look: what it has made is there, and not yet used or taken down."""

from __future__ import annotations

from gviz import events as e
from gviz.trace.state import Iteration
from gviz.trace.timeline import Timeline


def through(timeline: Timeline, iteration: Iteration) -> int:
    """Where an iteration is through: its end, before what it evaluates after its passes.

    Where an optimizer used the gradients, it is before that: with the weights that gave these results, and their
    gradients.
    """
    return _before_step(timeline, iteration) or end_of(timeline, iteration, _evaluation(timeline, iteration) - 1)


def end_of(timeline: Timeline, iteration: Iteration, n: int = -1) -> int:
    """The end of an iteration, or moment `n` of it, before the program took its graph down."""
    n = iteration.end if n < 0 else n
    while n > max(iteration.start, 1) and isinstance(timeline.event(n), e.NodeFreed | e.Printed | e.ScopeLeft):
        n -= 1
    return n


def _before_step(timeline: Timeline, iteration: Iteration) -> int:
    """The moment before an optimizer used what the last backward pass of an iteration left; 0 if none did."""
    passes = timeline.pass_ends(iteration)
    after = timeline.select((e.OptimizerStarted,), passes[-1], iteration.end + 1) if passes else iter(())
    return next((n - 1 for n, _ in after), 0)


def _evaluation(timeline: Timeline, iteration: Iteration) -> int:
    """With which event an iteration begins to evaluate, after its passes; 0 if it does not.

    It begins with data or the call of a module, and changes nothing that was there before. What autograd follows is of
    it unless the last pass made a graph itself, which goes on.
    """
    passes, begun = timeline.pass_ends(iteration), 0
    begins = [event.create_graph for _, event in timeline.select((e.BackwardStarted,), iteration.start, iteration.end)]
    made, memory = set[int](), set[int]()  # since then
    deciding = (e.NodeCreated, e.ScopeEntered, e.StorageWritten, e.DataSet)
    for n, event in timeline.select(deciding, passes[-1], iteration.end + 1) if passes else iter(()):
        match event:
            case e.NodeCreated(requires_grad=True, untracked="") if begins[-1:] != [False]:
                begun = 0
            case e.NodeCreated(kind="op", requires_grad=True, untracked=""):
                return begun or n
            case e.StorageWritten(storage=storage) if storage not in memory:
                begun = 0
            case e.DataSet(node=node) if node not in made:
                begun = 0
            case e.NodeCreated(kind="constant", attrs=()) | e.ScopeEntered() if not begun:
                begun = n
                made.clear()
                memory.clear()
        if isinstance(event, e.NodeCreated):
            made.add(event.node)
            memory.update(each.storage for each in event.outputs if not (each.version or each.view_of))
    return begun
