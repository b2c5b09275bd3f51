"""Turns PyTorch's tensors and graph nodes into nodes of the trace, and finds the inputs of each.

A node is announced after its dependencies. One call may create several nodes: the inner ones are found by walking back
from the result, and their values are unknown.

The inputs of a node (`inputs_of`) come from the edges of its ``grad_fn``. PyTorch keeps no edge to an operand that
needs no gradient. If the call created one node, the arguments show the operand. If it created several, the tensors that
the nodes saved for their backward rules show which node uses which operand. An operand that remains is used somewhere
inside the call, and is recorded as an input of the result. For example ``F.linear(x, w, b)`` with an ``x`` that needs
no gradient makes one ``AddmmBackward`` with edges to ``w`` and ``b``; ``x`` comes from the arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace

from gviz.adapters.pytorch import operation_catalog, private_api
from gviz.adapters.pytorch.gradient_hooks import Target, watch_accumulator, watch_node
from gviz.adapters.pytorch.node_creation import (
    NO_CALL,
    TENSOR,
    Operand,
    OperationCall,
    UntrackedOperand,
    dtype_for_number,
    emit_created,
    is_accumulator,
    mask,
    number,
    oddities,
    output,
    untracked,
)
from gviz.adapters.pytorch.node_creation import of_node as outputs_of
from gviz.adapters.pytorch.node_identity import Mark
from gviz.adapters.pytorch.operation_catalog import Operation
from gviz.adapters.pytorch.recording_state import Session
from gviz.adapters.pytorch.tensor_properties import grad_attribute, grad_fn_of, is_leaf, version_of
from gviz.adapters.pytorch.value_capture import as_it_lies
from gviz.events import Attr, Edge, GradSet, Named, NodeKind, RequiresGradSet
from gviz.source import variables_of_objects
from gviz.values.value import Value


def edge_of(session: Session, tensor: torch.Tensor) -> Edge:
    """Return the edge to a tensor: its node, announced now if it is new, and the number of the output."""
    node = grad_fn_of(tensor)
    if node is None:
        return (session.marks.of_tensor(tensor) or _announce_external(session, tensor)).node, session.marks.output_nr(
            tensor
        )
    mark = session.marks.of_node(node)
    if mark is None:
        announce = border if session.is_partial else visit
        mark = announce(session, node, {tensor.output_nr: tensor}, NO_CALL)
    if tensor.output_nr >= mark.width:
        return (session.marks.of_tensor(tensor) or enter(session, tensor)).node, 0
    return mark.node, tensor.output_nr


def mark_of(session: Session, tensor: torch.Tensor) -> Mark:
    """Return the mark of a tensor's node, which is announced now if it is new."""
    edge_of(session, tensor)
    mark = session.marks.of(tensor)
    assert mark is not None
    return mark


def _announce_external(session: Session, tensor: torch.Tensor) -> Mark:
    """Announce a tensor whose creation was not observed, and record its name in the program."""
    mark = enter(session, tensor)
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    # it may belong to a model that is never called, such as a copy of one
    if is_parameter and session.look_for_names is None:
        session.marks.add_unnamed(tensor)
    name = variables_of_objects.global_name(tensor) if is_parameter else _first_name(session, tensor)
    if name:
        session.channel.emit(Named(mark.node, name))
    return mark


def _first_name(session: Session, tensor: torch.Tensor) -> str:
    """Return a tensor's name in the program.

    Empty if the line that made the tensor is known, or if it is another tensor's ``.grad``."""
    known = session.marks.birthplace(tensor) or session.marks.owner_of(tensor) is not None
    return "" if known else variables_of_objects.first_name(tensor)


