"""Turns what happens in a backward pass into events; used only while somebody listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gviz.emit import Channel
from gviz.engine.announce import seen, seen_node
from gviz.engine.announce_memory import memory_written
from gviz.engine.modes import thread
from gviz.engine.node import Edge, Grad, GradientEdge, Node
from gviz.events import (
    BackwardFinished,
    BackwardStarted,
    GradAccumulated,
    GradCaptured,
    GradFlowed,
    GradRetained,
    HookRan,
    SavedFreed,
    StepFinished,
    StepStarted,
)
from gviz.values import Value, shape_of

if TYPE_CHECKING:
    from gviz.engine.backward import Place
    from gviz.engine.tensor import Tensor


_ARRAYS = (np.ndarray, np.generic)


class PassReport:
    """Tells a channel about one backward pass.

    A gradient is often the same array at several places (what arrives at an addition leaves it twice), so the value
    captured when it arrived is kept, with the node's number, until its node has run.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.number = channel.next_pass()
        self._say = channel.say
        self._value = shape_of if thread.is_building else channel.value  # in a graph that is built nothing has a value
        self._arrived: dict[Node, tuple[int, list[Value | None]]] = {}
        self._grads: Sequence[Grad | None] = ()
        self._values: Sequence[Value | None] = ()
        self._stack = 0
        self._node: Node | None = None

    def started(
        self,
        roots: Sequence[Edge],
        seeds: Sequence[Grad],
        inputs: Sequence[Edge],
        *,
        retain_graph: bool,
        create_graph: bool,
    ) -> None:
        """The pass begins."""
        channel = self.channel
        edges = tuple((seen_node(channel, node).node, output_nr) for node, output_nr in roots)
        wanted = tuple((seen_node(channel, node).node, output_nr) for node, output_nr in inputs)
        values = tuple(self._captured(seed) for seed in seeds)
        self._stack = channel.stack()
        channel.say(BackwardStarted(self.number, edges, values, retain_graph, create_graph, wanted, self._stack))

    def finished(self, error: str, raised: str) -> None:
        """The pass is over, with the words and the class of an error or with neither."""
        self.channel.say(BackwardFinished(self.number, error, raised))

    def step_started(self, node: Node, grads: Sequence[Grad | None]) -> int:
        """A node's rule runs; returns the node's number."""
        arrived = self._arrived.pop(node, None)
        if arrived is None:
            captured = self._of_first if node.is_first else self._captured
            arrived = seen_node(self.channel, node).node, [None if g is None else captured(g) for g in grads]
        number, self._values = arrived
        self._grads, self._node = grads, node
        self._say(StepStarted(self.number, number, tuple(self._values)))
        return number

    def during(self, node: Node) -> tuple[int, int]:
        """The step of a node, as what is made during it names it."""
        return self.number, seen_node(self.channel, node).node

    def flowed(self, source: int, slot: int, target: Edge, part: Grad, total: Grad | None) -> None:
        """One contribution from input `slot` of node number `source` arrived; `total` is None for the first."""
        node, output_nr = target
        arrived = self._arrived.get(node)
        if arrived is None:
            arrived = self._arrived[node] = seen_node(self.channel, node).node, [None] * len(node.outputs)
        number, values = arrived
        is_first = node.is_first or (self._node is not None and self._node.is_first)
        captured = self._of_first if is_first else self._captured
        value = captured(part)
        sum_so_far = None if total is None else captured(total)
        values[output_nr] = sum_so_far or value
        self._say(GradFlowed(self.number, source, slot, number, output_nr, value, sum_so_far))

    def step_finished(self, node: int, *, freed: bool) -> None:
        """A node is through; `freed` says that it released saved tensors."""
        if not node:
            return
        if freed:
            self._say(SavedFreed(node))
            if self._node is not None:
                self._node.freed_at = self._stack
        self._grads = ()  # what runs next counts the references to a gradient
        self._say(StepFinished(self.number, node))

    def accumulated(self, node: Node, leaf: Tensor, part: Grad, *, first: bool) -> None:
        """A leaf's ``.grad`` grew, and with it the memory of the tensor it is."""
        grad = leaf._grad
        assert grad is not None
        number = seen(self.channel, leaf).node
        arrived = self._arrived.pop(node, None)
        value = (arrived and arrived[1][0]) or self._captured(part)
        sum_now = None if first else self.channel.value(grad._array)
        self.channel.say(GradAccumulated(self.number, number, value, sum_now))
        if not first and grad._seen is not None and grad._seen.channel is self.channel:
            memory_written(self.channel, grad, number, told=leaf)

    def retained(self, node: Node, output_nr: int, grad: Tensor) -> None:
        """A non-leaf kept its gradient."""
        value = self.channel.value(grad._array)
        self.channel.say(GradRetained(self.number, seen_node(self.channel, node).node, output_nr, value))

    def captured(self, edge: Edge, grad: Grad) -> None:
        """``autograd.grad`` took a gradient."""
        node, output_nr = edge
        number = seen_node(self.channel, node).node
        self.channel.say(GradCaptured(self.number, number, output_nr, self._captured(grad)))

    def hook_ran(self, node: Node, output_nr: int, when: str, hook: object, result: Tensor | None) -> None:
        """A hook ran, and gave `result`, or None."""
        name = getattr(hook, "__name__", type(hook).__name__)
        value = None if result is None else self.channel.value(result._array)
        if result is not None:
            self._arrived.pop(node, None)
        number = seen_node(self.channel, node).node
        self.channel.say(HookRan(self.number, number, output_nr, when, name, value))

    def node_hook_ran(self, node: Node, when: str, hook: object, results: Sequence[Tensor | None]) -> None:
        """A hook of a node ran; one event for each gradient it gave, one without any if it gave none."""
        given = [(nr, result) for nr, result in enumerate(results) if result is not None]
        for output_nr, result in given:
            self.hook_ran(node, output_nr, when, hook, result)
        if not given:
            self.hook_ran(node, 0, when, hook, None)

    def _of_first(self, grad: Grad) -> Value:
        """The value of a gradient that arrives at one of the first calls of a custom Function, or is sent there."""
        if thread.is_building:
            return self._captured(grad)
        return self.channel.whole(grad if isinstance(grad, _ARRAYS) else grad._array) or self._captured(grad)

    def _captured(self, grad: Grad) -> Value:
        """The value of a gradient, be it an array, a numpy scalar or a tensor."""
        for known, value in zip(self._grads, self._values):  # noqa: B905  # `strict=` takes longer than one turn
            if known is grad and value is not None:
                return value
        return self._value(grad if isinstance(grad, _ARRAYS) else grad._array)


def refused(
    channel: Channel, roots: Sequence[Place], seeds: Sequence[Tensor | None], error: str, *, retain_graph: bool,
    create_graph: bool,
) -> None:  # fmt: skip
    """A pass begins and ends at once, as no graph leads back from one of its roots."""
    number, edges = channel.next_pass(), tuple(_edge(channel, root) for root in roots)
    values = tuple(_seed(channel, root, seed) for root, seed in zip(roots, seeds, strict=True))
    channel.say(BackwardStarted(number, edges, values, retain_graph, create_graph, (), channel.stack()))
    channel.say(BackwardFinished(number, error, "RuntimeError"))


def _edge(channel: Channel, root: Place) -> tuple[int, int]:
    mark = seen_node(channel, root.node) if isinstance(root, GradientEdge) else seen(channel, root)
    return mark.node, root.output_nr


def _seed(channel: Channel, root: Place, seed: Tensor | None) -> Value:
    """The gradient that a root was given; PyTorch asks for none where it is of no use."""
    if seed is not None or isinstance(root, GradientEdge):
        assert seed is not None  # an edge is never without
        return channel.value(seed._array)
    return channel.value(np.ones_like(root._array))
