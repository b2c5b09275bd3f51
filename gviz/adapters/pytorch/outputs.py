"""What the outputs of a node are, as they were when it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch

from gviz.adapters.pytorch import private
from gviz.adapters.pytorch.private import without_modes
from gviz.adapters.pytorch.session import Session
from gviz.adapters.pytorch.tensor_facts import fills_its_memory, shows_all_of_its_memory, version_of
from gviz.adapters.pytorch.values import as_it_lies, has_numbers, name_of
from gviz.events import Attr, Edge, Output
from gviz.values import Value

Attrs = tuple[tuple[str, Attr], ...]


def output(
    session: Session, tensor: torch.Tensor, origin: int, look: Callable[[torch.Tensor], Value] | None = None
) -> Output:
    """A tensor as an output of a node, a view of the node `origin` unless that is 0; `look` gives its value."""
    value = (look or session.value)(tensor)
    number = session.marks.storage(tensor)
    version, shown = version_of(tensor), as_it_lies(tensor)
    if shown.layout is not torch.strided or shown.is_nested:
        return Output(value, number, version)
    if not (shows_all := shows_all_of_its_memory(shown)):
        session.marks.note_extent(tensor, fills=False)
    if not origin and fills_its_memory(shown):
        if shows_all:
            session.marks.note_extent(tensor, fills=True)
        return Output(value, number, version)
    offset, strides = int(shown.storage_offset()), tuple(shown.stride())
    return Output(value, number, version, origin, offset, strides)


def of_untracked(
    session: Session, tensor: torch.Tensor, inputs: Sequence[Edge], origin: int, *, in_place: bool
) -> Output:
    """An output of an operation that autograd does not track; `origin` is the node it shares memory with, if known."""
    if in_place:
        return output(session, tensor, 0)
    shares = inputs and (origin or private.is_view(tensor))
    return output(session, tensor, (origin or inputs[0][0]) if shares else 0)


def of_node(
    session: Session, node: Any, outputs: Mapping[int, torch.Tensor], inputs: Sequence[Edge], *, in_place: bool,
    is_first: bool, is_new: bool, width: int,
) -> tuple[Output, ...]:  # fmt: skip
    """The outputs of a node: those at hand with their values, of the others shape and dtype.

    One that `is_new` was made by the call that is looked at now: what it keeps of its result is as it gave it. Of one
    that `is_first`, as a call of a function of the program, the values are kept whole. There are `width` of them at
    least: some PyTorch does not tell.
    """
    made = private.outputs_of(node)
    described = []
    for output_nr in range(max(len(made), max(outputs, default=0) + 1, width)):
        tensor = outputs.get(output_nr)
        if tensor is not None:
            is_view = inputs and not in_place and private.is_view(tensor)
            look = session.value.of_first if is_first else session.value
            described.append(output(session, tensor, inputs[0][0] if is_view else 0, look))
        else:
            known = _transposed(session, node, inputs) if node.name() == "TBackward0" else None
            if known is None and is_new:
                known = _kept_result(session, node)
            described.append(known or _unseen(session, made[output_nr] if output_nr < len(made) else None))
    return tuple(described)


def _kept_result(session: Session, node: Any) -> Output | None:
    """What an operation within a call gave, where it keeps that for its rule: the ``log_softmax`` of a loss."""
    if not session.hears_operations:
        return None
    result = private.saved(node, "result")
    return None if result is None or version_of(result) or not has_numbers(result) else output(session, result, 0)


def _transposed(session: Session, node: Any, inputs: Sequence[Edge]) -> Output | None:
    """What the transposition of a leaf gave: the weight of a linear layer, within its call."""
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


def _unseen(session: Session, made: Any) -> Output:
    """An output of which only the shape is known, if that."""
    session.not_seen("forward" if session.wanted.phase == "backward" else "composite")
    if not private.knows_outputs:
        session.report_lack(private.missing["_C._functions.AccumulateGrad._input_metadata"])
    try:
        shape = tuple(made.shape) if made is not None else ()
    except RuntimeError:  # nested: its parts have shapes, it has none
        made = None
    is_known = made is not None and set(map(type, shape)) <= {int}
    return Output(_without_numbers(made.dtype, shape) if is_known else None, session.channel.next_storage())


@lru_cache(maxsize=4096)
def _without_numbers(dtype: torch.dtype, shape: tuple[int, ...]) -> Value:
    return Value(name_of(dtype), shape)


def oddities(tensor: torch.Tensor) -> Attrs:
    """What is unusual about where a tensor's numbers lie."""
    tensor = as_it_lies(tensor)
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
