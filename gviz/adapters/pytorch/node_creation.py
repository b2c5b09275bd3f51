"""Emits the events for new nodes: operation, inputs, outputs, and which part of a call's result each is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import torch

from gviz.adapters.pytorch import operation_catalog, private_api
from gviz.adapters.pytorch.node_identity import Mark
from gviz.adapters.pytorch.operation_catalog import Operation
from gviz.adapters.pytorch.private_api import without_modes
from gviz.adapters.pytorch.recording_state import Session
from gviz.adapters.pytorch.tensor_properties import extent_in_memory, grad_fn_of, version_of
from gviz.adapters.pytorch.value_capture import as_it_lies, has_numbers, name_of
from gviz.events import Attr, Edge, NodeCreated, NodeKind, OpSeen, Output, Returned
from gviz.result_tensors import parts
from gviz.source.call_stack import called_by_the_program
from gviz.values.value import Value

TENSOR = OpSeen(0, "tensor", "", (), (), ())
Operand = torch.Tensor | float
InputValues = Sequence[tuple[torch.Tensor, int, Value]]


class UntrackedOperand(msgspec.Struct, eq=False):
    """An operand that no gradient flows to, with the name of its argument.

    `linked` becomes True once a node that the call made has it as an input.
    """

    name: str
    operand: Operand
    linked: bool = False


class OperationCall(msgspec.Struct, eq=False):
    """A call that made nodes: its name, its tensors and numbers in order, and its other arguments by name.

    `tensors` and `given` are set for custom functions only. `tensors` are the names of the arguments that are tensors.
    `given` has their values and versions, for the first calls only. `widths` is the least number of outputs of each
    node, for releases in which the nodes do not have it.
    `is_last` is False where another result of the call follows the one that is announced.
    It is not changed. There is one for each operation, so both are structures of msgspec, which are made at once.
    """

    name: str
    operands: Sequence[Operand]
    attrs: Attrs = ()
    in_place: bool = False
    untracked: Sequence[UntrackedOperand] = ()
    tensors: tuple[str, ...] = ()
    given: InputValues | None = None
    widths: Mapping[Any, int] = {}
    is_last: bool = True


NO_CALL = OperationCall("", ())


def number(session: Session, value: float, dtype: torch.dtype) -> Mark:
    """Announce a Python number that is an operand."""
    mark = Mark(session.channel.next_node())
    outputs = (Output(session.value.number(value, dtype), session.channel.next_storage()),)
    emit_created(
        session, mark, "tensor", TENSOR, kind="constant", inputs=(), outputs=outputs,
        attrs=(("number", True),), requires_grad=False,
    )  # fmt: skip
    return mark


def mask(session: Session, drawn: torch.Tensor) -> Mark:
    """Announce the mask that a dropout call drew."""
    mark = Mark(session.channel.next_node())
    emit_created(
        session, mark, "tensor", TENSOR, kind="constant", inputs=(), outputs=(output(session, drawn, 0),),
        attrs=(("mask", True), *oddities(drawn)), requires_grad=False,
    )  # fmt: skip
    return mark


def untracked(
    session: Session, call: OperationCall, outputs: Sequence[torch.Tensor], why: str, stack: int | None = None
) -> Mark:
    """Announce an operation that autograd does not track, whose results are new tensors."""
    tensors = [operand for operand in call.operands if isinstance(operand, torch.Tensor)]
    attrs, names = call.attrs, tuple(name for name, _ in call.attrs)
    operation = operation_catalog.untracked(call.name, len(call.operands), call.in_place, names)
    if tensors and call.name.rstrip("_") in operation_catalog.CONVERSIONS:
        operation, facts = operation_catalog.conversion(operation, as_it_lies(tensors[-1]), as_it_lies(outputs[0]))
        attrs = tuple(({name: it for name, it in attrs if not name.startswith("argument")} | facts).items())
        names = tuple(name for name, _ in attrs)
    inputs, numbers = [], []
    for operand in call.operands:
        if isinstance(operand, torch.Tensor):
            inputs.append(session.edge_of(operand))
        else:
            number_node = number(session, operand, dtype_for_number(outputs[0]))
            numbers.append(number_node)
            inputs.append((number_node.node, 0))
    origin = inputs[0][0] if tensors and why in ("detach", "data") else 0
    mark = Mark(session.channel.next_node())
    described = tuple(of_untracked(session, tensor, inputs, origin, in_place=call.in_place) for tensor in outputs)
    emit_created(
        session, mark, operation, operation, kind="op", inputs=tuple(inputs), outputs=described,
        attrs=(*attrs, *operation_catalog.defaults(operation, names), *oddities(outputs[0])), requires_grad=False,
        why=why, stack=stack,
    )  # fmt: skip
    return mark


def switched_off() -> str:
    """Return which mode disables autograd here, inference or no_grad."""
    return "inference" if torch.is_inference_mode_enabled() else "no_grad"


def dtype_for_number(result: torch.Tensor) -> torch.dtype:
    """Return the dtype in which a number was used."""
    result = as_it_lies(result)
    return result.dtype if result.is_floating_point() else torch.get_default_dtype()


def emit_created(
    session: Session, mark: Mark, key: object, op: OpSeen | Operation, *, kind: NodeKind, inputs: tuple[Edge, ...],
    outputs: tuple[Output, ...], attrs: Attrs, requires_grad: bool, why: str = "",
    stack: int | None = None, given: tuple[Value | None, ...] = (),
) -> None:  # fmt: skip
    """Emit `NodeCreated`. `why` is why the node is untracked; a `stack` of None is the current call stack."""
    channel, thread = session.channel, session.thread
    number = channel.known_op(key) or channel.op(key, lambda number: _numbered(op, number))
    scopes = thread.scopes
    channel.emit(
        NodeCreated(
            mark.node, number, kind, inputs, outputs, attrs, requires_grad, why,
            channel.stack() if stack is None else stack, scopes[-1] if scopes else 0, thread.running_step, given,
        )
    )  # fmt: skip
    mark.confirm(channel)


def _numbered(op: OpSeen | Operation, number: int) -> OpSeen:
    if isinstance(op, Operation):
        return op.describe(number)
    return msgspec.structs.replace(op, op=number)


Attrs = tuple[tuple[str, Attr], ...]


def output(
    session: Session, tensor: torch.Tensor, origin: int, look: Callable[[torch.Tensor], Value] | None = None
) -> Output:
    """Return a tensor as an output of a node. `origin` is the node it is a view of, or 0; `look` computes its value."""
    value = (look or session.value)(tensor)
    marks, version, shown = session.marks, version_of(tensor), as_it_lies(tensor)
    memory = marks.memory(tensor)
    number = marks.number_of(memory)
    if shown.layout is not torch.strided or shown.is_nested:
        return Output(value, number, version)
    shows_all, fills = extent_in_memory(shown)
    if memory is not None and (not shows_all or (fills and not origin)):
        marks.note_extent(memory, tensor, fills=shows_all)
    if not origin and fills:
        return Output(value, number, version)
    offset, strides = int(shown.storage_offset()), tuple(shown.stride())
    return Output(value, number, version, origin, offset, strides)


def of_untracked(
    session: Session, tensor: torch.Tensor, inputs: Sequence[Edge], origin: int, *, in_place: bool
) -> Output:
    """Return an output of an untracked operation; `origin` is the node it shares memory with, if known."""
    if in_place:
        return output(session, tensor, 0)
    shares = inputs and (origin or private_api.is_view(tensor))
    return output(session, tensor, (origin or inputs[0][0]) if shares else 0)


def of_node(
    session: Session, node: Any, outputs: Mapping[int, torch.Tensor], inputs: Sequence[Edge], *, in_place: bool,
    is_first: bool, is_new: bool, width: int,
) -> tuple[Output, ...]:  # fmt: skip
    """Return the outputs of a node: known outputs with their values, the others with shape and dtype only.

    With `is_new` the current call made the node, so the result that it saved is still unmodified. With `is_first` it is
    one of the first calls of a custom function, and values are kept whole. There are at least `width` outputs: PyTorch
    does not report all of them.
    """
    metadata = private_api.outputs_of(node)
    described = []
    count = len(metadata) or 1
    if width > count or (outputs and max(outputs) >= count):
        count = max([width, *(nr + 1 for nr in outputs)])
    for output_nr in range(count):
        tensor = outputs.get(output_nr)
        if tensor is not None:
            is_view = inputs and not in_place and private_api.is_view(tensor)
            look = session.value.of_first if is_first else session.value
            described.append(output(session, tensor, inputs[0][0] if is_view else 0, look))
        else:
            known = _transposed(session, node, inputs) if node.name() == "TBackward0" else None
            if known is None and is_new:
                known = _kept_result(session, node)
            described.append(known or _unseen(session, metadata[output_nr] if output_nr < len(metadata) else None))
    return tuple(described)


def _kept_result(session: Session, node: Any) -> Output | None:
    """Return the result of an operation inside a call, if the node saved it: the ``log_softmax`` of a loss."""
    if not session.hears_operations:
        return None
    result = private_api.saved(node, "result")
    return None if result is None or version_of(result) or not has_numbers(result) else output(session, result, 0)


def _transposed(session: Session, node: Any, inputs: Sequence[Edge]) -> Output | None:
    """Return the transpose of a leaf, such as the weight of a linear layer, inside its call."""
    end = node.next_functions[0][0]
    if not is_accumulator(end) or not has_numbers(leaf := end.variable):
        return None
    version, origin = version_of(leaf), inputs[0][0]

    def look() -> Output:
        with without_modes():
            value = session.value(leaf.detach().t())
        storage, strides = session.marks.storage(leaf), leaf.stride()[::-1]
        return Output(value, storage, version, origin, int(leaf.storage_offset()), strides)

    return session.marks.transposed(leaf, origin, version, look)


def _unseen(session: Session, metadata: Any) -> Output:
    """Return an output with an unknown value; its shape and dtype may be known."""
    session.not_seen("forward" if session.scope.phase == "backward" else "composite")
    if not private_api.knows_outputs:
        session.report_lack(private_api.missing["_C._functions.AccumulateGrad._input_metadata"])
    try:
        shape = tuple(metadata.shape) if metadata is not None else ()
    except RuntimeError:  # nested: its parts have shapes, it has none
        metadata = None
    is_known = metadata is not None and set(map(type, shape)) <= {int}
    return Output(_without_numbers(metadata.dtype, shape) if is_known else None, session.channel.next_storage())


@lru_cache(maxsize=4096)
def _without_numbers(dtype: torch.dtype, shape: tuple[int, ...]) -> Value:
    return Value(name_of(dtype), shape)


def oddities(tensor: torch.Tensor) -> Attrs:
    """Return what is unusual about a tensor's storage: device, layout, nested, quantized."""
    tensor = as_it_lies(tensor)
    if tensor.is_cpu and tensor.layout is torch.strided and not (tensor.is_quantized or tensor.is_nested):
        return ()
    attrs: list[tuple[str, Attr]] = [] if tensor.is_cpu else [("device", str(tensor.device))]
    if tensor.layout is not torch.strided:
        attrs.append(("layout", str(tensor.layout).removeprefix("torch.")))
    if tensor.is_nested:
        attrs.append(("nested", True))
    if tensor.is_quantized:
        attrs.append(("quantized", True))
    return tuple(attrs)