def enter(session: Session, tensor: torch.Tensor) -> Mark:
    """Announce a tensor that no recorded operation made, and the ``.grad`` it already has."""
    channel = session.channel
    owner = session.marks.owner_of(tensor)
    base = private_api.base_of(tensor) if private_api.is_view(tensor) else None
    if base is not None and owner is None and not tensor.requires_grad:
        return _enter_view(session, tensor, base)
    origin = edge_of(session, base)[0] if base is not None else 0
    attrs: list[tuple[str, Attr]] = [] if owner is None else [("grad_of", edge_of(session, owner)[0])]
    if (version := session.marks.version_at_birth(tensor)) >= 0:
        attrs.append(("made_at_version", version))
    needs_grad = tensor.requires_grad and is_leaf(tensor)
    kind: NodeKind = "leaf" if needs_grad else "constant"
    if isinstance(tensor, torch.nn.Parameter):
        kind = "parameter"
    mark = Mark(channel.next_node())
    outputs = (output(session, tensor, origin),)
    emit_created(
        session, mark, "tensor", TENSOR, kind=kind, inputs=(), outputs=outputs,
        attrs=(*attrs, *oddities(tensor)), requires_grad=needs_grad,
        stack=session.marks.birthplace(tensor) or (0 if kind == "parameter" else None),
    )  # fmt: skip
    session.marks.remember(tensor, mark)
    if needs_grad:
        _enter_leaf(session, tensor, mark)
    elif frozen_at := session.marks.frozen_at(tensor):
        channel.emit(RequiresGradSet(mark.node, False, frozen_at))
    return mark


def _enter_view(session: Session, tensor: torch.Tensor, base: torch.Tensor) -> Mark:
    """Announce a view that was made unobserved: as expand if it has more elements than its base, else as view."""
    shown = as_it_lies(tensor)
    name = "expand" if shown.numel() > as_it_lies(base).numel() else "view"
    call = OperationCall(name, (base,), (("size", tuple(shown.shape)),))
    mark = untracked(session, call, (tensor,), "no_grad" if base.requires_grad else "inputs")
    session.marks.remember(tensor, mark)
    return mark


def _enter_leaf(session: Session, tensor: torch.Tensor, mark: Mark) -> None:
    """Record the ``.grad`` that a leaf already has."""
    grad = grad_attribute(tensor)
    if grad is not None:
        session.marks.own(grad, tensor)
        session.channel.emit(GradSet(mark.node, 0, "assigned", session.value(grad)))


def visit(
    session: Session, node: Any, outputs: Mapping[int, torch.Tensor], call: OperationCall, place: int | None = None
) -> Mark:
    """Announce a graph node that `call` made, and first everything it depends on; `outputs` are its known outputs.

    `place` is the number of the call stack; None is the current one.
    """
    of_node = session.marks.of_node
    stack, alone = [node], True
    if place is None:
        place = session.channel.stack()
    if not private_api.knows_outputs and node not in call.widths:
        call = replace(call, widths={**call.widths, **widths(session, [node])})
    while True:
        top = stack[-1]
        ends, waiting = [], []
        for before, output_nr in top.next_functions:
            mark = None if before is None else of_node(before)  # not the node's metadata: marks may be kept elsewhere
            if mark is None is not before:
                waiting.append(before)
            ends.append((None if mark is not None and output_nr >= mark.width else mark, output_nr))
        if waiting:
            stack += waiting
            alone = alone and all(map(is_accumulator, waiting))
            continue
        stack.pop()
        if not stack:
            return _announce_node(session, top, ends, outputs, call, place, alone=alone)
        if of_node(top) is not None:  # several nodes depend on it
            continue
        if is_accumulator(top):
            _enter_accumulator(session, top)
        else:
            _announce_node(session, top, ends, {}, call, place, alone=False)


