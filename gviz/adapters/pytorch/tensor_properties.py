"""What PyTorch says of a tensor, also where it refuses to answer or warns of the question.

A class of the program's own that answers in its place is not asked: that would run its code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gviz.adapters.pytorch import private_api

_attributes: Any = torch.Tensor  # read from there, they have a `__get__`
held_grad: Callable[[torch.Tensor], torch.Tensor | None] = _attributes.grad.__get__
"""The ``.grad`` of a tensor; see `grad_of` for those that PyTorch warns of."""
_grad_fn: Callable[[torch.Tensor], torch.autograd.graph.Node | None] = _attributes.grad_fn.__get__
_is_leaf: Callable[[torch.Tensor], bool] = _attributes.is_leaf.__get__

dtype_of: Callable[[torch.Tensor], torch.dtype] = _attributes.dtype.__get__
device_of: Callable[[torch.Tensor], torch.device] = _attributes.device.__get__


def grad_fn_of(tensor: torch.Tensor) -> torch.autograd.graph.Node | None:
    """The graph node of a tensor; none for a view that PyTorch refuses to say it of.

    That is one made under ``no_grad``, or beside others by one call, when its memory was written to since.
    """
    try:
        return _grad_fn(tensor)
    except RuntimeError:
        return None


def is_leaf(tensor: torch.Tensor) -> bool:
    """Whether gradients are added up in this tensor; of some views PyTorch refuses to say it, and they are none."""
    try:
        return _is_leaf(tensor)
    except RuntimeError:
        return False


def is_cut_off(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a view made under ``no_grad``: it requires a gradient as its base does, and none goes on."""
    if not private_api.is_view(tensor) or grad_fn_of(tensor) is not None:
        return False
    base = private_api.base_of(tensor)
    return base is not None and base.requires_grad


def grad_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The ``.grad`` of a tensor that has one: of others PyTorch warns when they are asked."""
    return held_grad(tensor) if is_leaf(tensor) or tensor.retains_grad else None


def version_of(tensor: torch.Tensor) -> int:
    """How often a tensor's memory was written; 0 for those that do not count."""
    try:  # `is_inference` would release the interpreter's lock, and another thread may keep it for milliseconds
        return int(private_api.version(tensor))
    except RuntimeError:  # a tensor of inference mode counts none
        return 0


def fills_its_memory(tensor: torch.Tensor) -> bool:
    """Whether the elements lie in a row, and nothing else beside them: PyTorch does not call every alias a view."""
    if not tensor.is_contiguous():
        return False
    try:
        return tensor.untyped_storage().nbytes() == tensor.nbytes
    except (NotImplementedError, RuntimeError):  # no memory of its own
        return True


def shows_all_of_its_memory(tensor: torch.Tensor) -> bool:
    """Whether a tensor shows every element of its memory once, in any order, in the dtype of what it is a view of."""
    base = private_api.base_of(tensor) if private_api.is_view(tensor) else None
    if base is not None and dtype_of(base) is not dtype_of(tensor):
        return False
    try:
        return torch.Tensor.untyped_storage(tensor).nbytes() == tensor.nbytes and is_dense(tensor)
    except (NotImplementedError, RuntimeError):  # no memory of its own
        return True


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements lie without gaps, each once: in a row, or with the dimensions in another order."""
    if tensor.is_contiguous():
        return True
    step = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors in one memory may show the same elements."""
    if any(it.is_nested or it.layout is not torch.strided or private_api.has_symbols(it) for it in (one, other)):
        return True
    (low, high), (start, end) = _extent(one), _extent(other)
    return low < end and start < high


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes of its memory among which the elements of a tensor lie."""
    width, start = tensor.element_size(), int(tensor.storage_offset())
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return start * width, (start + last + 1) * width


def lies_in(tensor: torch.Tensor, memory: object) -> bool:
    """Whether that storage is the tensor's memory; some have none of their own."""
    try:
        return torch.Tensor.untyped_storage(tensor) is memory
    except (NotImplementedError, RuntimeError):
        return False


def number_in(thing: object) -> object:
    """The number in a tensor of one in the memory of the CPU, else what was given: no device is waited for."""
    plain = type(thing) is torch.Tensor and thing.device.type == "cpu" and thing.layout is torch.strided
    return thing.item() if plain and thing.numel() == 1 else thing  # type: ignore[attr-defined]  # it is a tensor
