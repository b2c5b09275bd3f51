"""Hooks on every graph node, which record incoming and outgoing gradients, and the accumulation at leaves.

The C++ node owns its hooks. They never refer to the graph node, which would otherwise never be freed. They run on the
threads of PyTorch's engine, hold no lock while they emit events, and return None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import torch

from gviz.adapters.pytorch.node_identity import Grads, Mark
from gviz.adapters.pytorch.private_api import count_dispatch_modes, is_batch, without_overrides
from gviz.adapters.pytorch.recording_state import Pass, Session, Step, clock
from gviz.adapters.pytorch.tensor_properties import grad_attribute, is_dense
from gviz.adapters.pytorch.value_capture import (
    as_it_lies,
    computes_unseen,
    has_numbers,
    has_plain_memory,
    sizes,
    unseen,
)
from gviz.events import (
    Edge,
    Event,
    GradAccumulated,
    GradFlowed,
    GradRetained,
    HookRan,
    SavedFreed,
    StepFinished,
    StepStarted,
)
from gviz.values.value import AwaitedValue, UnorderedValue, Value

Target = tuple[int, Mark, int]
"""Where one outgoing gradient goes: ``(slot, mark, output_nr)``."""

_NO_STEP: Step = ((0, 0), {}, ())


class NodeWatch(msgspec.Struct, eq=False):
    """The hooks of one node, whose gradients go to `targets`. `keeps` says whether it has saved tensors."""

    session: Session
    mark: Mark
    targets: Sequence[Target | None]
    keeps: bool

    def before(self, grads: Grads) -> None:
        """Run before the backward rule, when all contributions have arrived."""
        session = self.session
        if (current := session.current_pass()) is None:
            return
        began, mark = clock(), self.mark
        with without_overrides():
            places: dict[int, int] = {}
            values: list[Value | None] = []
            node, arrived, sums = mark.node, current.arrived, current.sums
            for nr, grad in enumerate(grads):
                if grad is None:
                    values.append(None)
                    continue
                place, here = (node, nr), address(grad)
                places[here] = nr
                known = arrived.get(place)
                if known is None or known[1] not in (0, here):
                    values.append(_arrived(session, current, place, grad, here, is_first=mark.is_first))
                else:  # as captured on arrival
                    del arrived[place]
                    sums.pop(place, None)
                    values.append(known[0])
            if mark.retained:
                emit_retained(session, mark, current)
            thread, this = session.thread, (current.number, node)
            thread.steps.append((thread.running_step, places, values))
            thread.running_step = this
            session.channel.emit(StepStarted(*this, tuple(values)))
        session.spent += clock() - began

    def after(self, outgoing: Grads, grads: Grads) -> None:
        """Run after the backward rule."""
        session = self.session
        if (current := session.current_pass()) is None:
            return
        began, mark = clock(), self.mark
        with without_overrides():
            if current.create_graph:
                self._announce(outgoing)
            thread, source, number = session.thread, mark.node, current.number
            step = thread.steps.pop() if thread.steps else _NO_STEP
            around, places, values = step
            if step is not _NO_STEP:
                for nr, grad in enumerate(grads):  # hooks of the program on the node may have replaced some
                    if grad is not None and address(grad) not in places:
                        _emit_replaced(session, current, (source, nr), grad, "grad_fn.register_prehook")
            needed, arrived = current.needed, current.arrived
            events: list[Event] = []
            for target, grad in zip(self.targets, outgoing, strict=False):
                if target is None or grad is None:
                    continue
                slot, to, output_nr = target
                node, part = to.node, None
                if needed is not None and node not in needed:
                    continue
                place, here = (node, output_nr), address(grad)
                look = session.value.of_first if mark.is_first or to.is_first else session.value
                if here in places and here > 0 and look is session.value:
                    nr = places[here]
                    part = _as_passed_on(session, values[nr], grads[nr], grad)
                if part is None:
                    part = look(grad)
                total = _sum(session, current, place, grad, look) if to.uses > 1 or place in arrived else None
                # kept for the next contribution, or for the node that it arrives at
                arrived[place] = (part, here) if total is None else (total, 0)
                events.append(GradFlowed(number, source, slot, node, output_nr, part, total))
            if self.keeps and not current.retain_graph:
                events.append(SavedFreed(source))
            events.append(StepFinished(number, source))
            session.channel.emit_several(events)
            thread.running_step = around
        session.spent += clock() - began

    def _announce(self, outgoing: Grads) -> None:
        """Announce the nodes that the backward rule created with ``create_graph``; they belong to this step."""
        for grad in outgoing:
            if grad is not None and grad.grad_fn is not None:
                self.session.edge_of(grad)


class RegionWatch(NodeWatch, eq=False):
    """The hooks of a compiled region. gviz cannot see what its backward rule computes, or compiles at its first run."""

    def before(self, grads: Grads) -> None:
        """Run before the backward rule, when all contributions have arrived."""
        super().before(grads)
        self.session.thread.is_closed = True

    def after(self, outgoing: Grads, grads: Grads) -> None:
        """Run after the backward rule."""
        self.session.thread.is_closed = False
        super().after(outgoing, grads)


class LeafWatch:
    """The hooks of a leaf's accumulator.

    They keep no reference to a gradient: PyTorch uses its memory for ``.grad`` only if nothing else refers to it.
    """

    __slots__ = ("_leaf", "_mark", "_session")

    def __init__(self, session: Session, mark: Mark, leaf: torch.Tensor) -> None:
        self._session = session
        self._mark = mark
        self._leaf = leaf

    def before(self, grads: Grads) -> None:
        """Run before accumulation.

        The event is emitted after the accumulation, but before the program can see the result.
        """
        session, (grad,) = self._session, grads
        if grad is None or (current := session.current_pass()) is None:
            return
        with without_overrides():
            if not self._leaf.requires_grad:  # it was frozen meanwhile: PyTorch adds nothing
                return
            here = address(grad)
            part = _arrived(session, current, (self._mark.node, 0), grad, here)
            session.thread.adding = partial(self._emit, current, grad_attribute(self._leaf) is None), part, here

    def after(self, outgoing: Grads, grads: Grads) -> None:
        """Run after accumulation and after the program's own hooks for it."""
        session, (grad,) = self._session, grads
        adding = session.thread.adding
        if adding is None or grad is None:
            return
        emit, _, here = adding
        if address(grad) != here:  # another hook has replaced it
            session.thread.adding = emit, session.value(grad), here
        emit_added(session)

    def _emit(self, current: Pass, is_first: bool, part: Value) -> None:
        session = self._session
        with without_overrides():
            total = grad_attribute(self._leaf)
            if total is not None:
                session.marks.own(total, self._leaf)
                if session.captures.is_noting:
                    session.captures.note(total)
            value = None if is_first or total is None else session.value(total)
            session.channel.emit(GradAccumulated(current.number, self._mark.node, part, value))
            self._mark.recorded = value or part
            if current.accumulated is not None:
                current.accumulated.append(self._leaf)