def inner_first(session: Session, results: Collection[Any]) -> list[Any]:
    """Return the graph nodes of a call's results so that one on which another depends comes before it.

    ``h, c = lstm_cell(…)`` computes h from c. Visited first, h would announce the node of c as internal to the call.
    """
    counts: dict[Any, int] = {}
    for result in results:
        stack, seen = [result], {result}
        while stack:
            for before, _ in stack.pop().next_functions:
                if before is not None and before not in seen and session.marks.of_node(before) is None:
                    seen.add(before)
                    stack.append(before)
        counts[result] = sum(node in seen for node in results)
    return sorted(results, key=counts.__getitem__)  # what depends on another depends on all that this one does


def widths(session: Session, roots: Sequence[Any]) -> dict[Any, int]:
    """Return the least number of outputs of each unannounced node behind `roots`: as many as the graph uses."""
    counts, stack = dict.fromkeys(roots, 1), [*roots]
    while stack:
        for before, output_nr in stack.pop().next_functions:
            if before is None or session.marks.of_node(before) is not None:
                continue
            if before not in counts:
                stack.append(before)
            counts[before] = max(counts.get(before, 1), output_nr + 1)
    return counts


def border(session: Session, node: Any, outputs: Mapping[int, torch.Tensor], call: OperationCall) -> Mark:
    """Announce a graph node without its dependencies, for recordings of only a part of the graph."""
    of_node = session.marks.of_node
    ends = [(None if before is None else of_node(before), nr) for before, nr in node.next_functions]
    return _announce_node(session, node, ends, outputs, call, session.channel.stack(), alone=True)


def _announce_node(
    session: Session, node: Any, ends: Ends, outputs: Mapping[int, torch.Tensor], call: OperationCall, place: int, *,
    alone: bool,
) -> Mark:  # fmt: skip
    """Announce a graph node made at a source position. A node without `outputs` is internal to the call."""
    kept_for_rule = operation_catalog.kept_by(node)
    grad_fn, saved = kept_for_rule.grad_fn, kept_for_rule.saved
    settings = operation_catalog.settings(node, kept_for_rule)
    scaled = bool(settings) and (settings.get("alpha", 1) != 1 or settings.get("beta", 1) != 1)
    own = call if outputs else NO_CALL
    more = call.name != "" and not (outputs and call.is_last)
    operation = operation_catalog.of_node(
        grad_fn, own.name, len(ends), saved, own.tensors, own.in_place, scaled, call.name, more
    )
    edges, targets = _edges_and_targets(ends, operation)
    inputs = inputs_of(session, node, edges, operation, call, outputs, alone=alone)
    described = outputs_of(
        session, node, outputs, inputs.edges, in_place=own.in_place, is_first=own.given is not None,
        is_new=call.name != "", width=call.widths.get(node, 1) if call.widths else 1,
    )  # fmt: skip
    mark = Mark(session.channel.next_node())
    attrs = tuple((settings | dict(own.attrs) if own.attrs else settings).items()) if own.attrs or settings else ()
    if outputs:
        attrs += oddities(next(iter(outputs.values())))
    if grad_fn in _CONVERTING and (kinds := _converted(node, outputs)):
        operation, facts = operation_catalog.conversion(operation, *kinds)
        attrs = tuple(({name: it for name, it in attrs if not name.startswith("argument")} | facts).items())
    elif grad_fn in _CONVERTING:
        operation = operation_catalog.unknown_conversion(operation)
    shown = operation_catalog.with_inputs(operation, len(inputs.edges), tuple(inputs.further))
    is_function = saved == operation_catalog.SAVED_BY_FUNCTION
    if is_function:
        shown = operation_catalog.with_saved(shown, private_api.names_saved_by_function(node))
    given = _input_values(session, node, own, inputs.edges) if own.given else ()
    emit_created(
        session, mark, shown, shown, kind="op", inputs=tuple(inputs.edges), outputs=described,
        attrs=attrs, requires_grad=True, stack=place, given=given,
    )  # fmt: skip
    mark.kept, mark.is_first = inputs.kept, own.given is not None
    if not private_api.knows_outputs:
        mark.width = len(described)
    watch_node(session, node, mark, targets, keeps=bool(saved), is_function=is_function)
    return mark


