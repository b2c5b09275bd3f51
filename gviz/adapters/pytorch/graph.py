"""Turns tensors and graph nodes of PyTorch into the nodes of a trace.

A node is announced after what it depends on. One call may make several: those within it are found by walking back from
the result, and their values are not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gviz import site
from gviz.adapters.pytorch import operations, private
from gviz.adapters.pytorch.marks import KEY, Mark, grad_fn_of, is_leaf
from gviz.adapters.pytorch.operations import Operation
from gviz.adapters.pytorch.outputs import Attrs, is_accumulator, oddities, of_untracked, output
from gviz.adapters.pytorch.outputs import of_node as outputs_of
from gviz.adapters.pytorch.session import Session
from gviz.adapters.pytorch.watch import watch_accumulator, watch_node
from gviz.events import Attr, Edge, GradSet, Named, NodeCreated, NodeKind, OpSeen, Output

Ends = tuple[tuple[Mark | None, int], ...]
"""What the entries of a node's ``next_functions`` lead to, and to which output of it."""

UNKNOWN: Edge = (0, 0)
_TENSOR = OpSeen(0, "tensor", "", (), (), ())


@dataclass(frozen=True, slots=True)
class Call:
    """A call that made nodes: what it is called, its tensors and numbers in order, its other arguments by name."""

    name: str
    operands: Sequence[torch.Tensor | float]
    attrs: Attrs = ()
    in_place: bool = False


NO_CALL = Call("", ())


def edge_of(session: Session, tensor: torch.Tensor) -> Edge:
    """A tensor as an input: its node, announced now if nobody has, and which of its outputs it is."""
    node = grad_fn_of(tensor)
    if node is None:
        return (session.marks.of_tensor(tensor) or enter(session, tensor)).node, 0
    mark = session.marks.of_node(node)
    if mark is None:
        announce = border if session.is_partial else visit
        mark = announce(session, node, {tensor.output_nr: tensor}, NO_CALL)
    return mark.node, tensor.output_nr


def mark_of(session: Session, tensor: torch.Tensor) -> Mark:
    """The mark of a tensor's node, which is announced now if nobody has."""
    edge_of(session, tensor)
    found = session.marks.of(tensor)
    assert found is not None
    return found


def enter(session: Session, tensor: torch.Tensor) -> Mark:
    """Announce a tensor that no recorded operation made, and the ``.grad`` it already has."""
    channel = session.channel
    owner = session.marks.owner_of(tensor)
    base = private.base_of(tensor) if private.is_view(tensor) else None
    origin = edge_of(session, base)[0] if base is not None else 0
    attrs: list[tuple[str, Attr]] = [] if owner is None else [("grad_of", edge_of(session, owner)[0])]
    kind: NodeKind = "constant"
    needs_grad = tensor.requires_grad and is_leaf(tensor)
    if needs_grad:
        kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "leaf"
    mark = Mark(channel.next_node())
    outputs = (output(session, tensor, origin),)
    _say_created(
        session, mark, "tensor", _TENSOR, kind=kind, inputs=(), outputs=outputs,
        attrs=(*attrs, *oddities(tensor)), requires_grad=needs_grad,
        stack=session.marks.birthplace(tensor) if kind == "parameter" else None,
    )  # fmt: skip
    session.marks.remember(tensor, mark)
    if needs_grad:
        _enter_leaf(session, tensor, mark)
    return mark


def _enter_leaf(session: Session, tensor: torch.Tensor, mark: Mark) -> None:
    """Say what a leaf is called and which ``.grad`` it has already: it was made before this."""
    name = site.global_name(tensor)
    if name:
        session.channel.say(Named(mark.node, name))
    if tensor.grad is not None:
        session.marks.own(tensor.grad, tensor)
        session.channel.say(GradSet(mark.node, 0, "assigned", session.value(tensor.grad)))


def number(session: Session, value: float, dtype: torch.dtype) -> Mark:
    """Announce a Python number that became an operand."""
    mark = Mark(session.channel.next_node())
    outputs = (Output(session.value.number(value, dtype), session.channel.next_storage()),)
    _say_created(
        session, mark, "tensor", _TENSOR, kind="constant", inputs=(), outputs=outputs,
        attrs=(("number", True),), requires_grad=False,
    )  # fmt: skip
    return mark


def visit(session: Session, node: Any, outputs: Mapping[int, torch.Tensor], call: Call) -> Mark:
    """Announce a graph node that `call` made, with those of its `outputs` that are at hand, and all it depends on."""
    of_node = session.marks.of_node
    stack = [node]
    while True:
        top = stack[-1]
        edges = top.next_functions
        ends = tuple([(None if before is None else of_node(before), output_nr) for before, output_nr in edges])
        waiting = [edge[0] for edge, end in zip(edges, ends, strict=True) if edge[0] is not end[0] is None]
        stack.extend(waiting)
        if waiting:
            continue
        stack.pop()
        if not stack:
            return _made(session, top, ends, outputs, call)
        if of_node(top) is not None:  # several nodes waited for it
            continue
        if is_accumulator(top):
            _enter_accumulator(session, top)
        else:
            _made(session, top, ends, {}, NO_CALL)


def border(session: Session, node: Any, outputs: Mapping[int, torch.Tensor], call: Call) -> Mark:
    """Announce a graph node alone, where only a part of the graph is asked for: what it depends on is not in it."""
    of_node = session.marks.of_node
    ends = tuple([(None if before is None else of_node(before), nr) for before, nr in node.next_functions])
    return _made(session, node, ends, outputs, call)


