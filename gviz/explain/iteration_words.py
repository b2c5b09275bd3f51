"""Words for iterations, phases and steps: ``iteration 7`` of the whole run, ``backward pass 2``, ``from iteration 2``.

Graphs that no loop makes are called graphs. If only some iterations were recorded, each has the number that the program
would give it, and not its place in the recording.
"""

from __future__ import annotations

from itertools import pairwise

from gviz.events import OptimizerStarted, OptimizerStepped
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Moment, Timeline

_COMPARED = 4
_LOOKED_AT = 100
"""The number of iterations, and of nodes in each, that are examined to see whether a program repeats itself."""


def phase_words(timeline: Timeline, moment: Moment, *, numbered: bool = True) -> str:
    """Return the phase, with the number of its backward pass from the second on: ``forward``, ``backward pass 2``.

    With `numbered=False` there is no number, for a caller that shows the iteration and has only one pass. If several
    threads were recorded, the thread of the moment comes first: ``thread 2, backward pass 2``.
    """
    thread = f"thread {moment.thread}" if moment.thread else ""
    if moment.phase is None:
        return thread
    pass_nr = moment.pass_nr or moment.phase.pass_nr
    numbered = numbered and pass_nr > 1
    phase = f"{moment.phase.kind} pass {pass_nr}" if numbered else moment.phase.kind
    return f"{thread}, {phase}" if thread else phase


def step_kind(timeline: Timeline, seq: int) -> str:
    """Return the class of the optimizer of a step event."""
    event = timeline.event(seq)
    return event.kind if isinstance(event, OptimizerStarted | OptimizerStepped) else "optimizer"


def iteration_called(timeline: Timeline) -> str:
    """Return the word for one graph of the program: ``iteration`` if a loop makes them, else ``graph``."""
    if timeline.recorded_iterations is not None and timeline.recorded_iterations.paused:
        return "iteration"  # the recorder has counted them, and the trace may have only the first
    first = timeline.iterations[:_COMPARED]
    return "iteration" if timeline.once(_run_again, first[-1].end) else "graph"


def finished_unrecorded(timeline: Timeline) -> int:
    """Return the last iteration that the program has finished if that was not recorded, otherwise 0."""
    recorded, count = timeline.recorded_iterations, timeline.iteration_count
    is_ahead = recorded is not None and recorded.paused and count > timeline.iterations[-1].number
    return count if is_ahead else 0


def _run_again(timeline: Timeline, end: int) -> bool:
    """Return whether an early iteration ran a place of the one before.

    It is also true for several iterations without known places.
    """
    seen: set[int] = set()
    ran: list[set[Frame]] = []
    for iteration in timeline.iterations[:_COMPARED]:
        new = [node for node in timeline.nodes.of(iteration) if node not in seen]
        ran.append({info.frames[0] for info in map(timeline.info, new[-_LOOKED_AT:]) if info.frames})
        seen |= {*new}
    return any(before & after for before, after in pairwise(ran)) or (len(ran) > 1 and not any(ran))


def iteration_suffix(timeline: Timeline, info: NodeInfo) -> str:
    """Return in which iteration a node was made, or that it was before the loop: ``from iteration 2``."""
    if info.iteration == 0 and info.born < timeline.once(_loop_began, 0):
        return "made before the loop"
    return f"from {iteration_called(timeline)} {timeline.iterations[info.iteration].number:,}"


def _loop_began(timeline: Timeline, _: int) -> int:
    """Return the event of the first node at a place that the second iteration runs again; 0 if none repeats."""
    if timeline.dropped.events or len(timeline.iterations) == 1:
        return 0
    first, second = timeline.iterations[:2]
    new = [node for node in timeline.nodes.of(second) if timeline.nodes.born(node) >= second.start]
    stacks = {info.created.stack for info in map(timeline.info, new[:_LOOKED_AT]) if info.frames}
    infos = map(timeline.info, timeline.nodes.of(first))
    return next((info.born for info in infos if info.created.stack in stacks), 0)
