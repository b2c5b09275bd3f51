"""One moment of a trace."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from gviz.events import Event, Failed, GradFlowed
from gviz.trace.graph_state import NodeState, Phase
from gviz.trace.index.node_state import NodeStates


@dataclass(frozen=True, slots=True)
class Moment:
    """The state right after event `n` (0: before all events).

    `node` is the node of the event (at the end of a failed pass, the node that failed). `pass_nr` is the running pass,
    `step` the node whose backward rule runs in it, and `scope` the path of the current module call; 0 and empty where
    there is none. They refer to the thread of the event, which is `thread`, 0 if there is only one. `failed` is the
    failure of the program if it has happened by then.
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
        """The acting node: the one that sends a gradient, otherwise the event's, otherwise the one whose rule runs."""
        if isinstance(self.event, GradFlowed):
            return self.event.source
        return self.node or self.step

    def state(self, node: int) -> NodeState | None:
        """Return the state of a node, or None if it is not created yet."""
        if node not in self._known:
            self.states([node])
        return self._known[node]

    def states(self, nodes: Sequence[int]) -> list[NodeState | None]:
        """Return the states of several nodes; much cheaper than one by one."""
        missing = [node for node in nodes if node not in self._known]
        if missing:
            self._known.update(zip(missing, self._states.many(missing, self.n, self._running), strict=True))
        return [self._known[node] for node in nodes]

    def follow(self, before: Moment, changed: Collection[int]) -> None:
        """Take over the known states of the previous moment, except of nodes that this event may have `changed`.

        A walk from event to event then computes a state only where something has happened to the node.
        """
        self._known.update(before._known)
        for node in changed:
            self._known.pop(node, None)
