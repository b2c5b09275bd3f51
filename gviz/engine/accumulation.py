"""Adding to a leaf's ``.grad``: what is taken over as it is, what is copied, what is written in place.

PyTorch takes a gradient over if nothing else refers to it and it is laid out like the leaf, and otherwise copies it;
``.grad._version`` tells which. As it counts references, so does this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any

import numpy as np

from gviz.engine import messages, watching
from gviz.engine.modes import thread
from gviz.engine.node import Grad
from gviz.engine.ops.strided import overlaps_itself
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array

_IN_LIST = 2
_NAMED = 3
"""References to what only a list holds; to what a caller names and hands to the function that counts."""


def accumulate(leaf: Tensor, arrived: list[Grad | None], written: int, create_graph: bool) -> None:
    """Add what has arrived to a leaf's ``.grad``: in place, or out of place when the pass builds a graph.

    `written` says how often what arrived was added to in place (see `adds_in_place`).
    """
    before = leaf._grad
    if watching.is_recording():
        _accumulate_recorded(leaf, arrived[0])
    elif create_graph:
        grad: Grad = arrived[0]
        leaf._set_grad(_recorded_copy(leaf, grad) if before is None else before + grad)
    elif before is None:
        shared = getrefcount(arrived[0]) > _IN_LIST
        leaf._set_grad(_taken(leaf, arrived[0], shared, written))
    else:
        _add(before, arrived[0])


def _accumulate_recorded(leaf: Tensor, grad: Grad) -> None:
    """As a pass without a graph does it, with operations: a copy the first time, then writes to its memory."""
    part = grad._alias()
    if leaf._grad is None:
        leaf._set_grad(_recorded_copy(leaf, part))
    else:
        leaf._grad.add_(part)


def adds_in_place(before: Grad, parts: Sequence[Grad | None]) -> bool:
    """Whether PyTorch adds a second contribution into the memory of the first, which its caller alone refers to.

    The first may be of the same step as the second, one of its `parts`.
    """
    alone = _NAMED + any(part is before for part in parts)
    return getrefcount(before) <= alone and not isinstance(before, Tensor) and before.base is None


def _taken(leaf: Tensor, grad: Grad, shared: bool, version: int) -> Tensor:
    if shared or grad.shape != leaf._array.shape or not _obeys(grad, leaf._array):
        return _copied(leaf, grad)
    # PyTorch takes over views, too, and so lets two leaves share a gradient; here each has its own.
    taken = new_tensor(grad if isinstance(grad, np.ndarray) and grad.base is None else np.array(grad))
    taken._counter[0] = version
    return taken


def _copied(leaf: Tensor, grad: Grad) -> Tensor:
    if not _is_dense(leaf._array):
        return new_tensor(np.array(grad, order="C"))
    copy = new_tensor(np.empty_like(leaf._array))
    copy._array[...] = grad
    copy._counter[0] = 1
    return copy


def _recorded_copy(leaf: Tensor, grad: Tensor) -> Tensor:
    if not _is_dense(leaf._array):
        return grad.clone()
    return new_tensor(np.zeros_like(leaf._array)).copy_(grad)  # a recording shows what it was before


def _add(to: Tensor, grad: Grad) -> None:
    array = to._array
    if to.is_inference() and not thread.inference:
        raise RuntimeError(messages.INFERENCE_IN_PLACE)
    if overlaps_itself(array):
        raise RuntimeError(messages.OVERLAPPING_WRITE)
    np.add(array, grad, out=array)
    to._counter[0] += 1


def _obeys(grad: Any, own: Array) -> bool:
    """Whether a gradient is laid out as its leaf is, or in C order if the leaf has gaps or overlaps."""
    if grad.base is not None and grad.ndim and not any(grad.strides):  # one number, expanded
        return False
    if not _is_dense(own):
        return bool(grad.flags.c_contiguous)
    if own.size and grad.flags.c_contiguous and own.flags.c_contiguous:
        return True
    return _steps(grad) == _steps(own)


def _is_dense(array: Array) -> bool:
    flags = array.flags
    return flags.c_contiguous or flags.f_contiguous or _steps(array) == _steps(np.empty_like(array))


def _steps(array: Any) -> list[int]:
    return [step for step, size in zip(array.strides, array.shape, strict=True) if size != 1]
