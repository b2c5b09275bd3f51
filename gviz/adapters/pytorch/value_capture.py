"""Copies PyTorch tensors into `Value`s at the event, without references to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from ctypes import PYFUNCTYPE, ArgumentError, c_int, c_ssize_t, c_void_p, py_object, pythonapi
from itertools import takewhile
from math import sqrt
from typing import Any

import numpy as np
import torch

from gviz.adapters.pytorch.device_values import LARGEST_COPY, Copy, Device, is_on_gpu, to_host
from gviz.adapters.pytorch.private_api import (
    count_dispatch_modes,
    has_symbols,
    is_batch,
    is_wrapped,
    without_modes,
    without_overrides,
)
from gviz.adapters.pytorch.tensor_properties import is_dense
from gviz.emit import Channel
from gviz.events import Unseen
from gviz.values.value import (
    ITEM_SIZES,
    NUMPY_DTYPES,
    Array,
    AwaitedValue,
    Stats,
    UnorderedValue,
    Value,
    Whole,
    each_once,
    repeated,
    statistics,
)

_NAMES: dict[torch.dtype, str] = {}
_PLAIN_NAMES = {getattr(torch, name): name for name in ITEM_SIZES if not name.startswith("complex")}
"""The dtypes whose elements are in memory as they are; complex tensors may be conjugated when they are read."""
_BLOCK = 1 << 16
"""The number of elements of a large tensor processed at once: they stay in the cache, and need no wider type."""


def name_of(dtype: torch.dtype) -> str:
    """Return the name of a dtype in events."""
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).removeprefix("torch.")
    return name


def _kind_of(tensor: torch.Tensor) -> str:
    """Return the dtype of a tensor, with its layout unless that is strided: ``float32 sparse``."""
    name, layout = name_of(tensor.dtype), tensor.layout
    return name if layout is torch.strided else f"{name} {str(layout).removeprefix('torch.').removesuffix('_coo')}"


class Capture:
    """Turns tensors into values for the recording; calls `not_seen` for a tensor without one.

    If `is_hidden` is True of a tensor, its device memory is not computed yet, so only shape and dtype are kept.
    """

    def __init__(
        self, channel: Channel, not_seen: Callable[[Unseen], None],
        is_hidden: Callable[[torch.Tensor], bool] = lambda tensor: False,
    ) -> None:  # fmt: skip
        self.is_hidden = is_hidden
        self._not_seen = not_seen
        self.keeps_numbers = channel.keep != "none"
        self._keeps_whole = True
        self._device = Device(waits=not channel.awaits)
        self._copies: dict[int, Copy] = {}
        self._limit = channel.handed_over
        self._kept = channel.limit
        self._has_room = channel.has_room

    def __call__(self, tensor: torch.Tensor) -> Value:
        """Return the current value. Wrappers, meta, sparse, nested and quantized tensors get shape and dtype only."""
        if (
            tensor.__class__ in _PLAIN
            and (name := _PLAIN_NAMES.get(tensor.dtype)) is not None
            and self.keeps_numbers
            and tensor.is_cpu
            and not (self._copies or tensor.is_nested or tensor.is_neg())
        ):
            try:
                address = tensor.data_ptr()  # other kinds of tensors refuse: they have no memory of their own
                if not address or (nbytes := tensor.nbytes) > self._limit:
                    pass
                elif tensor.is_contiguous():
                    return Value(name, tuple(tensor.shape), _bytes_at(address, nbytes))
                elif nbytes > self._kept and is_dense(tensor):  # statistics will be kept: reordering costs more
                    return UnorderedValue(name, tuple(tensor.shape), _bytes_at(address, nbytes))
            except (RuntimeError, ArgumentError):  # `ctypes` makes the latter of an error at the end of the stack
                pass
        return self._any(tensor)

    def _any(self, tensor: torch.Tensor) -> Value:
        """Return the value of a tensor of any kind."""
        tensor = as_it_lies(tensor)
        if not self.keeps_numbers or not has_numbers(tensor):
            if is_transformed(tensor):
                self._not_seen("transform")
            return Value(_kind_of(tensor), sizes(tensor))
        try:
            return self._read(tensor)
        except (RuntimeError, TypeError, MemoryError):  # a dtype that NumPy lacks, or unreadable memory
            return Value(name_of(tensor.dtype), sizes(tensor))

    def of_first(self, tensor: torch.Tensor) -> Value:
        """Return the value of a tensor in one of the first calls of a custom function."""
        return self.whole(tensor) or self(tensor)

    def whole(self, tensor: torch.Tensor) -> Value | None:
        """Return the value with all elements, if it would otherwise have none; None if it has them, or if it is too
        large.
        """
        tensor = as_it_lies(tensor)
        name = name_of(tensor.dtype)
        if not (self._keeps_whole and has_numbers(tensor)) or (not tensor.is_cpu and self.is_hidden(tensor)):
            return None
        if name not in ITEM_SIZES or not self._has_room(tensor.nbytes):
            return None
        if not tensor.is_cpu and is_on_gpu(tensor) and tensor.nbytes <= LARGEST_COPY:
            return self._device.whole(tensor, name)
        with without_modes():
            plain = to_host(tensor.detach()).resolve_conj().resolve_neg().contiguous()
        return Whole(name, tuple(plain.shape), _bytes_of(plain))

    def note_copy(self, source: object, target: object) -> None:
        """Note a copy to the host that nothing waits for. Until it is done, the numbers come from `source`."""
        if not (isinstance(source, torch.Tensor) and isinstance(target, torch.Tensor) and target.is_cpu):
            return
        if not is_on_gpu(source) or self.is_hidden(source) or not (has_numbers(source) and has_numbers(target)):
            return
        with without_modes():
            copied = source.detach().to(target.dtype).expand_as(target)
        self._copies[target.untyped_storage().data_ptr()] = Copy(target, self(copied), source.device)

    def _copied(self, tensor: torch.Tensor) -> Value | None:
        """Return the value of a tensor whose memory a device may not have written yet; None if it has."""
        place = tensor.untyped_storage().data_ptr()
        copy = self._copies.get(place)
        if copy is None:
            return None
        if copy.is_done():
            del self._copies[place]
            return None
        return copy.value_of(tensor) or Value(name_of(tensor.dtype), tuple(tensor.shape))

    def leave_nothing(self) -> None:
        """Capture values in their final form from now on: one that the listener shortens would not compare equal."""
        self._limit = self._kept
        self._keeps_whole = False
        self._device.waits = True

    def finish(self) -> None:
        """Wait for all values requested from devices."""
        self._device.finish()

    def keeps_elements(self, value: Value) -> bool:
        """Return whether the recording will keep the elements of a value, rather than only its statistics."""
        if isinstance(value, AwaitedValue):
            return value.keeps_elements
        return value.data is not None and (len(value.data) <= self._kept or value.stays_whole)

    def memory(self, tensor: torch.Tensor) -> Value:
        """Return the value of all elements in a tensor's memory, in memory order."""
        tensor = as_it_lies(tensor)
        if not has_numbers(tensor):  # it has no memory of its own
            return self(tensor)
        count = tensor.untyped_storage().nbytes() // tensor.element_size()
        with without_modes():
            return self(tensor.detach().as_strided((count,), (1,), 0))

    def memory_of(self, tensor: torch.Tensor) -> Value:
        """Return the dtype and number of all elements in a tensor's memory, without values."""
        tensor = as_it_lies(tensor)
        if not has_numbers(tensor):
            return Value(_kind_of(tensor), sizes(tensor))
        return Value(name_of(tensor.dtype), (tensor.untyped_storage().nbytes() // tensor.element_size(),))

    def number(self, number: float, dtype: torch.dtype) -> Value:
        """Return the value of a Python number as a tensor of a floating dtype."""
        name = name_of(dtype)
        if not self.keeps_numbers or name not in NUMPY_DTYPES:
            with without_modes():
                return self(torch.tensor(number, dtype=dtype))
        with np.errstate(over="ignore"):
            return Value(name, (), np.asarray(number).astype(NUMPY_DTYPES[name]).tobytes())

    def _read(self, tensor: torch.Tensor) -> Value:
        if not tensor.is_cpu or tensor.is_conj() or tensor.is_neg():
            if not tensor.is_cpu and self.is_hidden(tensor):
                return Value(name_of(tensor.dtype), tuple(tensor.shape))
            name, keeps_many = name_of(tensor.dtype), LARGEST_COPY < tensor.nbytes <= self._kept
            if not tensor.is_cpu and is_on_gpu(tensor) and name in ITEM_SIZES and not keeps_many:
                return self._device.value(tensor, name, self._kept)
            with without_modes():
                tensor = to_host(tensor.detach()).resolve_conj().resolve_neg()
        name, shape = name_of(tensor.dtype), tuple(tensor.shape)
        if name not in ITEM_SIZES:
            return Value(name, shape)
        if self._copies and (known := self._copied(tensor)) is not None:
            return known
        size = tensor.nbytes
        if size > self._limit:
            return Value(name, shape, None, _statistics(_in_memory(tensor, name)))
        if tensor.is_contiguous():
            return Value(name, shape, _bytes_of(tensor))
        if size > self._kept and is_dense(tensor):  # statistics will be kept: reordering costs more
            return UnorderedValue(name, shape, _bytes_of(tensor))
        return Value(name, shape, _in_memory(tensor, name).tobytes())


# prototypes of gviz's own: the attributes of `pythonapi` are shared, and any library may set their argument types
_bytes_at = PYFUNCTYPE(py_object, c_void_p, c_ssize_t)(("PyBytes_FromStringAndSize", pythonapi))
_view_of_memory = PYFUNCTYPE(py_object, c_void_p, c_ssize_t, c_int)(("PyMemoryView_FromMemory", pythonapi))
_BITS = np.dtype("<u2")  # bfloat16, which NumPy lacks
_WRITABLE = 0x200  # nothing writes there, but NumPy copies read-only memory before it looks for the minimum


def _bytes_of(tensor: torch.Tensor) -> bytes:
    """Return the elements of a tensor without gaps, read directly from memory: an operation would show in a
    profiler.
    """
    try:
        return _bytes_at(_address(tensor), tensor.nbytes) if tensor.nbytes else b""
    except ArgumentError as error:  # ctypes turns the program's own error at the end of its stack into this
        raise RecursionError("maximum recursion depth exceeded") from error


def _in_memory(tensor: torch.Tensor, name: str) -> Array:
    """Return the memory of a tensor as an array; bfloat16 as its bits."""
    code = NUMPY_DTYPES.get(name, _BITS)
    if not tensor.nbytes:
        return np.empty(tuple(tensor.shape), code)
    width, strides = tensor.element_size(), tensor.stride()
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, strides, strict=True))
    view = _view_of_memory(_address(tensor), (last + 1) * width, _WRITABLE)
    return np.ndarray(tuple(tensor.shape), code, view, 0, tuple(stride * width for stride in strides))


