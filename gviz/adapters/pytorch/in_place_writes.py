"""Writes in place: to recorded memory, to ``.grad``, through ``.data``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from msgspec.structs import force_setattr

from gviz.adapters.pytorch import private_api
from gviz.adapters.pytorch.autograd_graph import edge_of, mark_of, visit
from gviz.adapters.pytorch.node_creation import OperationCall, switched_off, untracked
from gviz.adapters.pytorch.node_identity import Mark
from gviz.adapters.pytorch.private_api import without_overrides
from gviz.adapters.pytorch.recording_state import Session
from gviz.adapters.pytorch.tensor_properties import device_of, grad_attribute, grad_fn_of, grad_of, overlap, version_of
from gviz.adapters.pytorch.value_capture import as_it_lies
from gviz.events import DataSet, GradSet, StorageWritten
from gviz.values.value import AwaitedValue, Value


def wrote(session: Session, target: torch.Tensor, call: OperationCall, *, silent: str = "") -> None:
    """Record that an operation wrote to the memory of `target`.

    `silent` operations are PyTorch's own and get no node.
    """
    if session.captures.is_noting:
        session.captures.note(target)
    grad_changed(session, target, zeroed=call.name == "zero_")
    node = grad_fn_of(target)
    if node is not None and session.marks.of_node(node) is None:
        _tracked_write(session, target, call)
        return
    base = private_api.base_of(target) if private_api.is_view(target) else None
    origins = [it for it in (base, target) if it is not None and (grad_fn_of(it) is not None or _is_known(session, it))]
    if not origins:
        return  # not recorded yet: it will be, with the value it has then
    if silent or not call.name:
        emit_written(session, target, edge_of(session, origins[0])[0])
        return
    why = "inputs"
    tensors = [operand for operand in call.operands if isinstance(operand, torch.Tensor)]
    if any(tensor.requires_grad for tensor in tensors):
        why = switched_off()
    mark = untracked(session, call, (target,), why)
    if call.name.rstrip("_") in _RESHAPING:
        _reshaped(session, target, mark)
    else:
        emit_written(session, target, mark.node)


def enter_before(session: Session, target: torch.Tensor, *, even_parameters: bool = False) -> None:
    """Announce a tensor that is about to change, with its numbers before: data that PyTorch has read or shares.

    A parameter is announced only if asked for: what initializes it is no step of the program.
    """
    if (
        session.captures.is_noting
        or (isinstance(target, torch.nn.Parameter) and not even_parameters)
        or session.marks.owner_of(target) is not None
    ):
        return
    base = private_api.base_of(target) if private_api.is_view(target) else None
    if not any(_is_known(session, it) for it in (base, target) if it is not None):
        edge_of(session, target)


def _reshaped(session: Session, target: torch.Tensor, mark: Mark) -> None:
    """Record an untracked change of a tensor's shape; its memory is unchanged, and a leaf stays the same leaf."""
    if target.requires_grad:
        session.marks.move(target)
    else:
        session.marks.remember(target, mark)
    _emit_shown(session, session.marks.written(target).moved, mark.node)


_RESHAPING = {
    "t", "transpose", "swapaxes", "swapdims", "squeeze", "unsqueeze", "resize", "resize_as", "as_strided",
}  # fmt: skip
"""Operations that change a tensor's shape in place."""


def _is_known(session: Session, tensor: torch.Tensor) -> bool:
    """Return whether a tensor was announced, or was only waiting for its first values."""
    if session.marks.of_tensor(tensor) is not None:
        return True
    return session.marks.birthplace(tensor) > 0 and not isinstance(tensor, torch.nn.Parameter)


def grad_changed(session: Session, written: torch.Tensor, *, zeroed: bool = False) -> None:
    """Record the new value of every ``.grad`` in memory that was written to; `zeroed` if zeros were written."""
    for owner in session.marks.owners(written):
        mark, grad = session.marks.of(owner), grad_of(owner)
        if mark is not None and grad is not None:
            value = mark.recorded = session.value(grad)
            is_whole = written.numel() >= grad.numel()  # else other elements may be left: ``p.grad[:10].zero_()``
            is_zero = (zeroed and is_whole) or (not isinstance(value, AwaitedValue) and _is_zero(value))
            how, stack = "zero" if is_zero else "in place", session.channel.stack()
            event = GradSet(mark.node, owner.output_nr, how, value, stack)
            if isinstance(value, AwaitedValue):  # it is known before the event is written
                value.when_known(partial(_call_zero, event))
            session.channel.emit(event)


