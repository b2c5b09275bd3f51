"""Pointwise operations on large arrays, computed into existing memory without temporary arrays.

NumPy makes an array for the result and one for each intermediate step. If these are larger than the processor's
cache, allocating them costs more than the arithmetic, because the system provides new pages and takes them back at
once. For ``p.add_(g, alpha=-0.1)`` of 200,000 float32 this was 90 % of the time.

A pointwise operation computes element i from element i of its operands. If it is a single NumPy function, that function
writes to the output directly. If it takes several steps, the op declares how it writes a *block*: the first `BLOCK`
elements of each operand, then the next, with scratch memory that stays in the cache. It does the same arithmetic in the
same order as the op's forward, bit for bit.

    p:   [ block 0 | block 1 | ... ]     each block:  scratch = g[block] * -0.1;  p[block] += scratch
    g:   [ block 0 | block 1 | ... ]

An operand may be exactly the memory that is written (``x.mul_(x)``); `views.check_overlap` refuses other overlaps.
Operands must be floating, of one dtype, and contiguous or 0-dimensional. Then nothing can fail, so no write stops
half-way.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gviz.engine.op import Attrs, Op
from gviz.values.value import Array

BLOCK = 8192
"""In elements: 32 KB of float32, so a block of three operands and the scratch memory fit into a cache of 256 KB."""

_FUNCTIONS: dict[Callable[..., Any], np.ufunc] = {
    operator.add: np.add,
    operator.sub: np.subtract,
    operator.mul: np.multiply,
    operator.truediv: np.true_divide,
    operator.neg: np.negative,
}
"""NumPy functions that do what an op's forward does on arrays."""


class _Scratch(threading.local):
    """Memory for the intermediate results of a block, two arrays per dtype; each thread has its own."""

    def __init__(self) -> None:
        self._arrays: dict[np.dtype[Any], tuple[Array, Array]] = {}

    def of(self, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """Two arrays of `BLOCK` elements."""
        if dtype not in self._arrays:
            self._arrays[dtype] = (np.empty(BLOCK, dtype), np.empty(BLOCK, dtype))
        return self._arrays[dtype]


_scratch = _Scratch()


def scratch(size: int, dtype: Any) -> tuple[Array, Array]:
    """Two uninitialized arrays of `size` elements, at most `BLOCK`, for the intermediate results of a block."""
    first, second = _scratch.of(np.dtype(dtype))
    return first[:size], second[:size]


def fit_blocks(op: Op, arrays: Sequence[Array], out: Array) -> bool:
    """Whether `run_in_blocks` can write the result of `op` to `out`; `arrays` are its operands, already promoted."""
    if out.size <= BLOCK or out.dtype.kind != "f" or not out.flags.c_contiguous:
        return False
    if op.write_block is None and _function(op) is None:
        return False
    for array in arrays:
        if array.dtype != out.dtype or (array.ndim and not (array.shape == out.shape and array.flags.c_contiguous)):
            return False
    return arrays[0].ndim > 0


def run_in_blocks(op: Op, arrays: Sequence[Array], attrs: Attrs, out: Array) -> None:
    """Writes the result of `op` to `out`; the arguments must satisfy `fit_blocks`."""
    function, write = _function(op), op.write_block
    if function is not None:
        function(*arrays, out=out)
        return
    assert write is not None, "it fits blocks"
    first, *others = [array.reshape(-1) if array.ndim else array for array in arrays]
    written = out.reshape(-1)
    for start in range(0, written.size, BLOCK):
        block = slice(start, start + BLOCK)
        if out is not arrays[0]:
            written[block] = first[block]
        write(written[block], *[other[block] if other.ndim else other for other in others], **attrs)


def _function(op: Op) -> np.ufunc | None:
    """Return the NumPy function that is the whole of the op's forward, or None."""
    forward = getattr(op.forward, "__wrapped__", op.forward)
    if isinstance(forward, np.ufunc):
        return forward if forward.signature is None and forward.nout == 1 else None  # `np.matmul` is a ufunc too
    return _FUNCTIONS.get(forward)
