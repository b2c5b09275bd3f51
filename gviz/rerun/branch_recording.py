"""The log of a branch, with the recording's source lines, module calls and names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from gviz import events as e
from gviz.emit import Channel
from gviz.engine import instrumentation
from gviz.engine.tensor import Tensor
from gviz.rerun.branch import without_elements
from gviz.trace.event_log import MemoryLog
from gviz.trace.timeline import Timeline
from gviz.values.value import Value

EVERYTHING = 1 << 62
"""Values up to this many bytes are kept whole."""


class BranchLog:
    """The log of a branch, and the branch's number of each node of the recording."""

    def __init__(self, timeline: Timeline) -> None:
        self.events = MemoryLog()
        self.numbers: dict[int, int] = {}
        self.creations: list[e.NodeCreated] = []
        """The nodes that the branch has created, in order."""
        self.channel = Channel(self.log_event, limit=EVERYTHING)
        self._timeline = timeline
        self._stacks: set[int] = set()
        self._paths: set[str] = set()
        self._place = (0, 0)
        self._blank: set[int] = set()
        self._lost: set[int] = set()
        self._reasons: set[tuple[str, bool]] = set()

    def log_event(self, event: e.Event) -> None:
        """Log an event of the engine, with the call site that the recording has for it."""
        match event:
            case e.StackSeen() | e.SourceSeen():
                return  # of the code that runs the branch
            case e.NodeCreated():
                event = msgspec.structs.replace(event, stack=self._place[0], scope=self._place[1])
                self.creations.append(event)
            case e.BackwardStarted():
                event = msgspec.structs.replace(event, stack=self._place[0])
            case e.GradSet() if event.stack:
                event = msgspec.structs.replace(event, stack=self._place[0])
        node = getattr(event, "node", 0)
        if node in self._blank and isinstance(event, e.GradAccumulated | e.GradRetained):
            self._lost.add(node)
        self.events.append(_without_numbers(event) if node in self._blank else event)

    @contextmanager
    def without_numbers(self, nodes: Iterable[int]) -> Iterator[None]:
        """Log the gradients that these nodes of the recording get in this block without numbers."""
        self._blank, self._lost = {self.numbers[node] for node in nodes if node in self.numbers}, set()
        try:
            yield
        finally:
            self._blank = set()

    def lose_grad(self, node: int, output_nr: int, value: Value) -> None:
        """Log that the last pass gave a node of the recording a ``.grad`` of this dtype and shape, without numbers."""
        if node in self.numbers and self.numbers[node] not in self._lost:
            self.events.append(e.GradSet(self.numbers[node], output_nr, "in place", without_elements(value)))

    def lose_memory(self, node: int, output_nr: int) -> None:
        """Log that the memory of an output of a node of the recording is unknown from here on."""
        there = self.numbers.pop(node, 0)
        output = next((created.outputs[output_nr] for created in self.creations if created.node == there), None)
        if output is not None and output.value is not None:
            size = (self._timeline.info(node).created.outputs[output_nr].value or output.value).size
            value = Value(output.value.dtype, (size,))
            self.events.append(e.StorageWritten(output.storage, there, output.version + 1, value))

    def stopped(self, node: int, why: str, *, of_gradient: bool) -> None:
        """Log where the branch stopped, once for each reason."""
        if (why, of_gradient) not in self._reasons:
            self._reasons.add((why, of_gradient))
            what = "the gradients beyond it" if of_gradient else "what follows from it"
            where = self._timeline.info(node).title if node in self._timeline.nodes else ""
            message = f"{what} (run again, it stopped at {where}: {why})"
            self.events.append(e.Warned(e.NOT_SEEN, message, 0, "branch"))

    @contextmanager
    def as_node(self, recorded: e.NodeCreated) -> Iterator[None]:
        """Log the events of this block at the call site of the node `recorded`."""
        with self.at(recorded.stack, recorded.scope):
            yield

    @contextmanager
    def at(self, stack: int, scope: int = 0) -> Iterator[None]:
        """Log the events of this block with this call stack of the recording."""
        self._log_stack(stack)
        before, self._place = self._place, (stack, scope)
        try:
            yield
        finally:
            self._place = before

    def number(self, node: int, tensor: Tensor | None) -> None:
        """Map a node of the recording to this leaf or constant of the branch, and record it now."""
        if tensor is not None:
            self.numbers[node] = instrumentation.seen(self.channel, tensor).node

    def number_last(self, node: int) -> None:
        """Map a node of the recording to the operation that the branch ran last; a ``.grad`` it wrote to may
        follow it.
        """
        self.numbers[node] = next(created.node for created in reversed(self.creations) if created.kind == "op")

    def repeat(self, event: e.Event) -> None:
        """Log an event of the recording again, with the branch's node numbers."""
        match event:
            case e.Named(node=node) | e.Returned(node=node) if node not in self.numbers:
                return
            case e.Named(node=node) | e.Returned(node=node):
                event = msgspec.structs.replace(event, node=self.numbers[node])
            case e.OptimizerStarted(stack=stack):
                self._log_stack(stack)
            case e.OptimizerStepped(parameters=parameters, stack=stack, skipped=skipped):
                self._log_stack(stack)
                known, without = (
                    tuple([self.numbers[node] for node in nodes if node in self.numbers])
                    for nodes in (parameters, skipped)
                )
                counts = event.per_group if len(known) == len(parameters) else ()
                event = msgspec.structs.replace(event, parameters=known, skipped=without, per_group=counts)
        self.events.append(event)

    def _log_stack(self, stack: int) -> None:
        """Log a call stack and the text of its files before an event refers to it."""
        if not stack or stack in self._stacks:
            return
        self._stacks.add(stack)
        frames = self._timeline.stack(stack)
        for path in {frame.path for frame in frames} - self._paths:
            self._paths.add(path)
            self.events.append(e.SourceSeen(path, self._timeline.source(path)))
        self.events.append(e.StackSeen(stack, frames))


def _without_numbers(event: e.Event) -> e.Event:
    """Return the event without the numbers of its gradients."""
    values = {name: getattr(event, name) for name in ("part", "total", "value") if hasattr(event, name)}
    blank = {name: value and without_elements(value) for name, value in values.items()}
    if isinstance(event, e.StepStarted):
        blank["grads"] = tuple([grad and without_elements(grad) for grad in event.grads])
    return msgspec.structs.replace(event, **blank)