def untracked(session: Session, call: Call, outputs: Sequence[torch.Tensor], why: str) -> Mark:
    """Announce an operation that autograd does not track, whose results are new tensors."""
    tensors = [operand for operand in call.operands if isinstance(operand, torch.Tensor)]
    operation = operations.untracked(call.name, len(call.operands), call.in_place)
    inputs, numbers = [], []
    for operand in call.operands:
        if isinstance(operand, torch.Tensor):
            inputs.append(edge_of(session, operand))
        else:
            made = number(session, operand, _dtype_beside(outputs[0]))
            numbers.append(made)
            inputs.append((made.node, 0))
    origin = inputs[0][0] if tensors and why in ("detach", "data") else 0
    mark = Mark(session.channel.next_node())
    described = tuple(of_untracked(session, tensor, inputs, origin, in_place=call.in_place) for tensor in outputs)
    _say_created(
        session, mark, operation, operation, kind="op", inputs=tuple(inputs), outputs=described,
        attrs=(*call.attrs, *oddities(outputs[0])), requires_grad=False, why=why,
    )  # fmt: skip
    return mark


def _made(session: Session, node: Any, ends: Ends, outputs: Mapping[int, torch.Tensor], call: Call) -> Mark:
    """Announce a graph node whose inputs are announced."""
    kept_for_rule = operations.kept_by(node)
    settings, saved = operations.settings(node, kept_for_rule), kept_for_rule.saved
    scaled = settings.get("alpha", 1) != 1 or settings.get("beta", 1) != 1
    operation = operations.of_node(kept_for_rule.grad_fn, call.name, len(ends), saved, call.in_place, scaled)
    places, kept = _inputs(session, ends, operation, call, outputs)
    described = outputs_of(session, node, outputs, places, in_place=call.in_place)
    mark = Mark(session.channel.next_node())
    attrs = (settings | dict(call.attrs)).items()
    first = next(iter(outputs.values()), None)
    shown = operations.cut(operation, len(places))
    _say_created(
        session, mark, shown, shown, kind="op", inputs=tuple(places), outputs=described,
        attrs=(*attrs, *(() if first is None else oddities(first))), requires_grad=True,
    )  # fmt: skip
    mark.kept = kept
    node.metadata[KEY] = mark
    watch_node(session, node, mark, ends, operation, keeps=bool(saved))
    return mark


def _inputs(
    session: Session, ends: Ends, operation: Operation, call: Call,
    outputs: Mapping[int, torch.Tensor],
) -> tuple[list[Edge], tuple[Mark, ...]]:  # fmt: skip
    """The inputs of a node by slot: its edges, and in their gaps the operands that need no gradient."""
    places = operation.places
    width = len(ends) if places is None else max(len(operation.slots), len(ends))
    found = [UNKNOWN] * width
    for place, (mark, output_nr) in enumerate(ends):
        if mark is not None:
            found[place if places is None else places[place]] = mark.node, output_nr
    if UNKNOWN not in found:
        return found, ()
    gaps = [slot for slot, edge in enumerate(found) if edge == UNKNOWN]
    kept: list[Mark] = []
    rest = [o for o in call.operands if not (isinstance(o, torch.Tensor) and o.requires_grad)]
    for slot, operand in zip(gaps, rest, strict=False):
        if isinstance(operand, torch.Tensor):
            found[slot] = edge_of(session, operand)
        else:
            kept.append(number(session, operand, _dtype_beside(next(iter(outputs.values())))))
            found[slot] = kept[-1].node, 0
    ruled = len(ends) if places is None else max((*places, -1)) + 1
    while len(found) > ruled and found[-1] == UNKNOWN:
        found.pop()
    return found, tuple(kept)


def _enter_accumulator(session: Session, node: Any) -> None:
    """A graph ends at a leaf: its accumulator, which lives as long as the graph, is the leaf's node."""
    leaf = node.variable
    mark = session.marks.of_tensor(leaf) or enter(session, leaf)
    session.marks.has_unnamed |= not mark.named and isinstance(leaf, torch.nn.Parameter)
    mark.uses = 0
    node.metadata[KEY] = mark
    watch_accumulator(session, node, mark, leaf)


def _dtype_beside(result: torch.Tensor) -> torch.dtype:
    """The dtype in which a number took part."""
    return result.dtype if result.is_floating_point() else torch.get_default_dtype()


def _say_created(
    session: Session, mark: Mark, key: object, op: OpSeen | Operation, *, kind: NodeKind, inputs: tuple[Edge, ...],
    outputs: tuple[Output, ...], attrs: Attrs, requires_grad: bool, why: str = "",
    stack: int | None = None,
) -> None:  # fmt: skip
    channel, thread = session.channel, session.thread
    number = channel.op(key, lambda number: _numbered(op, number))
    scope = thread.scopes[-1] if thread.scopes else 0
    if stack is None:
        stack = channel.stack(3)
    channel.say(
        NodeCreated(mark.node, number, kind, inputs, outputs, attrs, requires_grad, why, stack, scope, thread.during)
    )
    mark.said(channel)


def _numbered(op: OpSeen | Operation, number: int) -> OpSeen:
    if isinstance(op, Operation):
        return op.describe(number)
    return OpSeen(number, op.name, op.grad_fn, op.slots, op.rules, op.saved, op.formula)
