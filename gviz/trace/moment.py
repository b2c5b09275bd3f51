"""One moment of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gviz.events import Event, Failed, GradFlowed
from gviz.trace.node_state import NodeStates
from gviz.trace.state import NodeState, Phase


@dataclass(frozen=True, slots=True)
class Moment:
    """The world right after event `n` (0: before anything).

    `node` is the one the event concerns (at the end of a pass the one that failed); `pass_nr` the pass that runs,
    `step` the node whose backward rule runs in it, `scope` the path of the module call in progress; 0 and empty where
    there is none. `failed` is the program's failure if it has happened by now.
    """

    n: int
    event: Event | None
    phase: Phase | None
    node: int
    pass_nr: int
    step: int
    scope: str
    failed: Failed | None
    _running: tuple[int, ...] = field(repr=False)
    _states: NodeStates = field(repr=False, compare=False)

    @property
    def actor(self) -> int:
        """The node that acts: the one that sends a gradient, else that of the event, else the one whose rule runs."""
        if isinstance(self.event, GradFlowed):
            return self.event.source
        return self.node or self.step

    def state(self, node: int) -> NodeState | None:
        """The node now, or None if it is not born yet."""
        return self.states([node])[0]

    def states(self, nodes: Sequence[int]) -> list[NodeState | None]:
        """Many nodes now; much cheaper than one by one."""
        return self._states.many(nodes, self.n, self._running)
