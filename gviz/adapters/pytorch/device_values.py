"""Values of tensors on a device: statistics are computed on the device, and only the results come to the host.

Copying a tensor from a GPU to the host blocks the program until the GPU has finished its queue. It also transfers
about a thousand times more data than a recording keeps. Instead, a kernel reads the tensor on the device, in the
program's own stream, and writes nine numbers to pinned host memory. Every word there is `PENDING` until the device has
written it, and the host reads the answer once it is there. The program does not wait.

    program    linear   gelu   linear   backward …          launches run ahead of the device, as without gviz
    stream     linear ▸ summarize ▸ gelu ▸ summarize ▸ …
    memory              9 words           9 words           PENDING, then numbers
    writer                    takes events once all their values are there

Work in one stream runs in order, so a later in-place write cannot change the numbers of an earlier event. Small
tensors (up to the `limit` of the recording, and at most `LARGEST_COPY`) are copied whole by a second kernel. Each word
of 8 bytes then carries 4 bytes of the tensor, so that it never equals `PENDING`.

With Triton one kernel computes the statistics (`cuda_kernels`), otherwise operations of PyTorch do. Limits: this covers
CUDA and ROCm; tensors on other devices are copied. Nothing is launched while a CUDA graph is captured
(`cuda_captures.Captures`). A live debugger waits for each value.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf, isinf, nan, sqrt
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np
import torch

from gviz.adapters.pytorch.private_api import stream_number, without_modes
from gviz.adapters.pytorch.tensor_properties import is_dense, version_of
from gviz.values.value import INLINE_BYTES, LONGEST_ANSWER, AwaitedValue, Stats, Value, Whole

if TYPE_CHECKING:  # it needs Triton, which takes a third of a second to import
    from gviz.adapters.pytorch.cuda_kernels import Kernels

PENDING = 0x7FF4_DEAD_BEEF_0001
"""A word that the device has yet to write. As a float it is a signalling nan, which no computation produces."""

_NUMBERS = 9
"""Minimum, maximum, sum, sum of squares, counts of nan, inf and zero; for wide dtypes also two scaled sums."""

_SMALL, _LARGE, _SCALE = 2.0**-400, 2.0**400, 2.0**600
"""Magnitudes below `_SMALL` or above `_LARGE` are also squared after scaling.

