"""Tensors of Python's and numpy's data."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from gviz import emit
from gviz.engine import announce, dtypes, messages
from gviz.engine.arguments import Options, checked, kind_of, typename, worded
from gviz.engine.dtypes import dtype as DType
from gviz.engine.elements import array_of
from gviz.engine.elements import checked as supported
from gviz.engine.out import taking_out
from gviz.engine.tensor import Tensor, new_tensor
from gviz.site import warn
from gviz.values import Array

__all__ = ["as_tensor", "asarray", "from_numpy", "tensor"]

_COPY_OF_TENSOR = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)
_READ_ONLY = (
    "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to "
    "this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it "
    "writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program."
)


@worded
def tensor(data: Any, **options: Unpack[Options]) -> Tensor:
    """A tensor with a copy of `data`: numbers, nested sequences, arrays."""
    return copied("tensor", data, options, None)


def copied(function: str, data: Any, options: Options, default: DType | None) -> Tensor:
    """A new leaf with a copy of `data`, of the dtype in `options`, else of `default` (None: what the data say)."""
    checked(function, options, refused=("layout", "memory_format", "out"))
    kind = kind_of(function, options, default) if options.get("dtype") is not None or default else None
    if isinstance(data, Tensor):
        warn(_COPY_OF_TENSOR)
    return from_array(np.array(array_of(data, kind)), options.get("requires_grad") or False)


@worded
def as_tensor(data: Any, **options: Unpack[Options]) -> Tensor:
    """A tensor of `data`, sharing memory where that is possible; a tensor is given back, in its place in the graph."""
    checked("as_tensor", options, refused=("requires_grad", "layout", "memory_format", "out", "pin_memory"))
    kind = kind_of("as_tensor", options) if options.get("dtype") is not None else None
    if isinstance(data, Tensor):
        return data if kind is None else data.to(kind)
    return from_array(array_of(data, kind), False)


@worded
def asarray(obj: Any, *, copy: bool | None = None, **options: Unpack[Options]) -> Tensor:
    """A tensor of `obj`, sharing memory unless `copy` says otherwise. ValueError if it cannot be shared and should."""
    checked("asarray", options, refused=("layout", "memory_format", "out", "pin_memory"))
    kind = kind_of("asarray", options) if options.get("dtype") is not None else None
    if isinstance(obj, (bytes, bytearray, memoryview)):
        obj = np.frombuffer(obj, (kind or dtypes.get_default_dtype()).numpy)
    if copy is False:
        _check_alias(obj, kind)
    wants_grad = options.get("requires_grad") or False
    if isinstance(obj, Tensor):
        if obj.requires_grad and options.get("requires_grad") is None:
            messages.warn_once(messages.ASARRAY)
        shared = obj if kind is None else obj.to(kind)
        shared = shared.clone() if copy and shared is obj else shared
        return shared if wants_grad or not shared.requires_grad else shared.detach() if copy else shared
    array = array_of(obj, kind)
    return from_array(np.array(array) if copy else array, wants_grad)


def _check_alias(obj: Any, kind: DType | None) -> None:
    if not isinstance(obj, (Tensor, np.ndarray)):
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    own = obj.dtype if isinstance(obj, Tensor) else dtypes.of(obj)
    if kind is not None and own is not kind:
        raise ValueError(f"can't alias tensor with dtype '{own.tensor_type}' into dtype '{kind.tensor_type}'.")


def from_numpy(array: Array) -> Tensor:
    """A tensor that shares memory with a numpy array."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {typename(array)})")
    shared = supported(array)
    if not array.flags.writeable:
        warn(_READ_ONLY)
    return from_array(shared, False)


def made(function: str, array: Array, options: Options) -> Tensor:
    """What a factory returns: a new leaf or constant, or ``out=`` with the array written to it."""
    out = options.get("out")
    if out is None:
        return from_array(array, options.get("requires_grad") or False)
    if not isinstance(out, Tensor):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {typename(out)}")
    wanted = options.get("dtype")
    if wanted is not None and wanted is not out.dtype:
        asked = dtypes.given(wanted)
        kinds = f"dtype {asked.tensor_type if asked else wanted} does not match dtype of out parameter "
        raise RuntimeError(f"{kinds}({out.dtype.tensor_type})")
    written: Tensor = taking_out(function, lambda: from_array(array.astype(out._array.dtype), False))(out=out)
    return written


def from_array(array: Array, requires_grad: bool) -> Tensor:
    """A new leaf or constant around `array`. RuntimeError if it should require grad and cannot."""
    if requires_grad and array.dtype.kind != "f":
        raise RuntimeError(messages.FACTORY_CANNOT_REQUIRE)
    result = new_tensor(array)
    result._requires_grad = requires_grad
    if emit.channel is not None:
        announce.entered(emit.channel, result)
    return result