def is_accumulator(node: Any) -> bool:
    """Return whether a graph node is an AccumulateGrad."""
    return type(node).__name__ == "AccumulateGrad"


_FOLDER = torch.__path__[0]
_HANDING_ON = tuple(
    f"{_FOLDER}/{part}"
    for part in ("overrides.py", "_jit_internal.py", "_tensor.py", "functional.py", "nn/modules/module.py")
)
_PACKING = dict.fromkeys(
    ("_pack_padded_sequence", "_pad_packed_sequence"), (*_HANDING_ON, f"{_FOLDER}/nn/utils/rnn.py")
)
"""Files that forward the results of the functions for packed sequences."""

_PADDING = "_pad_packed_sequence"
"""The function that ``pad_packed_sequence`` calls; its result may still be in the sorted order of packing."""


def _is_put_in_order_yet() -> bool:
    """Return whether the rows will still be put back into the order that the program passed in."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name != _PADDING[1:]:
        frame = frame.f_back
    return getattr(frame.f_locals.get("sequence"), "unsorted_indices", None) is not None


def emit_returned(session: Session, result: object, called: str = "") -> None:
    """Record which part of a call's result each tensor is, if the program itself made the call named `called`."""
    handing_on = _PACKING.get(called, _HANDING_ON)
    if not called_by_the_program(_FOLDER, handing_on, called) or (called == _PADDING and _is_put_in_order_yet()):
        return
    stack = session.channel.stack()
    for tensor, path in parts(result, torch.Tensor):
        mark = session.marks.of(tensor)
        if mark is not None:
            nr = session.marks.output_nr(tensor) if grad_fn_of(tensor) is None else tensor.output_nr
            session.channel.emit(Returned(mark.node, nr, stack, path))