_CONVERTING = {"ToCopyBackward0", "CopyBackwards"}


def _converted(
    node: Any, outputs: Mapping[int, torch.Tensor]
) -> tuple[operation_catalog.TensorType, operation_catalog.TensorType] | None:
    """Return the input and output of a conversion node, or None if either is unknown."""
    before, output_nr = node.next_functions[-1]
    known = getattr(before, "_input_metadata", ())
    source = before.variable if before is not None and is_accumulator(before) else None
    if source is None and output_nr < len(known):
        source = known[output_nr]
    result = next(iter(outputs.values()), None) if outputs else next(iter(getattr(node, "_input_metadata", ())), None)
    return None if source is None or result is None else (source, result)


def _input_values(session: Session, node: Any, call: OperationCall, inputs: Sequence[Edge]) -> tuple[Value | None, ...]:
    """Return the input values of one of the first calls of a custom function, as they were passed in."""
    unwritten = (it for it in call.given or () if version_of(it[0]) == it[1] and grad_fn_of(it[0]) is not node)
    known = {edge_of(session, tensor): value for tensor, _, value in unwritten}
    return tuple(known.get(edge) for edge in inputs) if known else ()


def entered_end(session: Session, leaf: torch.Tensor) -> Any:
    """Return the accumulator of a leaf, announced now if no graph ends there.

    The caller must keep it alive while it is needed.
    """
    node = torch.autograd.graph.get_gradient_edge(leaf).node
    if session.marks.of_node(node) is None:
        _enter_accumulator(session, node)
    return node


def _enter_accumulator(session: Session, node: Any) -> None:
    """Map an accumulator to its leaf's node. The accumulator lives as long as the graph."""
    leaf = node.variable
    mark = session.marks.of_tensor(leaf) or _announce_external(session, leaf)
    if not mark.named and isinstance(leaf, torch.nn.Parameter):
        session.marks.add_unnamed(leaf)
    mark.uses = 0
    watch_accumulator(session, node, mark, leaf)


Ends = Sequence[tuple[Mark | None, int]]
"""Where the entries of a node's ``next_functions`` lead, and to which output."""

_UNKNOWN: Edge = (0, 0)


class Inputs(NamedTuple):
    """The inputs of a node by slot.

    `further` names slots that its operation does not have; `kept` are marks that must stay alive."""

    edges: list[Edge]
    further: list[str]
    kept: list[Mark]


def inputs_of(
    session: Session, node: Any, edges: list[Edge], operation: Operation, call: OperationCall,
    outputs: Mapping[int, torch.Tensor], *, alone: bool,
) -> Inputs:  # fmt: skip
    """Return the inputs of a node that `call` made, `alone` or with others, from those that gradients flow to.

    `outputs` are known if it is the result.
    """
    inputs = Inputs(edges, [], [])
    if not call.untracked and _UNKNOWN not in edges:
        return inputs
    if call.in_place and outputs and edges[:1] == [_UNKNOWN]:
        before = session.marks.of_tensor(next(iter(outputs.values())))
        edges[0] = _UNKNOWN if before is None else (before.node, 0)
    if _UNKNOWN in edges or (call.untracked and not alone):
        _link_saved(session, node, operation, call.untracked, inputs)
    rest = [it for it in call.untracked if not it.linked] if outputs else []
    if rest:
        taken = [it for it in rest if alone or not isinstance(it.operand, torch.Tensor)]
        _link_arguments(session, operation, taken, inputs, next(iter(outputs.values())))
        _link_the_rest(session, call.name, [it for it in rest if not it.linked], inputs)
    while edges and edges[-1] == _UNKNOWN and not _is_used(node, operation, len(edges) - 1, alone=alone):
        edges.pop()
    return inputs


