"""Writes down what the branch does, in the recording's terms: its lines of source, its module calls, its names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from gviz import events as e
from gviz.emit import Channel
from gviz.engine import announce
from gviz.engine.tensor import Tensor
from gviz.trace.log import MemoryLog
from gviz.trace.timeline import Timeline

EVERYTHING = 1 << 62
"""Bytes up to which values are kept whole."""


class Retelling:
    """The log of a branch, and the number in it of each node of the recording."""

    def __init__(self, timeline: Timeline) -> None:
        self.log = MemoryLog()
        self.numbers: dict[int, int] = {}
        self.made: list[e.NodeCreated] = []
        """What the branch has made, in order."""
        self.channel = Channel(self.hear, limit=EVERYTHING)
        self._timeline = timeline
        self._stacks: set[int] = set()
        self._paths: set[str] = set()
        self._place = (0, 0)

    def hear(self, event: e.Event) -> None:
        """Listen to the engine."""
        match event:
            case e.StackSeen() | e.SourceSeen():
                return  # of whoever runs the branch
            case e.NodeCreated():
                event = msgspec.structs.replace(event, stack=self._place[0], scope=self._place[1])
                self.made.append(event)
            case e.BackwardStarted():
                event = msgspec.structs.replace(event, stack=self._place[0])
            case e.GradSet() if event.stack:
                event = msgspec.structs.replace(event, stack=self._place[0])
        self.log.append(event)

    @contextmanager
    def as_node(self, recorded: e.NodeCreated) -> Iterator[None]:
        """What happens in this block happened where `recorded` did."""
        with self.at(recorded.stack, recorded.scope):
            yield

    @contextmanager
    def at(self, stack: int, scope: int = 0) -> Iterator[None]:
        """What happens in this block happened in this call stack of the recording."""
        self._tell(stack)
        before, self._place = self._place, (stack, scope)
        try:
            yield
        finally:
            self._place = before

    def number(self, node: int, tensor: Tensor | None) -> None:
        """A node of the recording is the branch's node of this leaf or constant, which is announced now."""
        if tensor is not None:
            self.numbers[node] = announce.seen(self.channel, tensor).node

    def number_last(self, node: int) -> None:
        """A node of the recording is the operation that the branch ran last; a ``.grad`` it wrote to may come after."""
        self.numbers[node] = next(made.node for made in reversed(self.made) if made.kind == "op")

    def repeat(self, event: e.Event) -> None:
        """Say an event of the recording again, about the branch's nodes."""
        match event:
            case e.Named(node=node) | e.Returned(node=node) if node not in self.numbers:
                return
            case e.Named(node=node) | e.Returned(node=node):
                event = msgspec.structs.replace(event, node=self.numbers[node])
            case e.OptimizerStarted(stack=stack):
                self._tell(stack)
            case e.OptimizerStepped(parameters=parameters, stack=stack, skipped=skipped):
                self._tell(stack)
                known, without = (
                    tuple([self.numbers[node] for node in nodes if node in self.numbers])
                    for nodes in (parameters, skipped)
                )
                event = msgspec.structs.replace(event, parameters=known, skipped=without)
        self.log.append(event)

    def _tell(self, stack: int) -> None:
        """Say a call stack, and the text of its files, before something refers to it."""
        if not stack or stack in self._stacks:
            return
        self._stacks.add(stack)
        frames = self._timeline.stack(stack)
        for path in {frame.path for frame in frames} - self._paths:
            self._paths.add(path)
            self.log.append(e.SourceSeen(path, self._timeline.source(path)))
        self.log.append(e.StackSeen(stack, frames))
