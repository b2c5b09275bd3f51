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
from gviz.adapters.pytorch.marks import KEY, Mark
from gviz.adapters.pytorch.operations import Operation
from gviz.adapters.pytorch.private import without_modes
from gviz.adapters.pytorch.session import Session
from gviz.adapters.pytorch.values import has_numbers, name_of, plain_sizes
from gviz.adapters.pytorch.watch import watch_accumulator, watch_node
from gviz.events import Attr, Edge, GradSet, Named, NodeCreated, NodeKind, OpSeen, Output
from gviz.values import Value

Attrs = tuple[tuple[str, Attr], ...]
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
    node = tensor.grad_fn
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
    found = session.marks.of_tensor(tensor) if tensor.grad_fn is None else session.marks.of_node(tensor.grad_fn)
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
    if tensor.requires_grad:
        kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "leaf"
    mark = Mark(channel.next_node())
    outputs = (output(session, tensor, origin, new=False),)
    _say_created(
        session, mark, "tensor", _TENSOR, kind=kind, inputs=(), outputs=outputs,
        attrs=(*attrs, *_oddities(tensor)), requires_grad=tensor.requires_grad,
        stack=session.marks.birthplace(tensor) if kind == "parameter" else None,
    )  # fmt: skip
    session.marks.remember(tensor, mark)
    if tensor.requires_grad and tensor.is_leaf:
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
    described = tuple(_untracked_output(session, tensor, inputs, origin, call) for tensor in outputs)
    _say_created(
        session, mark, operation, operation, kind="op", inputs=tuple(inputs), outputs=described,
        attrs=(*call.attrs, *_oddities(outputs[0])), requires_grad=False, why=why,
    )  # fmt: skip
    return mark


def output(session: Session, tensor: torch.Tensor, origin: int, *, new: bool) -> Output:
    """A tensor as an output of a node, which is a view of the node `origin` unless that is 0."""
    value = session.value(tensor)
    number = session.marks.storage(tensor, new=new)
    version = version_of(tensor)
    if tensor.layout is not torch.strided or tensor.is_nested or (not origin and tensor.is_contiguous()):
        return Output(value, number, version)
    offset, strides = int(tensor.storage_offset()), tuple(tensor.stride())
    return Output(value, number, version, origin, offset, strides)


def version_of(tensor: torch.Tensor) -> int:
    """How often a tensor's memory was written; 0 for those that do not count."""
    return 0 if tensor.is_inference() else private.version(tensor)


def _untracked_output(
    session: Session, tensor: torch.Tensor, inputs: Sequence[Edge], origin: int, call: Call
) -> Output:
    if call.in_place:
        return output(session, tensor, 0, new=False)
    is_view = private.is_view(tensor)
    return output(session, tensor, (origin or inputs[0][0]) if (is_view or origin) and inputs else 0,
                  new=not (is_view or origin))  # fmt: skip


def _made(session: Session, node: Any, ends: Ends, outputs: Mapping[int, torch.Tensor], call: Call) -> Mark:
    """Announce a graph node whose inputs are announced."""
    kept_for_rule = operations.kept_by(node)
    settings, saved = operations.settings(node, kept_for_rule), kept_for_rule.saved
    scaled = settings.get("alpha", 1) != 1 or settings.get("beta", 1) != 1
    operation = operations.of_node(kept_for_rule.grad_fn, call.name, len(ends), saved, call.in_place, scaled)
    places, kept = _inputs(session, ends, operation, call, outputs)
    described = _outputs(session, node, outputs, places, in_place=call.in_place)
    mark = Mark(session.channel.next_node())
    attrs = (settings | dict(call.attrs)).items()
    first = next(iter(outputs.values()), None)
    shown = operations.cut(operation, len(places))
    _say_created(
        session, mark, shown, shown, kind="op", inputs=tuple(places), outputs=described,
        attrs=(*attrs, *(() if first is None else _oddities(first))), requires_grad=True,
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


def _outputs(
    session: Session, node: Any, outputs: Mapping[int, torch.Tensor], inputs: Sequence[Edge], *, in_place: bool
) -> tuple[Output, ...]:
    """The outputs of a node: those at hand with their values, of the others shape and dtype."""
    made = getattr(node, "_input_metadata", ())
    described = []
    for output_nr in range(max(len(made), *(nr + 1 for nr in outputs), 1)):
        tensor = outputs.get(output_nr)
        if tensor is not None:
            is_view = private.is_view(tensor)
            origin = inputs[0][0] if is_view and inputs and not in_place else 0
            described.append(output(session, tensor, origin, new=not (is_view or in_place)))
        elif (described_weight := _transposed(session, node, inputs)) is not None:
            described.append(described_weight)
        else:
            described.append(_unseen(session, made[output_nr] if output_nr < len(made) else None))
    return tuple(described)


def _transposed(session: Session, node: Any, inputs: Sequence[Edge]) -> Output | None:
    """What the transposition of a leaf gave: the weight of a linear layer, within its call."""
    if type(node).__name__ != "TBackward0" or not is_accumulator(node.next_functions[0][0]):
        return None
    leaf = node.next_functions[0][0].variable
    mark, version = session.marks.of_tensor(leaf), version_of(leaf)
    if not has_numbers(leaf):
        return None
    if mark is None or mark.looked_at is None or mark.looked_at[0] != version:
        with without_modes():
            value = session.value(leaf.detach().t())
        if mark is not None:
            mark.looked_at = (version, value)
    else:
        value = mark.looked_at[1]
    storage = session.marks.storage(leaf, new=False)
    return Output(value, storage, version, inputs[0][0], int(leaf.storage_offset()), leaf.stride()[::-1])


def _unseen(session: Session, made: Any) -> Output:
    """An output of which only the shape is known, if that."""
    session.not_seen("forward" if session.wanted.phase == "backward" else "composite")
    try:
        shape = getattr(made, "shape", None)
    except RuntimeError:  # nested: its parts have shapes, it has none
        shape = None
    if shape is None or plain_sizes(shape) != tuple(shape):
        return Output(None, session.channel.next_storage())
    return Output(Value(name_of(made.dtype), tuple(shape)), session.channel.next_storage())


def _enter_accumulator(session: Session, node: Any) -> None:
    """A graph ends at a leaf: its accumulator, which lives as long as the graph, is the leaf's node."""
    leaf = node.variable
    mark = session.marks.of_tensor(leaf) or enter(session, leaf)
    session.marks.has_unnamed |= not mark.named and isinstance(leaf, torch.nn.Parameter)
    mark.uses = 0
    node.metadata[KEY] = mark
    watch_accumulator(session, node, mark, leaf)


def _oddities(tensor: torch.Tensor) -> Attrs:
    """What is unusual about where a tensor's numbers lie."""
    if tensor.is_cpu and tensor.layout is torch.strided and not (tensor.is_quantized or tensor.is_nested):
        return ()
    found: list[tuple[str, Attr]] = [] if tensor.is_cpu else [("device", str(tensor.device))]
    if tensor.layout is not torch.strided:
        found.append(("layout", str(tensor.layout).removeprefix("torch.")))
    if tensor.is_nested:
        found.append(("nested", True))
    if tensor.is_quantized:
        found.append(("quantized", True))
    return tuple(found)


def is_accumulator(node: Any) -> bool:
    """Whether a graph node is the end of a graph at a leaf."""
    return type(node).__name__ == "AccumulateGrad"


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