def _call_zero(event: GradSet, value: Value) -> None:
    if _is_zero(value):
        force_setattr(event, "how", "zero")


def _is_zero(value: Value) -> bool:
    numbers = value.array()
    if numbers is not None:
        return not numbers.any()
    stats = value.statistics()
    return stats is not None and stats.zero == value.size


def has_other_ranks() -> bool:
    """Return whether this process is in a process group, whose code averages gradients unobserved."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def emit_averaged(session: Session, leaves: Iterable[torch.Tensor]) -> None:
    """Record the gradients that differ from their last recorded value: other ranks have contributed since."""
    for leaf in leaves:
        mark = session.marks.of_tensor(leaf)
        grad = None if mark is None else grad_attribute(leaf)
        if mark is None or grad is None:
            continue
        if session.value.is_hidden(grad):
            continue
        value = session.value(grad)
        if value != mark.recorded:
            mark.recorded = value
            session.channel.emit(GradSet(mark.node, 0, "in place", value, session.channel.stack()))


def emit_written(session: Session, tensor: torch.Tensor, node: int) -> None:
    """Record the new content of a tensor's memory, and of each tensor whose value does not follow from it."""
    emit_all_written(session, ((tensor, node),))


def emit_all_written(session: Session, tensors: Iterable[tuple[torch.Tensor, int]]) -> None:
    """Record the new contents of several tensors' memories, each with its writer. All have been written by now."""
    parts_written: set[int] = set()
    memories_written: set[int] = set()
    for tensor, node in tensors:
        if session.captures.is_noting:
            session.captures.note(tensor)
        written, version = session.marks.written(tensor), version_of(tensor)
        parts = [it for it in written.parts if id(it) not in parts_written and session.marks.of(it) is not None]
        parts_written.update(map(id, parts))
        for part in parts:
            _emit_shown(session, (part,), node if overlap(as_it_lies(part), as_it_lies(tensor)) else 0)
        if written.number and not (written.parts and written.number in memories_written):
            memories_written.add(written.number)
            value = session.value.memory_of(tensor) if written.whole is None else session.value.memory(written.whole)
            session.channel.emit(StorageWritten(written.number, node, version, value))
        _emit_shown(session, written.moved, node)


def _emit_shown(
    session: Session, tensors: Iterable[torch.Tensor], writer: int = 0, devices: tuple[str, str] = ("", "")
) -> None:
    """Record the values of tensors that do not follow from the content of their memory: moved tensors, and parts.

    `devices` are the source and target devices if they differ.
    """
    for tensor in tensors:
        node, output_nr = edge_of(session, tensor)
        version, stack = version_of(tensor), session.channel.stack()
        session.channel.emit(DataSet(node, output_nr, version, session.value(tensor), writer or node, stack, *devices))


def emit_changed(session: Session, operands: Iterable[object]) -> None:
    """Record the new values of the announced operands that a call itself wrote to."""
    for operand in operands:
        mark = session.marks.of_tensor(operand) if isinstance(operand, torch.Tensor) else None
        if isinstance(operand, torch.Tensor) and mark is not None:
            emit_written(session, operand, mark.node)


def set_data(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Wrap ``tensor.data = value``: the tensor has other memory afterwards, perhaps with another dtype and shape."""
    tensor: torch.Tensor = args[0]
    with without_overrides():
        known, source = session.marks.of(tensor), device_of(tensor)
    result = function(*args, **kwargs)
    with without_overrides():
        owner = session.marks.owner_of(tensor)
        if owner is not None and grad_of(owner) is tensor:
            session.marks.own(tensor, owner)
            grad_changed(session, tensor)
        if known is not None:
            session.marks.move(tensor)
            device = device_of(tensor)
            _emit_shown(session, (tensor,), devices=("", "") if device == source else (str(source), str(device)))
    return result


def _tracked_write(session: Session, target: torch.Tensor, call: OperationCall) -> None:
    """Announce a tracked in-place write, which made the tensor, or its base, an output of the operation."""
    base = private_api.base_of(target) if private_api.is_view(target) else None
    if base is not None and base.grad_fn is not None and session.marks.of_node(base.grad_fn) is None:
        mark = visit(session, base.grad_fn, {base.output_nr: base}, call)
    else:
        mark = visit(session, target.grad_fn, {target.output_nr: target}, call)
    emit_written(session, target, mark.node)
    mark_of(session, target)
