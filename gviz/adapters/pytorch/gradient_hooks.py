"""Hooks on every graph node, which record incoming and outgoing gradients, and the accumulation at leaves.

The C++ node owns its hooks. They never refer to the graph node, which would otherwise never be freed. They run on the
threads of PyTorch's engine, hold no lock while they emit events, and return None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from gviz.adapters.pytorch.node_identity import Grads, Mark
from gviz.adapters.pytorch.operation_catalog import Operation
from gviz.adapters.pytorch.private_api import is_batch, without_overrides
from gviz.adapters.pytorch.recording_state import Pass, Session, Step, clock
from gviz.adapters.pytorch.tensor_properties import grad_attribute, is_dense
from gviz.adapters.pytorch.value_capture import as_it_lies, computes_unseen, has_numbers, sizes, unseen
from gviz.events import Edge, GradAccumulated, GradFlowed, GradRetained, HookRan, SavedFreed, StepFinished, StepStarted
from gviz.values.value import AwaitedValue, UnorderedValue, Value

_Target = tuple[int, Mark, int]
"""Where one outgoing gradient goes: ``(slot, mark, output_nr)``."""

_NO_STEP: Step = ((0, 0), {}, ())


class NodeWatch:
    """The hooks of one node."""

    __slots__ = ("_has_saved_tensors", "_mark", "_session", "targets")

    def __init__(self, session: Session, mark: Mark, targets: Sequence[_Target | None], keeps: bool) -> None:
        self._session = session
        self._mark = mark
        self._has_saved_tensors = keeps
        self.targets = targets

    def before(self, grads: Grads) -> None:
        """Run before the backward rule, when all contributions have arrived."""
        session = self._session
        if (current := session.current_pass()) is None:
            return
        began, mark = clock(), self._mark
        with without_overrides():
            places: dict[int, int] = {}
            values: list[Value | None] = []
            for nr, grad in enumerate(grads):
                if grad is None:
                    values.append(None)
                else:
                    places[here := address(grad)] = nr
                    values.append(_arrived(session, current, (mark.node, nr), grad, here, is_first=mark.is_first))
            if mark.retained:
                emit_retained(session, mark, current)
            thread = session.thread
            thread.steps.append((thread.running_step, places, values))
            thread.running_step = (current.number, mark.node)
            session.channel.emit(StepStarted(current.number, mark.node, tuple(values)))
        session.spent += clock() - began

    def after(self, outgoing: Grads, grads: Grads) -> None:
        """Run after the backward rule."""
        session = self._session
        if (current := session.current_pass()) is None:
            return
        began, emit, mark = clock(), session.channel.emit, self._mark
        with without_overrides():
            if current.create_graph:
                self._announce(outgoing)
            thread = session.thread
            step = thread.steps.pop() if thread.steps else _NO_STEP
            if step is not _NO_STEP:
                self._emit_replaced_by_prehooks(current, grads, step[1])
            for target, grad in zip(self.targets, outgoing, strict=False):
                if target is not None and grad is not None:
                    _flow(session, current, mark, target, grad, step, grads)
            if self._has_saved_tensors and not current.retain_graph:
                emit(SavedFreed(mark.node))
            emit(StepFinished(current.number, mark.node))
            thread.running_step = step[0]
        session.spent += clock() - began

    def _emit_replaced_by_prehooks(self, current: Pass, grads: Grads, places: dict[int, int]) -> None:
        """Record incoming gradients that a hook of the node replaced."""
        for nr, grad in enumerate(grads):
            if grad is not None and address(grad) not in places:
                _emit_replaced(self._session, current, (self._mark.node, nr), grad, "grad_fn.register_prehook")

    def _announce(self, outgoing: Grads) -> None:
        """Announce the nodes that the backward rule created with ``create_graph``; they belong to this step."""
        for grad in outgoing:
            if grad is not None and grad.grad_fn is not None:
                self._session.edge_of(grad)


class RegionWatch(NodeWatch):
    """The hooks of a compiled region. gviz cannot see what its backward rule computes, or compiles at its first run."""

    __slots__ = ()

    def before(self, grads: Grads) -> None:
        """Run before the backward rule, when all contributions have arrived."""
        super().before(grads)
        self._session.thread.is_closed = True

    def after(self, outgoing: Grads, grads: Grads) -> None:
        """Run after the backward rule."""
        self._session.thread.is_closed = False
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
    session: Session, node: Any, mark: Mark, ends: Sequence[tuple[Mark | None, int]], operation: Operation, *,
    keeps: bool,
) -> None:  # fmt: skip
    """Mark an announced node and register its hooks; its ``next_functions`` lead to `ends`."""
    targets: list[_Target | None] = []
    for slot, (target, output_nr) in zip(operation.slots_of(len(ends)), ends, strict=True):
        if target is None:
            targets.append(None)
        else:
            target.uses += 1
            targets.append((slot, target, output_nr))
    watch = RegionWatch if _is_region(node) else NodeWatch
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


def _flow(
    session: Session, current: Pass, source: Mark, target: _Target, grad: torch.Tensor, step: Step, grads: Grads
) -> None:
    """Record one contribution, and keep its value for the next one or for the node it arrives at."""
    slot, mark, output_nr = target
    if current.needed is not None and mark.node not in current.needed:
        return
    place, here = (mark.node, output_nr), address(grad)
    look = session.value.of_first if source.is_first or mark.is_first else session.value
    passed_on = step[1].get(here) if look is session.value else None
    part = None if passed_on is None else _as_passed_on(session, step[2][passed_on], grads[passed_on], grad)
    if part is None:
        part = look(grad)
    total = _sum(session, current, place, grad, look) if mark.uses > 1 or place in current.arrived else None
    current.arrived[place] = (part, here) if total is None else (total, 0)
    session.channel.emit(GradFlowed(current.number, source.node, slot, mark.node, output_nr, part, total))


def _as_passed_on(
    session: Session, value: Value | None, grad: torch.Tensor | None, passed_on: torch.Tensor
) -> Value | None:
    """Return the value of an outgoing gradient if it is the incoming one, unchanged or reshaped; otherwise None.

    Both tensors are alive now, so the same address means the same numbers.
    """
    if value is None or grad is None or not (has_numbers(grad) and has_numbers(passed_on)):
        return None
    grad, passed_on = as_it_lies(grad), as_it_lies(passed_on)
    if grad.numel() != passed_on.numel():
        return None
    if grad.shape == passed_on.shape and grad.stride() == passed_on.stride():
        return value
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