These sums are used if the plain sum of squares leaves the range of float64."""

_BLOCK = 1024
_MOST_PROGRAMS = 2048
_ALONE = 8 * _BLOCK
"""The largest number of elements for which a single program is launched."""
_ALLOCATOR_OPTIONS = "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"
_LEAST_SQUARES = 1e-280
"""Below this, a sum of squares may have lost terms to underflow."""
LARGEST_COPY = 1 << 22
"""The largest size in bytes at which all elements of a tensor are copied to the host this way."""
_STRETCH = 1 << 25
"""The most bytes of a tensor with gaps that are made contiguous at a time, on the device."""

_SLOTS_AT_ONCE = 512
_MOST_BYTES = 1 << 25
"""The most bytes of pinned memory for slots of one size. If all are in use, the program waits for the device."""

_WORDS = Struct(f"<{_NUMBERS}q"), Struct(f"<{_NUMBERS}d")
"""Formats that read statistics as integers, to check that all have arrived, and as floats."""

Slot = tuple[int, memoryview]
"""An address that the device writes to, and the same bytes as the host reads them."""


class Slots:
    """Pinned memory in pieces of `words` words, which are all `PENDING` when a piece is taken.

    The operations of `deque` are atomic: threads, and a signal handler within one, need no lock.
    """

    def __init__(self, words: int, at_once: int = _SLOTS_AT_ONCE) -> None:
        self.words = words
        self._at_once = at_once
        self._pending = PENDING.to_bytes(8, "little") * words
        self._free: deque[Slot] = deque()
        self._abandoned: deque[tuple[Slot, int]] = deque()
        self._memory: list[torch.Tensor] = []

    def take(self) -> Slot | None:
        """Return a free piece; None if the device takes so long to answer that none becomes free."""
        until = 0.0
        while True:
            try:
                return self._free.popleft()
            except IndexError:
                self._recover()
            if not self._free and not self._grow():
                until = until or time.monotonic() + LONGEST_ANSWER
                if time.monotonic() > until:
                    return None
                time.sleep(0.0005)

    def give_back(self, slot: Slot) -> None:
        """Return a piece whose answer was read."""
        slot[1][:] = self._pending
        self._free.append(slot)

    def abandon(self, slot: Slot, words: int) -> None:
        """Give up a piece whose answer, `words` long, will not be read. The device may still write it."""
        self._abandoned.append((slot, words))

    def _recover(self) -> None:
        for _ in range(len(self._abandoned)):
            slot, words = self._abandoned.popleft()
            if PENDING in np.frombuffer(slot[1], "<i8", words).tolist():
                self._abandoned.append((slot, words))
            else:
                self.give_back(slot)

    def _grow(self) -> bool:
        if len(self._memory) * self._at_once * self.words * 8 >= _MOST_BYTES:
            return False
        size, is_pinned = (self._at_once, self.words), torch.cuda.is_available()
        with without_modes():
            memory = torch.empty(size, dtype=torch.int64, device="cpu", pin_memory=is_pinned).fill_(PENDING)
        self._memory.append(memory)
        data, start, step = memory.numpy().data.cast("B"), memory.data_ptr(), 8 * self.words
        self._free.extend((start + at, data[at : at + step]) for at in range(0, len(data), step))
        return True


class DeviceAnswer:
    """The pending answer about one tensor: its `nbytes` bytes, or (0) statistics of `size` elements.

    A tensor with gaps is processed in several parts, each with a slot. Each element is repeated `times` times.
    """

    def __init__(
        self, device: Device, slots: Slots, used: list[Slot], *, nbytes: int = 0, size: int = 0, times: int = 1,
    ) -> None:  # fmt: skip
        self._device, self._slots, self._used = device, slots, used
        self._nbytes, self._size, self._times = nbytes, size, times
        self._words = (nbytes + 3) // 4 if nbytes else _NUMBERS
        self._taken: tuple[bytes | None, Stats | None] | None = None

    @property
    def keeps_elements(self) -> bool:
        """Whether all elements were requested."""
        return self._nbytes > 0

    def take(self) -> tuple[bytes | None, Stats | None] | None:
        """Return the answer as bytes or statistics, None if it is pending, and a pair of None if the device was lost
        first.
        """
        if self._taken is None:
            is_lost = self._device.is_lost  # checked first: answers that arrived before the loss count
            if self._nbytes:
                answer = np.frombuffer(self._used[0][1], "<i8", self._words)
                if PENDING in answer.tolist():
                    return (None, None) if is_lost else None
                self._taken = answer.astype("<u4").tobytes()[: self._nbytes], None
            else:
                words, numbers = _WORDS
                if any(PENDING in words.unpack_from(data) for _, data in self._used):
                    return (None, None) if is_lost else None
                parts = [numbers.unpack_from(data) for _, data in self._used]
                self._taken = None, stats_of(parts, self._size, self._times)
            used, self._used = self._used, []
            for slot in used:
                self._slots.give_back(slot)
        return self._taken

    def __del__(self) -> None:
        for slot in self._used:
            self._slots.abandon(slot, self._words)


def stats_of(parts: Sequence[Sequence[float]], size: int, times: int = 1) -> Stats:
    """Return the statistics of `size` elements, each repeated `times` times, from the nine numbers of each part.

    Uses the scaled sums of squares if the plain ones leave the range of float64.
    """
    if len(parts) == 1:
        least, most, total, squares, nans, infinite, zeros, small, large = parts[0]
    else:
        columns = tuple(zip(*parts, strict=True))
        least, most = min(columns[0]), max(columns[1])
        total, squares, nans, infinite, zeros, small, large = map(sum, columns[2:])
    finite = size - int(nans) - int(infinite)
    counts = int(nans) * times, int(infinite) * times, int(zeros) * times
    if not finite:
        return Stats(nan, nan, nan, nan, *counts)
    if isinf(squares):
        rms = sqrt(large / finite) * _SCALE
    elif squares < _LEAST_SQUARES and small:
        rms = sqrt(small / finite) / _SCALE
    else:
        rms = sqrt(squares / finite)
    return Stats(least, most, total / finite, rms, *counts)


class Device:
    """Requests values from devices. Each recording has one.

    With `waits` each value has arrived when it is returned; otherwise it is `AwaitedValue`.
    """

    def __init__(self, *, waits: bool) -> None:
        self.waits = waits
        self.is_lost = False
        """Whether a device has failed; it will answer nothing more."""
        self._numbers, self._elements = Slots(_NUMBERS + 7), Slots(INLINE_BYTES // 4)
        self._many_elements: dict[int, Slots] = {}
        """Slots by number of words, for tensors larger than a recording keeps whole by default."""
        self._scratch: dict[tuple[int, int], int] = {}
        self._memory: list[torch.Tensor] = []
        self._kernels: dict[int, Kernels | None] = {}
        """The kernels by device index, None if they do not work there."""

    def value(self, tensor: torch.Tensor, dtype: str, limit: int) -> Value:
        """Return the value of a CUDA tensor: its bytes up to `limit` and `LARGEST_COPY`, else statistics.

        Raises RuntimeError as any operation on a device may.
        """
        return self._waited_for(self._pending_value(tensor, dtype, limit))

    def whole(self, tensor: torch.Tensor, dtype: str) -> Value:
        """Return the value of a tensor of at most `LARGEST_COPY` bytes, kept whole regardless of the
        recording's limit.
        """
        value = self._pending_value(tensor, dtype, tensor.nbytes)
        if isinstance(value, AwaitedValue):
            value.stay_whole()
        return self._waited_for(value)

    def _waited_for(self, value: Value) -> Value:
        """Return the value, after waiting for it if a debugger steps through the program."""
        if not self.waits or not isinstance(value, AwaitedValue):
            return value
        value.arrives(time.monotonic() + LONGEST_ANSWER)
        kind = Whole if value.stays_whole else Value
        return kind(value.dtype, value.shape, value.data, value.stats)

    def finish(self) -> None:
        """Wait for all pending values. A device that failed will answer nothing."""
        if self._kernels:
            try:
                with waiting_unnoticed():
                    for index in self._kernels:  # synchronizing any other device would allocate memory on it
                        torch.cuda.synchronize(index)
            except RuntimeError:  # the program's own error, which it meets by itself
                pass
            self.is_lost = True

    def _pending_value(self, tensor: torch.Tensor, dtype: str, limit: int) -> Value:
        shape, nbytes = tuple(tensor.shape), tensor.nbytes
        if not nbytes:
            return Value(dtype, shape, b"")
        if tensor.is_neg() or tensor.is_conj():  # its memory holds other numbers
            with without_modes():
                tensor = tensor.detach().resolve_conj().resolve_neg()
        with _current(tensor):
            is_small = nbytes <= min(limit, LARGEST_COPY)
            answer = self._ask_for_elements(tensor) if is_small else self._ask_for_statistics(tensor)
        return Value(dtype, shape) if answer is None else AwaitedValue.of(dtype, shape, answer)

    def _ask_for_elements(self, tensor: torch.Tensor) -> DeviceAnswer | None:
        plain = tensor
        if not tensor.is_contiguous():
            with without_modes():
                plain = tensor.detach().contiguous()
        slots = self._slots_for(plain.nbytes)
        slot = slots.take()
        if slot is None:
            return None
        answer = DeviceAnswer(self, slots, [slot], nbytes=plain.nbytes)
        kernels = self._kernels_for(plain)
        if kernels is None or not kernels.copy_bytes(
            plain.data_ptr(), slot[0], plain.nbytes, plain.get_device(), _stream(plain)
        ):
            with without_modes():
                words = words_of(plain.detach())
                torch.frombuffer(slot[1], dtype=torch.int64)[: len(words)].copy_(words, non_blocking=True)
        return answer

    def _slots_for(self, nbytes: int) -> Slots:
        if nbytes <= INLINE_BYTES:
            return self._elements
        words = 1 << (nbytes // 4).bit_length()
        return self._many_elements.setdefault(words, Slots(words, at_once=1))

    def _ask_for_statistics(self, tensor: torch.Tensor) -> DeviceAnswer | None:
        if is_dense(tensor) and not tensor.is_complex():
            once, stretches = tensor, [tensor]
        else:
            with without_modes():
                once = _each_once(tensor.detach())
                stretches = list(_in_rows(once.abs() if once.is_complex() else once))
        used: list[Slot] = []
        size = once.numel()
        answer = DeviceAnswer(self, self._numbers, used, size=size, times=tensor.numel() // size)
        for stretch in stretches:
            slot = self._numbers.take()
            if slot is None:
                return None
            used.append(slot)
            self._summarize(stretch, slot)
        return answer

    def _summarize(self, tensor: torch.Tensor, slot: Slot) -> None:
        """Request the statistics of a tensor without gaps."""
        kernels, count = self._kernels_for(tensor), tensor.numel()
        if kernels is not None:
            stream = _stream(tensor)
            programs, scratch = self._grid(count, tensor, stream)
            place = tensor.get_device(), stream
            if kernels.summarize(tensor.data_ptr(), slot[0], scratch, count, tensor.dtype, programs, *place):
                return
        with without_modes():
            numbers = summarized(tensor.detach())
            torch.frombuffer(slot[1], dtype=torch.float64)[:_NUMBERS].copy_(numbers, non_blocking=True)

    def _scratch_of(self, tensor: torch.Tensor, stream: int) -> int:
        """Return scratch memory for a grid, one per device and stream: the work of one stream runs in order."""
        key = tensor.get_device(), stream
        address = self._scratch.get(key)
        if address is None:
            with without_modes():
                memory = torch.zeros((_MOST_PROGRAMS + 1) * 16, dtype=torch.float64, device=tensor.device)
            self._memory.append(memory)
            address = self._scratch[key] = memory.data_ptr()
        return address

    def _kernels_for(self, tensor: torch.Tensor) -> Kernels | None:
        """Return the kernels, if they were seen to work on the tensor's device."""
        index = tensor.get_device()
        if index not in self._kernels:
            self._kernels[index] = None  # keeps the check below from checking again
            self._kernels[index] = self._tried(tensor)
        return self._kernels[index]

    def _tried(self, tensor: torch.Tensor) -> Kernels | None:
        """Return the kernels, after checking that they give the right numbers here; else None.

        PyTorch comes without Triton on Windows and for some devices, and Triton needs a C compiler. If the program
        makes PyTorch pin memory by host registration, the memory may have another address on the device, and a write
        there would crash the program. The check waits for the device, once.
        """
        if any("pinned_use_cuda_host_register" in os.environ.get(name, "") for name in _ALLOCATOR_OPTIONS):
            return None
        try:
            from gviz.adapters.pytorch.cuda_kernels import Kernels
        except ImportError:
            return None
        kernels = self._kernels[tensor.get_device()] = Kernels(_BLOCK, _MOST_PROGRAMS, _SMALL, _LARGE, _SCALE)
        for count in 2 * (9, _BLOCK, 3 * _ALONE + 1):  # elements, one program, many; compiled first, then launched
            with without_modes():
                sample = torch.arange(count, dtype=torch.float32, device=tensor.device)
            total, squares = count * (count - 1) / 2, (count - 1) * count * (2 * count - 1) / 6
            right = stats_of([[0, count - 1, total, squares, 0, 0, 1, 0, 0]], count)
            value = self._pending_value(sample, "float32", 4 * 9)
            if not (
                isinstance(value, AwaitedValue) and value.arrives(time.monotonic() + LONGEST_ANSWER) and kernels.works
            ):
                return None
            if value.data != np.arange(9, dtype="<f4").tobytes() if count == 9 else value.stats != right:
                return None
        return kernels

    def _grid(self, count: int, tensor: torch.Tensor, stream: int) -> tuple[int, int]:
        """Return the number of programs for `count` elements, and the address of the memory that they share."""
        if count <= _ALONE:
            return 1, 0
        return min(count // _BLOCK, _MOST_PROGRAMS), self._scratch_of(tensor, stream)


class Copy:
    """A copy to a host tensor that is still in progress, and the value that it will write."""

    def __init__(self, target: torch.Tensor, value: Value, device: torch.device) -> None:
        self._start, self._version = target.data_ptr(), version_of(target)
        self._value = value
        self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # PyTorch has no types here
        self._event.record(torch.cuda.current_stream(device))

    def is_done(self) -> bool:
        """Return whether the copy is complete, so that the host memory can be read."""
        return bool(self._event.query())  # type: ignore[no-untyped-call]  # PyTorch has no types here

    def value_of(self, tensor: torch.Tensor) -> Value | None:
        """Return the value, if `tensor` is exactly the copied memory and unmodified; its shape may differ. Otherwise
        None.
        """
        value, shape = self._value, tuple(tensor.shape)
        is_whole = tensor.data_ptr() == self._start and tensor.numel() == value.size
        if not is_whole or str(tensor.dtype) != f"torch.{value.dtype}" or not tensor.is_contiguous():
            return None
        if version_of(tensor) != self._version:
            return None
        return (
            value.reshaped(shape)
            if isinstance(value, AwaitedValue)
            else Value(value.dtype, shape, value.data, value.stats)
        )


def is_on_gpu(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is on a CUDA or ROCm GPU; PyTorch calls both ``cuda``."""
    return tensor.device.type == "cuda"


def summarized(tensor: torch.Tensor) -> torch.Tensor:
    """Return the nine numbers of a tensor without gaps, by PyTorch operations on its device; float64 if it supports
    that.
    """
    wide = torch.float32 if tensor.device.type == "mps" else torch.float64
    parts = [_summarized(part, wide) for part in torch.split(_flat(tensor), _BLOCK * _BLOCK)]
    if len(parts) == 1:
        return parts[0]
    table = torch.stack(parts)
    return torch.cat([table[:, :1].amin(0), table[:, 1:2].amax(0), table[:, 2:].sum(0)])


def _summarized(flat: torch.Tensor, wide: torch.dtype) -> torch.Tensor:
    numbers = flat.to(wide)
    is_finite = numbers.isfinite()
    finite = numbers.where(is_finite, 0)
    none = finite.new_zeros(())
    is_wide = flat.dtype is torch.float64
    return torch.stack([
        numbers.where(is_finite, inf).amin(),
        numbers.where(is_finite, -inf).amax(),
        finite.sum(),
        finite.square().sum(),
        numbers.isnan().sum().to(wide),
        numbers.isinf().sum().to(wide),
        (numbers == 0).sum().to(wide),
        (finite.where(finite.abs() < _SMALL, 0) * _SCALE).square().sum() if is_wide else none,
        (finite.where(finite.abs() > _LARGE, 0) / _SCALE).square().sum() if is_wide else none,
    ])  # fmt: skip


def words_of(plain: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a contiguous tensor, four per word; the upper half of each word is 1."""
    data = plain.reshape(-1).view(torch.uint8).to(torch.int64)
    data = torch.nn.functional.pad(data, (0, -len(data) % 4)).view(-1, 4)
    return data[:, 0] | data[:, 1] << 8 | data[:, 2] << 16 | data[:, 3] << 24 | 1 << 32


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements of a tensor without gaps, in memory order."""
    return tensor.as_strided((tensor.numel(),), (1,))


def _each_once(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor without the repeats of a broadcast."""
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _in_rows(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the elements of a tensor as tensors without gaps; one with gaps is copied part by part."""
    if is_dense(tensor):
        yield tensor
    elif tensor.nbytes <= _STRETCH:
        yield tensor.contiguous()
    else:
        dim = max(range(tensor.dim()), key=lambda at: tensor.shape[at])
        for half in torch.split(tensor, -(-tensor.shape[dim] // 2), dim):
            yield from _in_rows(half)


def _stream(tensor: torch.Tensor) -> int:
    return stream_number(tensor.get_device())


def _current(tensor: torch.Tensor) -> AbstractContextManager[object]:
    """Make the tensor's device the current one, on which kernels are launched."""
    index = tensor.get_device()
    return _AS_IT_IS if index < 0 or torch.cuda.current_device() == index else torch.cuda.device(index)


_AS_IT_IS = nullcontext()


# ----------------------------------------------------------------------------------------------------------------------
# Copies to host memory that the program does not notice. All names are in ``torch.cuda`` in every supported release.


def to_host(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor in host memory. gviz's wait for it does not trigger the sync-debug mode."""
    if not (tensor.is_cuda and torch.cuda.is_initialized()):  # type: ignore[no-untyped-call]  # PyTorch has no types here
        return tensor.cpu()
    with waiting_unnoticed():
        return tensor.cpu()


class _Window:
    """The number of threads copying now, and the program's sync-debug mode meanwhile.

    The mode applies to the whole process: the first thread to copy switches it off, and the last one on again.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a signal handler of the program may compute in between
        self.depth = 0
        self.mode = 0


_window = _Window()


@contextmanager
def waiting_unnoticed() -> Iterator[None]:
    """Disable the sync-debug mode so that gviz may wait for a device. No lock is held meanwhile."""
    window = _window
    with window.lock:
        window.depth += 1
        if window.depth == 1:
            window.mode = torch.cuda.get_sync_debug_mode()
            if window.mode:
                torch.cuda.set_sync_debug_mode(0)
    try:
        yield
    finally:
        with window.lock:
            window.depth -= 1
            # otherwise another thread set it
            if not window.depth and window.mode and not torch.cuda.get_sync_debug_mode():
                torch.cuda.set_sync_debug_mode(window.mode)
