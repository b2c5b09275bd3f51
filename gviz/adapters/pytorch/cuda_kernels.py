"""Triton kernels that read a tensor on the device and write what they find into host memory.

Addresses are passed as numbers. Triton then inspects no tensors and does not recompile for another alignment, so a
launch costs the program a few microseconds. Compiled kernels are in Triton's own cache, like those of any other
program.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_TYPES = {
    torch.bool: tl.int8, torch.uint8: tl.uint8, torch.int8: tl.int8, torch.int16: tl.int16, torch.int32: tl.int32,
    torch.int64: tl.int64, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32,
    torch.float64: tl.float64,
}  # fmt: skip
"""Triton's names for PyTorch's dtypes."""

_WIDE = torch.float64, torch.int64, torch.int32
"""The dtypes with values that float32 cannot represent."""

_WARPS = 8
"""At 8 warps a program has 64 registers per thread and four programs run on a multiprocessor: 1.9 TB/s on an H200.

4 warps with 128 registers reach 1.2 TB/s."""

_WORDS = 256
"""The number of words that one program copies."""


@triton.jit(do_not_specialize=["source", "target", "scratch", "count"])
def summarize(
    source: tl.int64, target: tl.int64, scratch: tl.int64, count: tl.int64, TYPE: tl.constexpr,
    IS_WIDE: tl.constexpr, IS_ALIGNED: tl.constexpr, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr,
    SMALL: tl.constexpr, LARGE: tl.constexpr, SCALE: tl.constexpr,
) -> None:  # fmt: skip
    """Write nine numbers about `count` elements to `target`, in the layout of `device_values`.

    Every program of the grid processes blocks of the array; there are up to `PROGRAMS` of them. The last one to finish,
    found by a ticket, adds up the partial results in `scratch` in program order, so the sums do not depend on which ran
    first. A single program (`PROGRAMS` is 1) needs no scratch.
    """
    elements = source.to(tl.pointer_type(TYPE))
    if IS_ALIGNED:  # loads of 16 bytes: half the time
        elements = tl.multiple_of(elements, 16)
    answer = target.to(tl.pointer_type(tl.float64))
    program = tl.program_id(0).to(tl.int64)
    programs = tl.num_programs(0)
    lanes = tl.arange(0, BLOCK)
    WIDE: tl.constexpr = tl.float64 if IS_WIDE else tl.float32
    least = tl.full([BLOCK], float("inf"), WIDE)
    most = tl.full([BLOCK], float("-inf"), WIDE)
    total = tl.zeros([BLOCK], tl.float64)
    squares = tl.zeros([BLOCK], tl.float64)
    small = tl.zeros([BLOCK], tl.float64)
    large = tl.zeros([BLOCK], tl.float64)
    nans = tl.zeros([BLOCK], tl.int32)
    infinite = tl.zeros([BLOCK], tl.int32)
    zeros = tl.zeros([BLOCK], tl.int32)
    for start in range(program * BLOCK, count, programs.to(tl.int64) * BLOCK):
        inside = start + lanes < count
        x = tl.load(elements + start + lanes, mask=inside, other=0).to(WIDE)
        is_nan = x != x
        is_infinite = tl.abs(x) == float("inf")
        is_finite = inside & ~is_nan & ~is_infinite
        nans += (inside & is_nan).to(tl.int32)
        infinite += (inside & is_infinite).to(tl.int32)
        zeros += (inside & (x == 0)).to(tl.int32)
        least = tl.minimum(least, tl.where(is_finite, x, float("inf")))
        most = tl.maximum(most, tl.where(is_finite, x, float("-inf")))
        wide = tl.where(is_finite, x, 0).to(tl.float64)
        total += wide
        squares += wide * wide
        if IS_WIDE:
            low = tl.where(tl.abs(wide) < SMALL, wide * SCALE, 0)
            high = tl.where(tl.abs(wide) > LARGE, wide / SCALE, 0)
            small += low * low
            large += high * high
    own = answer if PROGRAMS == 1 else scratch.to(tl.pointer_type(tl.float64)) + (program + 1) * 16
    tl.store(own + 0, tl.min(least, 0).to(tl.float64))
    tl.store(own + 1, tl.max(most, 0).to(tl.float64))
    tl.store(own + 2, tl.sum(total, 0))
    tl.store(own + 3, tl.sum(squares, 0))
    tl.store(own + 4, tl.sum(nans.to(tl.int64), 0).to(tl.float64))
    tl.store(own + 5, tl.sum(infinite.to(tl.int64), 0).to(tl.float64))
    tl.store(own + 6, tl.sum(zeros.to(tl.int64), 0).to(tl.float64))
    tl.store(own + 7, tl.sum(small, 0))
    tl.store(own + 8, tl.sum(large, 0))
    if PROGRAMS > 1:
        tl.debug_barrier()  # all threads of this program have stored before it draws its ticket
        tickets = scratch.to(tl.pointer_type(tl.int32))
        if tl.atomic_add(tickets, 1, sem="acq_rel") == programs - 1:
            tl.debug_barrier()
            rows = tl.arange(0, PROGRAMS)
            exists = rows < programs
            row = scratch.to(tl.pointer_type(tl.float64)) + (rows + 1) * 16
            # bypasses this multiprocessor's cache, which may hold what was there before
            tl.store(answer + 0, tl.min(tl.load(row + 0, mask=exists, other=float("inf"), cache_modifier=".cg"), 0))
            tl.store(answer + 1, tl.max(tl.load(row + 1, mask=exists, other=float("-inf"), cache_modifier=".cg"), 0))
            for number in tl.static_range(2, 9):
                part = tl.load(row + number, mask=exists, other=0.0, cache_modifier=".cg")
                tl.store(answer + number, tl.sum(part, 0))
            tl.store(tickets, 0)


@triton.jit(do_not_specialize=["source", "target", "count"])
def copy_bytes(source: tl.int64, target: tl.int64, count: tl.int64, WORDS: tl.constexpr) -> None:
    """Write `count` bytes to `target`, four per word; the upper half of each word is 1."""
    source_bytes = source.to(tl.pointer_type(tl.uint8))
    words = target.to(tl.pointer_type(tl.int64))
    places = tl.program_id(0).to(tl.int64) * WORDS + tl.arange(0, WORDS)
    word = tl.full([WORDS], 1, tl.int64) << 32
    for byte in tl.static_range(4):
        at = places * 4 + byte
        word |= tl.load(source_bytes + at, mask=at < count, other=0).to(tl.int64) << (8 * byte)
    tl.store(words + places, word, mask=places * 4 < count)


class Kernels:
    """The kernels of a process, compiled for each dtype and device at the first launch, which takes half a second.

    A launch returns whether it was made. Once one cannot be compiled (Triton needs a C compiler), every launch returns
    False.
    """

    def __init__(self, block: int, programs: int, small: float, large: float, scale: float) -> None:
        self._block, self._programs, self._range = block, programs, (small, large, scale)
        self._compiled: dict[tuple[object, ...], Any] = {}
        self.works = True

    def summarize(
        self, source: int, target: int, scratch: int, count: int, dtype: torch.dtype, programs: int,
        device: int, stream: int,
    ) -> bool:  # fmt: skip
        """Launch the statistics kernel for `count` elements at the address `source`, with a grid of `programs`."""
        is_aligned = source % 16 == 0
        constants = (
            _TYPES[dtype],
            dtype in _WIDE,
            is_aligned,
            self._block,
            1 if programs == 1 else self._programs,
            *self._range,
        )
        key = dtype, is_aligned, programs == 1, device
        return self._launch(summarize, key, programs, stream, (source, target, scratch, count, *constants))

    def copy_bytes(self, source: int, target: int, count: int, device: int, stream: int) -> bool:
        """Launch the copy of `count` bytes at the address `source`."""
        programs = -(-count // (4 * _WORDS))
        return self._launch(copy_bytes, (device,), programs, stream, (source, target, count, _WORDS))

    def _launch(
        self, kernel: Any, key: tuple[object, ...], programs: int, stream: int, arguments: tuple[Any, ...]
    ) -> bool:
        if not self.works:
            return False
        compiled = self._compiled.get(key)
        if compiled is not None and _CAN_LAUNCH:
            compiled[programs, 1, 1](*arguments, stream=stream)
            return True
        try:
            self._compiled[key] = kernel[programs,](*arguments, num_warps=_WARPS)
        except Exception:  # whatever a compiler may raise: PyTorch's operations give the same numbers
            self.works = False
        return self.works


_CAN_LAUNCH = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 3)
"""Whether compiled kernels are launched directly with all arguments and a stream: half the time of a lookup."""