def _is_used(node: Any, operation: Operation, slot: int, *, alone: bool) -> bool:
    """Return whether a gap is an unknown tensor, rather than an argument that was not passed."""
    places = operation.slots_of(len(node.next_functions))
    if slot not in places:
        return False
    leads_on = node.next_functions[places.index(slot)][0] is not None
    return (
        leads_on
        or not alone
        or private_api.saved(node, operation.slots[min(slot, len(operation.slots) - 1)]) is not None
    )


def _edges_and_targets(ends: Ends, operation: Operation) -> tuple[list[Edge], list[Target | None]]:
    """Return the inputs of a node that gradients flow to (the others stay gaps), and where each gradient goes."""
    count, places = len(ends), operation.places
    edges = [_UNKNOWN] * (count if places is None else max(len(operation.slots), count))
    targets: list[Target | None] = []
    for slot, (mark, output_nr) in zip(range(count) if places is None else places, ends, strict=True):
        if mark is None:
            targets.append(None)
        else:
            mark.uses += 1
            edges[slot] = mark.node, output_nr
            targets.append((slot, mark, output_nr))
    return edges, targets


def _link_saved(
    session: Session, node: Any, operation: Operation, untracked: Sequence[UntrackedOperand], inputs: Inputs
) -> None:
    """Link saved tensors that the trace knows: operands, views of them, or what autocast made of them."""
    if operation.saved and private_api.cannot_unpack(node):
        session.report_lack(private_api.missing["_C._autograd.SavedTensor.data"])
        return
    for name in operation.saved:
        slot = operation.slots.index(name) if name in operation.slots else -1
        if inputs.edges[slot] != _UNKNOWN if slot >= 0 else not untracked:
            continue
        saved = private_api.saved(node, name)
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
    """Return whether a saved tensor is an operand, a view of it, or what autocast made of it."""
    if saved is operand or not isinstance(operand, torch.Tensor):
        return saved is operand
    base = private_api.base_of(saved)
    if base is not None and (base is operand or base is private_api.base_of(operand)):
        return base is operand or saved.storage_offset() == operand.storage_offset()
    cast = saved.dtype is not operand.dtype and saved.shape == operand.shape and saved.is_floating_point()
    return cast and operand.is_floating_point() and torch.is_autocast_enabled(operand.device.type)


def _edge_of_saved(session: Session, saved: torch.Tensor, operand: Operand, inputs: Inputs) -> Edge:
    if isinstance(operand, torch.Tensor) and as_it_lies(saved).dtype is not as_it_lies(operand).dtype:
        inputs.kept.append(untracked(session, OperationCall("to", (operand,)), (saved,), "inputs"))
        return inputs.kept[-1].node, 0
    return session.edge_of(saved)


def _link_arguments(
    session: Session, operation: Operation, arguments: Sequence[UntrackedOperand], inputs: Inputs, result: torch.Tensor
) -> None:
    """Fill the gaps with the arguments, first by name, then in order."""
    slots = [operation.slots.index(it.name) if it.name in operation.slots else -1 for it in arguments]
    gaps = [slot for slot in _gaps(inputs) if slot not in slots]
    for it, slot in zip(arguments, slots, strict=True):
        if slot < 0 or inputs.edges[slot] != _UNKNOWN:
            slot = gaps.pop(0) if gaps else -1
        if slot >= 0:
            it.linked = True
            _put(inputs, slot, it.name, _edge_of_operand(session, it.operand, result, inputs))


def _edge_of_operand(session: Session, operand: Operand, result: torch.Tensor, inputs: Inputs) -> Edge:
    if isinstance(operand, torch.Tensor):
        return session.edge_of(operand)
    inputs.kept.append(number(session, operand, dtype_for_number(result)))
    return inputs.kept[-1].node, 0


def _link_the_rest(session: Session, called: str, rest: Sequence[UntrackedOperand], inputs: Inputs) -> None:
    """Record the operands that are used somewhere inside the call as inputs of its result."""
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
