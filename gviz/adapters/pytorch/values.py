"""PyTorch tensors as `Value`s: copied at the event, never referred to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from ctypes import string_at
from itertools import takewhile
from math import sqrt
from typing import Any

import torch

from gviz.emit import Channel
from gviz.values import NUMPY_DTYPES, Array, Stats, Value, statistics

_NAMES: dict[torch.dtype, str] = {}
_NUMPY = {getattr(torch, name) for name in NUMPY_DTYPES}
_WIDENED = {torch.bfloat16: torch.float32}
_BLOCK = 1 << 16
"""So many elements of a large tensor are looked at at once: they stay in the cache, and need no wider type."""


def name_of(dtype: torch.dtype) -> str:
    """A dtype as events name it."""
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).removeprefix("torch.")
    return name


class Capture:
    """Turns tensors into values, as a recording keeps them; `not_seen` is told of what has none."""

    def __init__(self, channel: Channel, not_seen: Callable[[str], None]) -> None:
        self._not_seen = not_seen
        self._nothing = channel.keep == "none"
        self._limit = channel.limit

    def __call__(self, tensor: torch.Tensor) -> Value:
        """Its value now. Wrappers, meta, sparse, nested and quantized tensors have shape and dtype alone."""
        if self._nothing or not has_numbers(tensor):
            if is_wrapped(tensor):
                self._not_seen("transform")
            return Value(name_of(tensor.dtype), sizes(tensor))
        try:
            return self._read(tensor)
        except (RuntimeError, TypeError):  # a dtype that numpy has not, or memory that cannot be read
            return Value(name_of(tensor.dtype), sizes(tensor))

    def _read(self, tensor: torch.Tensor) -> Value:
        if not tensor.is_cpu or tensor.is_conj() or tensor.is_neg():
            with without_modes():
                tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
        dtype, small = tensor.dtype, tensor.nbytes <= self._limit
        if small and tensor.is_contiguous() and (dtype in _NUMPY or dtype in _WIDENED):
            return Value(name_of(dtype), tuple(tensor.shape), _bytes_of(tensor))
        with without_modes():
            flat = tensor.detach()
            if dtype in _WIDENED:
                return self._widened(flat, small=small)
            return self._of_array(flat.numpy(), dtype)

    def _of_array(self, array: Array, dtype: torch.dtype) -> Value:
        if array.nbytes <= self._limit:
            return Value(name_of(dtype), array.shape, array.tobytes())
        return Value(name_of(dtype), array.shape, None, _statistics(array))

    def _widened(self, flat: torch.Tensor, *, small: bool) -> Value:
        shape = tuple(flat.shape)
        if small:
            return Value("bfloat16", shape, flat.contiguous().view(torch.uint16).numpy().tobytes())
        return Value("bfloat16", shape, None, _statistics(flat.float().numpy()))


without_modes: Any = torch._C._DisableTorchDispatch
"""A context in which the program's own dispatch modes do not see what gviz reads."""


def _bytes_of(tensor: torch.Tensor) -> bytes:
    """The elements of a contiguous tensor, read from its memory: no operation, which a profiler would list."""
    address, length = tensor.data_ptr(), tensor.nbytes
    if length and not address:
        raise RuntimeError("its memory was given back")
    return string_at(address, length) if length else b""


def sizes(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape of a tensor, up to the first size that is not one number: that of a nested tensor's parts, a symbol."""
    if tensor.is_nested and tensor.layout is torch.strided:
        return (tensor.size(0),)
    return plain_sizes(tensor.shape) if _has_symbols(tensor) else tuple(tensor.shape)


def plain_sizes(shape: Iterable[object]) -> tuple[int, ...]:
    """The sizes of a shape up to the first that is a symbol."""
    return tuple(takewhile(lambda size: type(size) is int, shape))  # type: ignore[arg-type]  # the test says it


_has_symbols: Any = getattr(getattr(torch.Tensor, "_has_symbolic_sizes_strides", None), "__get__", lambda tensor: True)
"""Whether some size of a tensor is a symbol, as while PyTorch compiles."""


def has_numbers(tensor: torch.Tensor) -> bool:
    """Whether the elements lie in memory as they are, where they can be read."""
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.is_quantized or tensor.is_nested:
        return False
    kind = tensor.__class__
    if kind is not torch.Tensor and kind is not torch.nn.Parameter and not _is_plain(kind):
        return False
    return not is_wrapped(tensor)


def _is_plain(kind: Any) -> bool:
    """Whether a subclass of `torch.Tensor` computes as its base does, so that its memory holds its elements."""
    dispatch = getattr(kind, "__torch_dispatch__", None)
    return dispatch is None or dispatch is getattr(torch.Tensor, "__torch_dispatch__", None)


is_wrapped: Any = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", lambda tensor: False)
"""Whether a tensor belongs to a `torch.func` transform, which gives it no numbers of its own."""


def _statistics(array: Array) -> Stats:
    """Statistics, block by block: five times as fast for large arrays, and no copy of them in a wider type."""
    if array.size <= _BLOCK:
        return statistics(array)
    flat = array.reshape(-1)
    blocks = [flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK)]
    parts = [statistics(block) for block in blocks]
    nan, inf, zero = (sum(getattr(part, name) for part in parts) for name in ("nan", "inf", "zero"))
    known = [
        (part, block.size - part.nan - part.inf)
        for part, block in zip(parts, blocks, strict=True)
        if block.size > part.nan + part.inf
    ]
    if not known:
        return Stats(parts[0].min, parts[0].max, parts[0].mean, parts[0].rms, nan, inf, zero)
    low, high = min(part.min for part, _ in known), max(part.max for part, _ in known)
    total = sum(count for _, count in known)
    mean = sum(part.mean * count / total for part, count in known)
    largest = max(part.rms for part, _ in known) or 1.0  # squares would leave the range of numbers
    rms = largest * sqrt(sum((part.rms / largest) ** 2 * count / total for part, count in known))
    return Stats(low, high, mean, rms, nan, inf, zero)
