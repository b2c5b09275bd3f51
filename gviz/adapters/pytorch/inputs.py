"""Which tensors a graph node computes with: where its edges lead, and the operands of its call that need no gradient.

PyTorch keeps no edge to the latter. Of a call that made one node its arguments tell. Of one that made several, what the
nodes saved for their rules tells which of them uses which operand; the rest is used somewhere within, and is said to be
an input of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from gviz.adapters.pytorch import private
from gviz.adapters.pytorch.created import Call, Operand, Untracked, dtype_beside, mask, number, untracked
from gviz.adapters.pytorch.marks import Mark
from gviz.adapters.pytorch.operations import Operation
from gviz.adapters.pytorch.session import Session
from gviz.adapters.pytorch.values import as_it_lies
from gviz.events import Edge

Ends = Sequence[tuple[Mark | None, int]]
"""What the entries of a node's ``next_functions`` lead to, and to which output of it."""

_UNKNOWN: Edge = (0, 0)


class Inputs(NamedTuple):
    """The inputs of a node by slot, the names of slots that its operation does not have, and what must live with it."""

    edges: list[Edge]
    further: list[str]
    kept: list[Mark]


def inputs_of(
    session: Session, node: Any, ends: Ends, operation: Operation, call: Call, outputs: Mapping[int, torch.Tensor], *,
    alone: bool,
) -> Inputs:  # fmt: skip
    """The inputs of a node that `call` made, `alone` or with others; `outputs` are at hand of its result."""
    found = _at_ends(ends, operation)
    inputs = Inputs(found, [], [])
    if not call.untracked and _UNKNOWN not in found:
        return inputs
    if call.in_place and outputs and found[:1] == [_UNKNOWN]:
        before = session.marks.of_tensor(next(iter(outputs.values())))
        found[0] = _UNKNOWN if before is None else (before.node, 0)
    if _UNKNOWN in found or (call.untracked and not alone):
        _link_saved(session, node, operation, call.untracked, inputs)
    rest = [it for it in call.untracked if not it.linked] if outputs else []
    if rest:
        taken = [it for it in rest if alone or not isinstance(it.operand, torch.Tensor)]
        _link_arguments(session, operation, taken, inputs, next(iter(outputs.values())))
        _link_the_rest(session, call.name, [it for it in rest if not it.linked], inputs)
    while found and found[-1] == _UNKNOWN and not _is_used(node, operation, len(found) - 1, alone=alone):
        found.pop()
    return inputs


def _is_used(node: Any, operation: Operation, slot: int, *, alone: bool) -> bool:
    """Whether a gap is a tensor that is not known, rather than an argument that was not given."""
    places = operation.slots_of(len(node.next_functions))
    if slot not in places:
        return False
    leads_on = node.next_functions[places.index(slot)][0] is not None
    return (
        leads_on or not alone or private.saved(node, operation.slots[min(slot, len(operation.slots) - 1)]) is not None
    )


def _at_ends(ends: Ends, operation: Operation) -> list[Edge]:
    """The inputs that gradients go to; the others are gaps."""
    found = [_UNKNOWN] * (len(ends) if operation.places is None else max(len(operation.slots), len(ends)))
    for slot, (mark, output_nr) in zip(operation.slots_of(len(ends)), ends, strict=True):
        if mark is not None:
            found[slot] = mark.node, output_nr
    return found


def _link_saved(
    session: Session, node: Any, operation: Operation, untracked: Sequence[Untracked], inputs: Inputs
) -> None:
    """Link what the node keeps for its rule and is known: operands, as they are, as views or as autocast made them."""
    if operation.saved and private.cannot_unpack(node):
        session.report_lack(private.missing["_C._autograd.SavedTensor.data"])
        return
    for name in operation.saved:
        slot = operation.slots.index(name) if name in operation.slots else -1
        if inputs.edges[slot] != _UNKNOWN if slot >= 0 else not untracked:
            continue
        saved = private.saved(node, name)
        match = None if saved is None else next((it for it in untracked if _is_of(saved, it.operand)), None)
        if saved is not None and name == operation.drawn:
            inputs.kept.append(mask(session, saved))
            inputs.edges[slot] = inputs.kept[-1].node, 0
            continue
        if saved is None or (match is None and session.marks.of_tensor(saved) is None):
            continue
        if match is not None:
            match.linked = True
        edge = _edge_of_saved(session, saved, saved if match is None else match.operand, inputs)
        _put(inputs, slot if slot >= 0 else next(_gaps(inputs), len(inputs.edges)), name, edge)


def _is_of(saved: torch.Tensor, operand: Operand) -> bool:
    """Whether a saved tensor is an operand, a view of it, or what autocast made of it."""
    if saved is operand or not isinstance(operand, torch.Tensor):
        return saved is operand
    base = private.base_of(saved)
    if base is not None and (base is operand or base is private.base_of(operand)):
        return base is operand or saved.storage_offset() == operand.storage_offset()
    cast = saved.dtype is not operand.dtype and saved.shape == operand.shape and saved.is_floating_point()
    return cast and operand.is_floating_point() and torch.is_autocast_enabled(operand.device.type)


def _edge_of_saved(session: Session, saved: torch.Tensor, operand: Operand, inputs: Inputs) -> Edge:
    if isinstance(operand, torch.Tensor) and as_it_lies(saved).dtype is not as_it_lies(operand).dtype:
        inputs.kept.append(untracked(session, Call("to", (operand,)), (saved,), "inputs"))
        return inputs.kept[-1].node, 0
    return session.edge_of(saved)


def _link_arguments(
    session: Session, operation: Operation, given: Sequence[Untracked], inputs: Inputs, result: torch.Tensor
) -> None:
    """Fill the gaps with the arguments of their names, then in order."""
    slots = [operation.slots.index(it.name) if it.name in operation.slots else -1 for it in given]
    gaps = [slot for slot in _gaps(inputs) if slot not in slots]
    for it, slot in zip(given, slots, strict=True):
        if slot < 0 or inputs.edges[slot] != _UNKNOWN:
            slot = gaps.pop(0) if gaps else -1
        if slot >= 0:
            it.linked = True
            _put(inputs, slot, it.name, _edge_of_operand(session, it.operand, result, inputs))


def _edge_of_operand(session: Session, operand: Operand, result: torch.Tensor, inputs: Inputs) -> Edge:
    if isinstance(operand, torch.Tensor):
        return session.edge_of(operand)
    inputs.kept.append(number(session, operand, dtype_beside(result)))
    return inputs.kept[-1].node, 0


def _link_the_rest(session: Session, called: str, rest: Sequence[Untracked], inputs: Inputs) -> None:
    """Say of the operands that are used somewhere within the call that its result is made of them."""
    for it in rest:
        it.linked = True
        if isinstance(it.operand, torch.Tensor) and (edge := session.edge_of(it.operand)) not in inputs.edges:
            _put(inputs, len(inputs.edges), f"{it.name or 'input'} of {called}", edge)


def _gaps(inputs: Inputs) -> Iterator[int]:
    return (slot for slot, edge in enumerate(inputs.edges) if edge == _UNKNOWN)


def _put(inputs: Inputs, slot: int, name: str, edge: Edge) -> None:
    if slot < len(inputs.edges):
        inputs.edges[slot] = edge
    else:
        inputs.edges.append(edge)
        inputs.further.append(name)
