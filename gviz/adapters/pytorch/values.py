"""PyTorch tensors as `Value`s: copied at the event, never referred to."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch

from gviz.emit import Channel
from gviz.values import Array, Stats, Value, statistics

_NAMES: dict[torch.dtype, str] = {}
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
        """The value of a tensor now. Wrappers, meta, sparse and quantized tensors keep shape and dtype alone."""
        if self._nothing or not _has_numbers(tensor):
            if is_wrapped(tensor):
                self._not_seen("transform")
            return Value(name_of(tensor.dtype), tuple(tensor.shape))
        flat = tensor.detach()
        if not flat.is_cpu:
            flat = flat.cpu()
        if flat.dtype in _WIDENED:
            return self._widened(flat)
        if flat.is_conj() or flat.is_neg():
            flat = flat.resolve_conj().resolve_neg()
        try:
            array = flat.numpy()
        except (TypeError, RuntimeError):  # a dtype that numpy has not
            return Value(name_of(tensor.dtype), tuple(tensor.shape))
        return self._of_array(array, flat.dtype)

    def _of_array(self, array: Array, dtype: torch.dtype) -> Value:
        if array.nbytes <= self._limit:
            return Value(name_of(dtype), array.shape, array.tobytes())
        return Value(name_of(dtype), array.shape, None, _statistics(array))

    def _widened(self, flat: torch.Tensor) -> Value:
        shape = tuple(flat.shape)
        if flat.numel() * flat.element_size() <= self._limit:
            return Value("bfloat16", shape, flat.contiguous().view(torch.uint16).numpy().tobytes())
        return Value("bfloat16", shape, None, _statistics(flat.float().numpy()))


def _has_numbers(tensor: torch.Tensor) -> bool:
    """Whether the elements lie in memory as they are, where they can be read."""
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.is_quantized:
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
