"""Turns what happens in a backward pass into events; used only while somebody listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gviz.emit import Channel
from gviz.engine.announce import memory_written, seen, seen_node
from gviz.engine.node import Edge, Grad, Node
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
from gviz.values import Value

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor


def value_of(channel: Channel, grad: Grad) -> Value:
    """The value of a gradient, be it an array, a numpy scalar or a tensor."""
    return channel.value(grad if isinstance(grad, (np.ndarray, np.generic)) else grad._array)


def started(
    channel: Channel,
    roots: Sequence[Edge],
    seeds: Sequence[Grad],
    inputs: Sequence[Edge],
    *,
    retain_graph: bool,
    create_graph: bool,
) -> int:
    """A pass begins; returns its number."""
    edges = tuple((seen_node(channel, node).node, output_nr) for node, output_nr in roots)
    wanted = tuple((seen_node(channel, node).node, output_nr) for node, output_nr in inputs)
    values = tuple(value_of(channel, seed) for seed in seeds)
    number = channel.next_pass()
    channel.say(BackwardStarted(number, edges, values, retain_graph, create_graph, wanted, channel.stack()))
    return number


def finished(channel: Channel, number: int, error: str) -> None:
    """The pass is over."""
    channel.say(BackwardFinished(number, error))


def step_started(channel: Channel, number: int, node: Node, grads: Sequence[Grad | None]) -> int:
    """A node's rule runs; returns the node's number."""
    mark = seen_node(channel, node)
    channel.say(StepStarted(number, mark.node, tuple([None if g is None else value_of(channel, g) for g in grads])))
    return mark.node


def flowed(
    channel: Channel, number: int, source: Node, slot: int, target: Edge, part: Grad, total: Grad | None
) -> None:
    """One contribution arrived."""
    node, output_nr = target
    sum_so_far = None if total is None else value_of(channel, total)
    value = value_of(channel, part)
    origin = seen_node(channel, source).node
    channel.say(GradFlowed(number, origin, slot, seen_node(channel, node).node, output_nr, value, sum_so_far))


def step_finished(channel: Channel, number: int, node: Node, *, freed: bool) -> None:
    """A node is through; `freed` says that it released saved tensors."""
    mark = seen_node(channel, node)
    if freed:
        channel.say(SavedFreed(mark.node))
    channel.say(StepFinished(number, mark.node))


def accumulated(channel: Channel, number: int, leaf: Tensor, part: Grad, *, first: bool) -> None:
    """A leaf's ``.grad`` grew, and with it the memory of the tensor it is."""
    grad = leaf._grad
    assert grad is not None
    mark = seen(channel, leaf)
    channel.say(
        GradAccumulated(number, mark.node, value_of(channel, part), None if first else channel.value(grad._array))
    )
    if not first and grad._seen is not None and grad._seen.channel is channel:
        memory_written(channel, grad, mark.node)


def retained(channel: Channel, number: int, node: Node, output_nr: int, grad: Tensor) -> None:
    """A non-leaf kept its gradient."""
    channel.say(GradRetained(number, seen_node(channel, node).node, output_nr, channel.value(grad._array)))


def captured(channel: Channel, number: int, edge: Edge, grad: Grad) -> None:
    """``autograd.grad`` took a gradient."""
    node, output_nr = edge
    channel.say(GradCaptured(number, seen_node(channel, node).node, output_nr, value_of(channel, grad)))


def hook_ran(channel: Channel, number: int, node: Node, output_nr: int, hook: object, result: Tensor | None) -> None:
    """A tensor's hook ran, and gave `result` or None."""
    name = getattr(hook, "__name__", type(hook).__name__)
    value = None if result is None else channel.value(result._array)
    channel.say(HookRan(number, seen_node(channel, node).node, output_nr, "tensor", name, value))
