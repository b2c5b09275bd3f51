"""One moment of a trace."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from gviz.events import Event, Failed, GradFlowed
from gviz.trace.graph_state import NodeState, Phase
from gviz.trace.index.node_state import NodeStates


@dataclass(frozen=True, slots=True)
class Moment:
    """The world right after event `n` (0: before anything).

    `node` is the one the event concerns (at the end of a pass the one that failed); `pass_nr` the pass that runs,
    `step` the node whose backward rule runs in it, `scope` the path of the module call in progress; 0 and empty where
    there is none. They are those of the thread of the event, which is `thread`, 0 if there is but one. `failed` is the
    program's failure if it has happened by now.
    """

    n: int
    event: Event | None
    phase: Phase | None
    node: int
    pass_nr: int
    step: int
    scope: str
    thread: int
    failed: Failed | None
    _running: tuple[int, ...] = field(repr=False)
    _states: NodeStates = field(repr=False, compare=False)
    _known: dict[int, NodeState | None] = field(repr=False, compare=False, default_factory=dict)

    @property
    def actor(self) -> int:
        """The node that acts: the one that sends a gradient, else that of the event, else the one whose rule runs."""
        if isinstance(self.event, GradFlowed):
            return self.event.source
        return self.node or self.step

    def state(self, node: int) -> NodeState | None:
        """The node now, or None if it is not born yet."""
        if node not in self._known:
            self.states([node])
        return self._known[node]

    def states(self, nodes: Sequence[int]) -> list[NodeState | None]:
        """Many nodes now; much cheaper than one by one."""
        missing = [node for node in nodes if node not in self._known]
        if missing:
            self._known.update(zip(missing, self._states.many(missing, self.n, self._running), strict=True))
        return [self._known[node] for node in nodes]

    def follow(self, before: Moment, changed: Collection[int]) -> None:
        """Take over what is known of the nodes at the moment before, but of those that this event may have `changed`.

        Who walks from event to event then asks for a node only where something has happened to it.
        """
        self._known.update(before._known)
        for node in changed:
            self._known.pop(node, None)
