"""Optimizer steps: what they updated, and how they ended.

PyTorch runs no hook after a step that raised, but wraps every step in a ``record_function``, which it always exits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gviz.adapters.pytorch.autograd_graph import mark_of
from gviz.adapters.pytorch.in_place_writes import (
    emit_all_written,
    emit_averaged,
    grad_changed,
    has_other_ranks,
    wrote,
)
from gviz.adapters.pytorch.module_calls import name_uncalled
from gviz.adapters.pytorch.node_creation import NO_CALL
from gviz.adapters.pytorch.private_api import optimizer_hooks, without_overrides
from gviz.adapters.pytorch.recording_state import Session, Update
from gviz.adapters.pytorch.tensor_properties import grad_attribute, number_in, version_of
from gviz.events import OptimizerStarted, OptimizerStepped
from gviz.events.optimizer_options import options_of, per_group

STEP_NAMES = "Optimizer.step#"
"""The prefix of the names under which PyTorch records steps."""


def starts(session: Session, optimizer: Any, *, has_closure: bool = False) -> None:
    """Record the start of an optimizer step.

    With several ranks it first records the gradients, because ``all_reduce`` is not observed. A step that calls the
    ``step`` of its base class continues the same step.
    """
    updates = session.thread.updates
    if _is_updating(updates, optimizer):
        return
    with without_overrides():
        parameters = _parameters(optimizer)
        for parameter in _recorded(session, parameters):
            if grad_attribute(parameter) is not None and session.marks.of(parameter) is None:
                mark_of(session, parameter)  # now, while it has the value from before the step
        if has_other_ranks():
            emit_averaged(session, parameters)
        if updates:
            session.marks.remove_dead()  # an observed step would do it
            watched = None if has_closure else _watched(session, optimizer, parameters)
            updates[-1] = Update(optimizer, {id(p): version_of(p) for p in parameters}, watched)
            session.thread.steps_unseen = watched is not None
        options = options_of(optimizer.param_groups, number_in)
        before = session.channel.earlier_options.replaced(optimizer, options)
        session.channel.emit(OptimizerStarted(type(optimizer).__name__, session.channel.stack(), options, before))


def _watched(
    session: Session, optimizer: Any, parameters: Sequence[torch.Tensor]
) -> list[tuple[torch.Tensor, int]] | None:
    """Return the gradients and the recorded tensors of an optimizer's state, with their versions.

    A step of PyTorch's optimizers is several operations for each parameter. None of them is recorded, so that it is
    enough to look at the end at what they have changed. Returns None if they have to be observed: while a CUDA graph
    is captured, with ``differentiable=True``, and if code of the program runs within the step.
    """
    if (
        session.captures.is_noting
        or not type(optimizer).step.__module__.startswith("torch.optim.")
        or optimizer._optimizer_step_pre_hooks
        or optimizer._optimizer_step_post_hooks
        or sum(map(len, optimizer_hooks)) > 2  # ours are two
        or any(group.get("differentiable") for group in optimizer.param_groups)
    ):
        return None
    watched = [grad for parameter in parameters if (grad := grad_attribute(parameter)) is not None]
    for state in optimizer.state.values():
        if isinstance(state, dict):
            watched += [it for it in state.values() if isinstance(it, torch.Tensor) and not session.marks.is_new(it)]
    return [(tensor, version_of(tensor)) for tensor in watched]


def _emit_unseen_writes(session: Session, update: Update) -> None:
    """Record what the operations of a step have changed besides its parameters."""
    session.thread.steps_unseen = False
    for tensor, before in update.watched or ():
        if version_of(tensor) != before:
            wrote(session, tensor, NO_CALL, silent="optimizer")


def with_closure(session: Session, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the arguments of a step, with a closure that first records what the step has changed; None without a
    closure.

    LBFGS evaluates the closure many times per step, each time with other parameters.
    """
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if not callable(closure):
        return None

    @wraps(closure)
    def evaluated(*arguments: Any, **options: Any) -> Any:
        if session.is_recording:
            _emit_changed(session, optimizer)
        return closure(*arguments, **options)

    return ((args[0], evaluated, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": evaluated})


def _emit_changed(session: Session, optimizer: Any) -> None:
    """Record the values of the parameters that a step in progress has changed since they were last recorded."""
    update = next((each for each in session.thread.updates if each is not None and each.optimizer is optimizer), None)
    if update is None:
        return
    with without_overrides():
        parameters = _parameters(optimizer)
        versions = {id(p): version_of(p) for p in parameters}
        _emit_values(
            session, _recorded(session, [p for p in parameters if versions[id(p)] != update.versions.get(id(p))])
        )
        update.versions.update(versions)


def stepped(session: Session, optimizer: Any) -> None:
    """Record the end of an optimizer step and the new values of the parameters with a gradient."""
    updates = session.thread.updates
    if updates:
        if updates[-1] is None and _is_updating(updates, optimizer):
            return
        update, updates[-1] = updates[-1], None
    else:
        update = None
    with without_overrides():
        if update is not None:
            _emit_unseen_writes(session, update)
        parameters = _parameters(optimizer)
        skipped = _without_gradient(session, parameters)
        if getattr(optimizer, "grad_scale", None) is not None:  # a `GradScaler` has left its work to a fused step
            for parameter in parameters:
                if (grad := grad_attribute(parameter)) is not None:
                    grad_changed(session, grad)
        _emit_end(session, optimizer, [p for p in parameters if grad_attribute(p) is not None], skipped)


def _without_gradient(session: Session, parameters: Sequence[torch.Tensor]) -> tuple[int, ...]:
    """Return the nodes of the parameters that have no gradient.

    A parameter that no operation has used, such as that of a layer that is never called, is announced here.
    """
    without = [parameter for parameter in parameters if grad_attribute(parameter) is None and not is_lazy(parameter)]
    new = [p for p in without if session.marks.of_tensor(p) is None and p.requires_grad and not session.is_partial]
    for parameter in new:
        mark_of(session, parameter)
    name_uncalled(session, new)
    known = (session.marks.of_tensor(parameter) for parameter in without)
    return tuple(mark.node for mark in known if mark is not None)


def left(session: Session, raised: type[BaseException] | None) -> None:
    """End a call of ``step``; if an exception ended the step, record the parameters that have changed."""
    updates = session.thread.updates
    update = updates.pop() if updates else None  # otherwise it began before the recording
    if update is not None:
        session.thread.steps_unseen = False
    if update is None or raised is None or not session.is_recording:
        return
    with without_overrides():
        _emit_unseen_writes(session, update)
        before, parameters = update.versions, _parameters(update.optimizer)
        changed = [p for p in parameters if before.get(id(p), version_of(p)) != version_of(p)]
        _emit_end(session, update.optimizer, changed, (), raised.__name__)


def _is_updating(updates: list[Update | None], optimizer: Any) -> bool:
    return any(update is not None and update.optimizer is optimizer for update in updates)


def _parameters(optimizer: Any) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _emit_end(
    session: Session, optimizer: Any, updated: list[torch.Tensor], skipped: tuple[int, ...], raised: str = ""
) -> None:
    """Record the new values of parameters, and the end of the step."""
    updated = _recorded(session, updated)
    nodes, counts = _emit_values(session, updated), per_group(optimizer.param_groups, updated)
    kind, stack = type(optimizer).__name__, session.channel.stack()
    session.channel.emit(OptimizerStepped(kind, nodes, stack, skipped, raised, counts))


def _recorded(session: Session, parameters: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return the parameters to record: only known ones if only a part of the program is recorded."""
    return [p for p in parameters if session.marks.of_tensor(p) is not None] if session.is_partial else parameters


def _emit_values(session: Session, updated: list[torch.Tensor]) -> tuple[int, ...]:
    """Record the new values of parameters. Return their nodes."""
    marks = [mark_of(session, parameter) for parameter in updated]
    emit_all_written(session, [(parameter, mark.node) for parameter, mark in zip(updated, marks, strict=True)])
    return tuple(mark.node for mark in marks)
