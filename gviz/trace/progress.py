"""What one backward pass has done at one node so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import eq
from typing import overload

from gviz import events as e
from gviz.trace.index.references import References
from gviz.trace.log import EventLog, damaged, expect
from gviz.trace.passes import Reach, replacement, seed_of
from gviz.trace.state import Contribution, Step
from gviz.values import Array, Value


class Arrivals(Sequence[Contribution]):
    """The contributions that have arrived at one output, each read from the log when somebody looks at it."""

    __slots__ = ("_edge", "_events", "_seeds", "_seqs")

    def __init__(self, edge: e.Edge, seeds: Sequence[Contribution], seqs: Array, events: References) -> None:
        self._edge = edge
        self._seeds = seeds
        self._seqs = seqs
        self._events = events

    def __len__(self) -> int:
        return len(self._seeds) + len(self._seqs)

    @overload
    def __getitem__(self, index: int) -> Contribution: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Contribution, ...]: ...
    def __getitem__(self, index: int | slice) -> Contribution | tuple[Contribution, ...]:
        places = range(len(self))[index]
        return self._at(places) if isinstance(places, int) else tuple(map(self._at, places))

    def __iter__(self) -> Iterator[Contribution]:
        return map(self._at, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == len(self) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # equal to a tuple, but not made to be a key

    def total(self) -> Value:
        """The sum after the last of the `GradFlowed`, of which there must be one."""
        flow = self._flow(int(self._seqs[-1]))
        return flow.part if flow.total is None else flow.total

    def _at(self, place: int) -> Contribution:
        if place < len(self._seeds):
            return self._seeds[place]
        seq = int(self._seqs[place - len(self._seeds)])
        flow = self._flow(seq)
        return Contribution(flow.source, flow.slot, flow.part, seq)

    def _flow(self, seq: int) -> e.GradFlowed:
        flow = expect(self._events, seq, e.GradFlowed)
        if (flow.node, flow.output_nr) != self._edge:
            raise damaged(f"event {seq} is not about output {self._edge[1]} of node {self._edge[0]}, as its index says")
        return flow


class Progress:
    """What one pass, begun by event `start`, has done at one node so far, but for the contributions that flowed there.

    `given` is what a seed or a hook has last put at an output, and by which event; `reach_of` finds what a pass covers,
    which takes long and is not asked of a pass that has done with the node.
    """

    __slots__ = ("_reach_of", "complete", "given", "pass_nr", "seeds", "start", "step")

    def __init__(self, pass_nr: int, reach_of: Callable[[int], Reach], start: int) -> None:
        self.pass_nr = pass_nr
        self._reach_of = reach_of
        self.start = start
        self.seeds: dict[int, list[Contribution]] = {}
        self.given: dict[int, tuple[int, Value | None]] = {}
        self.step: Step = "pending"
        self.complete = False

    def expected(self, output: e.Edge) -> int:
        """How many contributions will have arrived at an output of the node when it can run; 0 once it has run."""
        return 0 if self.complete else self._reach_of(self.pass_nr).expected.get(output, 0)

    def happen(self, seq: int, node: int, event: e.Event, log: EventLog) -> None:
        """Take in one event at the node; those of other passes change nothing."""
        if pass_of(event) != self.pass_nr:
            return
        match event:
            case e.BackwardStarted():
                for slot, (root, seed) in enumerate(zip(event.roots, event.seeds, strict=False)):
                    if root[0] == node:
                        self.seeds.setdefault(root[1], []).append(Contribution(0, slot, seed, seq))
                        self.given[root[1]] = seq, seed_of(event, root, log.array)
            case e.HookRan(output_nr=output_nr):
                given = replacement(event)
                if given is not None:
                    self.given[output_nr] = seq, given
            case e.StepStarted():
                self.step, self.complete = "running", True
            case e.StepFinished() | e.GradAccumulated() | e.GradCaptured():
                self.step, self.complete = "done", True


def pass_of(event: e.Event) -> int:
    """The pass an event belongs to, 0 for none."""
    return int(getattr(event, "pass_nr", 0))
