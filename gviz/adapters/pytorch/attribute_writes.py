"""What a program does to a tensor besides computing with it: ``.grad``, flags, hooks."""

from __future__ import annotations

import weakref
from functools import wraps
from typing import Any

import torch

from gviz.adapters.pytorch import operation_catalog
from gviz.adapters.pytorch.autograd_graph import mark_of
from gviz.adapters.pytorch.gradient_hooks import emit_added, emit_if_replaced
from gviz.adapters.pytorch.node_creation import OperationCall, untracked
from gviz.adapters.pytorch.node_identity import Mark
from gviz.adapters.pytorch.private_api import without_overrides
from gviz.adapters.pytorch.recording_state import Session
from gviz.adapters.pytorch.tensor_properties import grad_fn_of, grad_of, version_of
from gviz.events import GradSet, HookRan, RequiresGradSet


def get_grad(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Read ``.grad``, and note whose gradient it is so that later writes to it are recognized."""
    grad = function(*args)
    with without_overrides():
        if grad is not None and session.marks.owner_of(grad) is not args[0]:
            session.marks.own(grad, args[0])
    return grad


def set_grad(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Assign ``.grad`` or set it to None."""
    result = function(*args)
    with without_overrides():
        _emit_set(session, args[0])
    return result


def _emit_set(session: Session, tensor: torch.Tensor) -> None:
    grad = grad_of(tensor)
    known = session.marks.of(tensor)
    if grad is not None:
        session.marks.own(grad, tensor)
    if known is not None:
        value = None if grad is None else session.value(grad)
        how = "none" if grad is None else "assigned"
        known.recorded = value
        session.channel.emit(GradSet(known.node, tensor.output_nr, how, value, session.channel.stack()))


def set_requires_grad(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Change ``requires_grad``."""
    with without_overrides():
        before = args[0].requires_grad
    result = function(*args, **kwargs)
    with without_overrides():
        _emit_switched(session, args[0], before=before)
    return result


def _emit_switched(session: Session, tensor: torch.Tensor, *, before: bool) -> None:
    known = session.marks.of_tensor(tensor)
    if tensor.requires_grad == before:
        return
    if known is not None:
        session.channel.emit(RequiresGradSet(known.node, not before, session.channel.stack()))
    elif before:
        session.marks.freeze(tensor, session.channel.stack())


def retain_grad(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record ``retain_grad()``: the tensor keeps its gradient from now on."""
    result = function(*args, **kwargs)
    tensor = args[0]
    with without_overrides():
        if grad_fn_of(tensor) is not None:
            mark = mark_of(session, tensor)
            mark.retained = {**(mark.retained or {}), tensor.output_nr: weakref.ref(tensor)}
    return result


def detach_(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Detach a tensor in place. It becomes the output of an untracked ``detach_`` node; a leaf is frozen."""
    tensor = args[0]
    with without_overrides():
        before = tensor.requires_grad
        if tracked := grad_fn_of(tensor) is not None:
            session.marks.remember(tensor, mark_of(session, tensor))
    result = function(*args)
    with without_overrides():
        if tracked:
            cut = untracked(session, OperationCall("detach_", (tensor,), in_place=True), (tensor,), "detach")
            session.marks.remember(tensor, cut)
        else:
            _emit_switched(session, tensor, before=before)
    return result


def register_hook(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Register a hook that is wrapped to record its runs."""
    tensor, hook, *rest = args if len(args) > 1 else (args[0], kwargs.pop("hook"))
    when = "tensor" if operation_catalog.called(function) == "register_hook" else "post accumulate"
    with without_overrides():
        mark = mark_of(session, tensor) if callable(hook) and tensor.requires_grad else None
    if mark is None:
        return function(tensor, hook, *rest, **kwargs)
    stack = session.channel.stack()
    return function(tensor, _recording_hook(session, hook, mark, tensor.output_nr, when, stack), *rest, **kwargs)


def _recording_hook(session: Session, hook: Any, mark: Mark, output_nr: int, when: str, stack: int) -> Any:
    """Return a hook that records its run, its result, and the `stack` at which it was registered."""

    def observed(grad: torch.Tensor) -> Any:
        current = session.current_pass()
        if current is None:
            return hook(grad)
        if when == "post accumulate":
            emit_added(session)
        thread, node = session.thread, mark.node
        if when == "tensor":
            with without_overrides():
                emit_if_replaced(session, current, (node, output_nr), grad)
        outside, thread.running_step = thread.running_step, (current.number, node)
        before = version_of(grad)
        try:
            result = hook(grad)
        finally:
            thread.running_step = outside
        replaced = isinstance(result, torch.Tensor) and result is not grad
        changed = replaced or (when == "tensor" and version_of(grad) != before)
        ran = HookRan(current.number, node, output_nr, when, "", None, stack)
        _emit_ran(session, hook, ran, result if replaced else grad, changed)
        return result

    return wraps(hook)(observed) if hasattr(hook, "__name__") else observed


def _emit_ran(session: Session, hook: Any, ran: HookRan, grad: torch.Tensor, changed: bool) -> None:
    current = session.current_pass()
    with without_overrides():
        value = session.value(grad) if changed else None
    if changed and current is not None:
        current.arrived.pop((ran.node, ran.output_nr), None)
    name = getattr(hook, "__name__", type(hook).__name__)
    session.channel.emit(HookRan(ran.pass_nr, ran.node, ran.output_nr, ran.when, name, value, ran.stack))