WATCHES = frozenset({NodeWatch, RegionWatch, LeafWatch})
"""The classes whose methods are the hooks."""


def emit_added(session: Session) -> None:
    """Emit this thread's pending accumulation into a leaf's ``.grad``, unless already emitted."""
    adding, session.thread.adding = session.thread.adding, None
    if adding is not None:
        emit, part, _ = adding
        emit(part)


def watch_node(
    session: Session, node: Any, mark: Mark, targets: Sequence[Target | None], *, keeps: bool, is_function: bool
) -> None:
    """Mark an announced node and register its hooks. `is_function` says whether a Python function made it."""
    watch = RegionWatch if is_function and _is_region(node) else NodeWatch
    session.marks.put(node, mark, watch(session, mark, targets, keeps))


def _is_region(node: Any) -> bool:
    """Return whether `torch.compile` made this graph node."""
    function = getattr(node, "_forward_cls", None)
    return function is not None and function.__module__.startswith("torch._functorch._aot_autograd.")


def watch_accumulator(session: Session, node: Any, mark: Mark, leaf: torch.Tensor) -> None:
    """Mark a leaf's accumulator and register its hooks."""
    hooks = LeafWatch(session, mark, leaf)
    session.marks.put(node, mark, hooks)


def emit_retained(session: Session, mark: Mark, current: Pass) -> None:
    """Record the retained gradients of a node's outputs."""
    for output_nr, reference in (mark.retained or {}).items():
        tensor = reference()
        grad = None if tensor is None else grad_attribute(tensor)
        if grad is not None:
            session.channel.emit(GradRetained(current.number, mark.node, output_nr, session.value(grad)))