def _address(tensor: torch.Tensor) -> int:
    address = tensor.data_ptr()
    if not address:
        raise RuntimeError("its memory was given back")
    return address


def sizes(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor, up to the first size that is symbolic or varies between a nested tensor's parts."""
    if tensor.is_nested and tensor.layout is torch.strided:
        return (tensor.size(0),)
    return plain_sizes(tensor.shape) if has_symbols(tensor) else tuple(tensor.shape)


def plain_sizes(shape: Iterable[object]) -> tuple[int, ...]:
    """Return the sizes of a shape up to the first symbolic one."""
    return tuple(takewhile(lambda size: type(size) is int, shape))  # type: ignore[arg-type]  # the test ensures it


def has_numbers(tensor: torch.Tensor) -> bool:
    """Return whether the elements are in memory as plain readable numbers."""
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.is_quantized or tensor.is_nested:
        return False
    kind = tensor.__class__
    if kind is not torch.Tensor and kind is not torch.nn.Parameter and not _is_plain(kind):
        return False
    return not (is_wrapped(tensor) or is_batch(tensor))


def has_plain_memory(tensor: torch.Tensor) -> bool:
    """Return whether a tensor with an address is an ordinary one, whose elements are there as they are.

    It takes a third of the time of `has_numbers`, which examines the others.
    """
    return tensor.__class__ in _PLAIN and tensor.dtype in _PLAIN_NAMES and not (tensor.is_nested or tensor.is_neg())


def unseen(*tensors: torch.Tensor) -> AbstractContextManager[object]:
    """Return a context in which the program's dispatch modes do not see computation with tensors that have numbers."""
    return without_modes() if count_dispatch_modes() and all(map(has_numbers, tensors)) else _AS_IT_IS


_AS_IT_IS = nullcontext()


def is_transformed(tensor: torch.Tensor) -> bool:
    """Return whether a tensor represents others, in a transform or a batch of gradients, and cannot be read."""
    return bool(is_wrapped(tensor) or is_batch(tensor))


def as_it_lies(tensor: torch.Tensor) -> torch.Tensor:
    """Return a plain tensor of the same memory: a subclass may report another shape."""
    if type(tensor) in _PLAIN or not computes_unseen(tensor) or is_transformed(tensor):
        return tensor
    with without_overrides(), without_modes():
        return torch.Tensor.detach(tensor)


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def computes_unseen(tensor: torch.Tensor) -> bool:
    """Return whether operations on a tensor run no code of the program: its class has no dispatch of its own."""
    return _is_plain(tensor.__class__)


def _is_plain(kind: Any) -> bool:
    """Return whether a subclass of `torch.Tensor` computes like its base, so that its memory holds its elements."""
    dispatch = getattr(kind, "__torch_dispatch__", None)
    return dispatch is None or dispatch is getattr(torch.Tensor, "__torch_dispatch__", None)


def _statistics(array: Array) -> Stats:
    """Return statistics, computed block by block: five times as fast for large arrays, and without a copy for any
    strides.
    """
    once = each_once(array)
    if once.size <= _BLOCK:
        stats = statistics(_widened(once))
    else:
        stats = _together([(statistics(_widened(block)), block.size) for block in _blocks(once)])
    return repeated(stats, array.size // once.size)


def _blocks(array: Array) -> Iterable[Any]:
    """Return the elements of an array in blocks, in any order: slices of contiguous memory, or an iterator
    otherwise.
    """
    if array.flags.forc:
        flat = array.ravel("K")
        return (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    return np.nditer(array, ["external_loop", "buffered"], order="K", buffersize=_BLOCK)


def _widened(block: Array) -> Array:
    """Return elements as numbers: bfloat16 is the upper half of a float32."""
    return (block.astype("<u4") << 16).view("<f4") if block.dtype == _BITS else block


def _together(parts: list[tuple[Stats, int]]) -> Stats:
    """Merge the statistics of several parts of an array, each given with its size."""
    nan, inf, zero = (sum(getattr(part, name) for part, _ in parts) for name in ("nan", "inf", "zero"))
    infinite = [part.minus for part, _ in parts if part.inf]
    minus = sum(infinite) if infinite and min(infinite) >= 0 else -1
    known = [(part, size - part.nan - part.inf) for part, size in parts if size > part.nan + part.inf]
    if not known:
        first, _ = parts[0]
        return Stats(first.min, first.max, first.mean, first.rms, nan, inf, zero, minus)
    low, high = min(part.min for part, _ in known), max(part.max for part, _ in known)
    total = sum(count for _, count in known)
    mean = sum(part.mean * count / total for part, count in known)
    largest = max(part.rms for part, _ in known) or 1.0  # squares would leave the range of numbers
    rms = largest * sqrt(sum((part.rms / largest) ** 2 * count / total for part, count in known))
    return Stats(low, high, mean, rms, nan, inf, zero, minus)
