"""Properties of a PyTorch tensor, read without warnings and without errors where PyTorch refuses.

A subclass of the program that overrides them is bypassed: reading them through it would run its code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gviz.adapters.pytorch import private_api

_attributes: Any = torch.Tensor  # read from the class, they have a `__get__`
grad_attribute: Callable[[torch.Tensor], torch.Tensor | None] = _attributes.grad.__get__
"""The ``.grad`` of a tensor; use `grad_of` for tensors that PyTorch warns about."""
_grad_fn: Callable[[torch.Tensor], torch.autograd.graph.Node | None] = _attributes.grad_fn.__get__
_is_leaf: Callable[[torch.Tensor], bool] = _attributes.is_leaf.__get__

dtype_of: Callable[[torch.Tensor], torch.dtype] = _attributes.dtype.__get__
device_of: Callable[[torch.Tensor], torch.device] = _attributes.device.__get__


def grad_fn_of(tensor: torch.Tensor) -> torch.autograd.graph.Node | None:
    """Return the graph node of a tensor, or None.

    PyTorch refuses to return the node of a view made under ``no_grad``, or of one of several outputs, after its memory
    was written. That gives None, too.
    """
    try:
        return _grad_fn(tensor)
    except RuntimeError:
        return None


def is_leaf(tensor: torch.Tensor) -> bool:
    """Return whether gradients accumulate in this tensor; False for views for which PyTorch refuses to answer."""
    try:
        return _is_leaf(tensor)
    except RuntimeError:
        return False


def is_cut_off(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a view made under ``no_grad``: it requires grad like its base, but passes no gradient
    on.
    """
    if not private_api.is_view(tensor) or grad_fn_of(tensor) is not None:
        return False
    base = private_api.base_of(tensor)
    return base is not None and base.requires_grad


def grad_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the ``.grad`` of a leaf or of a tensor that retains it.

    Other tensors give None, because reading their ``.grad`` makes PyTorch warn.
    """
    return grad_attribute(tensor) if is_leaf(tensor) or tensor.retains_grad else None


def version_of(tensor: torch.Tensor) -> int:
    """Return the version counter of a tensor, or 0 if it has none."""
    try:  # `is_inference` would release the interpreter's lock, and another thread may keep it for milliseconds
        return int(private_api.version(tensor))
    except RuntimeError:  # an inference-mode tensor has none
        return 0


def fills_its_memory(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is contiguous and fills its memory. PyTorch does not report every alias as a view."""
    if not tensor.is_contiguous():
        return False
    try:
        return tensor.untyped_storage().nbytes() == tensor.nbytes
    except (NotImplementedError, RuntimeError):  # no memory of its own
        return True


def extent_in_memory(tensor: torch.Tensor) -> tuple[bool, bool]:
    """Return two facts: does a tensor show all of its memory, and does it fill it.

    It shows all if it covers every element once, in any order, in the dtype of its base. It fills its memory if it is
    contiguous and covers it.
    """
    is_contiguous = tensor.is_contiguous()
    try:
        has_all = torch.Tensor.untyped_storage(tensor).nbytes() == tensor.nbytes
        shows_all = has_all and (is_contiguous or is_dense(tensor))
    except (NotImplementedError, RuntimeError):  # no memory of its own
        has_all = shows_all = True
    if shows_all and private_api.is_view(tensor):
        base = private_api.base_of(tensor)
        shows_all = base is None or dtype_of(base) is dtype_of(tensor)
    return shows_all, is_contiguous and has_all


def is_dense(tensor: torch.Tensor) -> bool:
    """Return whether the elements have no gaps or repeats in memory: contiguous, or with the dimensions permuted."""
    if tensor.is_contiguous():
        return True
    strides, shape, step = tensor.stride(), tensor.shape, 1
    if len(strides) == 2 and strides[0] == 1 and strides[1] == shape[0]:  # a transposed matrix
        return True
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors in one memory may share elements."""
    if any(it.is_nested or it.layout is not torch.strided or private_api.has_symbols(it) for it in (one, other)):
        return True
    (low, high), (start, end) = _extent(one), _extent(other)
    return low < end and start < high


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the range of bytes of its memory that contains a tensor's elements."""
    width, start = tensor.element_size(), int(tensor.storage_offset())
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return start * width, (start + last + 1) * width


def lies_in(tensor: torch.Tensor, memory: object) -> bool:
    """Return whether `memory` is the tensor's storage; False for a tensor without one of its own."""
    try:
        return torch.Tensor.untyped_storage(tensor) is memory
    except (NotImplementedError, RuntimeError):
        return False


def is_same_memory(one: torch.Tensor, other: object) -> bool:
    """Return whether two tensors have the same elements: one storage, offset, shape and strides."""
    try:
        return (
            isinstance(other, torch.Tensor)
            and torch.Tensor.untyped_storage(one) is torch.Tensor.untyped_storage(other)
            and one.storage_offset() == other.storage_offset()
            and (one.shape, one.stride()) == (other.shape, other.stride())
        )
    except (NotImplementedError, RuntimeError):
        return False


def number_in(thing: object) -> object:
    """Return the number in a one-element CPU tensor, otherwise `thing` itself. Never waits for a device."""
    plain = type(thing) is torch.Tensor and thing.device.type == "cpu" and thing.layout is torch.strided
    return thing.item() if plain and thing.numel() == 1 else thing  # type: ignore[attr-defined]  # it is a tensor