def _as_passed_on(
    session: Session, value: Value | None, grad: torch.Tensor | None, passed_on: torch.Tensor
) -> Value | None:
    """Return the value of an outgoing gradient if it is the incoming one, unchanged or reshaped; otherwise None.

    Both tensors are alive now, so the same address means the same numbers.
    """
    if value is None or grad is None or grad is passed_on:
        return value
    if not (has_plain_memory(grad) and has_plain_memory(passed_on)):
        if not (has_numbers(grad) and has_numbers(passed_on)):
            return None
        grad, passed_on = as_it_lies(grad), as_it_lies(passed_on)
    if grad.shape == passed_on.shape and grad.stride() == passed_on.stride():
        return value
    if grad.numel() != passed_on.numel():
        return None
    if (
        grad.dtype == passed_on.dtype
        and is_dense(grad)
        and is_dense(passed_on)
        and not session.value.keeps_elements(value)
    ):
        if isinstance(value, AwaitedValue):
            return value.reshaped(tuple(passed_on.shape))
        kind = Value if value.data is None else UnorderedValue
        return kind(value.dtype, tuple(passed_on.shape), value.data, value.stats)
    return None


def _sum(
    session: Session, current: Pass, place: Edge, grad: torch.Tensor, look: Callable[[torch.Tensor], Value]
) -> Value | None:
    """Return the sum so far, or None for the first contribution. It is kept while more contributions are expected."""
    before = current.sums.get(place)
    if (
        before is not None
        and grad.__class__ is torch.Tensor
        and grad.is_cpu
        and before.layout is grad.layout
        and before.dtype is grad.dtype
        and not (grad.requires_grad or before.is_inference() or count_dispatch_modes())
    ):
        before.add_(grad)
        return look(before)
    if not computes_unseen(grad):
        current.sums.pop(place, None)
    elif before is not None and not session.value.is_hidden(grad):
        with unseen(before, grad):
            if before.layout is grad.layout and before.dtype is grad.dtype and not before.is_inference():
                before.add_(grad.detach() if grad.requires_grad else grad)
            else:
                before = current.sums[place] = before + grad.detach()
        return look(before)
    # a further contribution whose sum is unknown: the values are not readable, not kept or were never recorded
    if place in current.arrived:
        return Value(str(grad.dtype).removeprefix("torch."), sizes(grad))
    is_kept = session.value.keeps_numbers and computes_unseen(grad) and not is_batch(grad)
    if is_kept and not session.value.is_hidden(grad):  # in a graph capture, each replay would compute the sum
        with unseen(grad):
            current.sums[place] = grad.detach().clone()
    return None


def _arrived(
    session: Session, current: Pass, place: Edge, grad: torch.Tensor, here: int, *, is_first: bool = False
) -> Value:
    """Return the value of a complete gradient: as captured on arrival, unless it has been replaced.

    A hook on the graph node that sent it may have replaced it. Hooks on tensors record their changes themselves.
    """
    current.sums.pop(place, None)
    known = current.arrived.pop(place, None)
    if known is not None and known[1] in (0, here):
        return known[0]
    if known is not None:
        return _emit_replaced(session, current, place, grad, "grad_fn.register_hook")
    return session.value.of_first(grad) if is_first else session.value(grad)


def emit_if_replaced(session: Session, current: Pass, place: Edge, grad: torch.Tensor) -> None:
    """Record that a hook has replaced the gradient since it arrived. Called before the tensor's own hooks run."""
    known, here = current.arrived.get(place), address(grad)
    if known is not None and known[1] not in (0, here):
        current.arrived[place] = _emit_replaced(session, current, place, grad, "grad_fn.register_hook"), here


def _emit_replaced(session: Session, current: Pass, place: Edge, grad: torch.Tensor, by: str) -> Value:
    value = session.value(grad)
    by, stack = current.by_modules.pop(address(grad), (by, 0))
    session.channel.emit(HookRan(current.number, *place, "pre", by, value, stack))
    return value


def address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's first element, or -1 if it has none."""
    try:
        return tensor.data_ptr()
    except RuntimeError:
        return -1
