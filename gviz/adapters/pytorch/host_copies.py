"""Copies of device tensors to host memory, which the program does not notice.

All names are in ``torch.cuda`` in every supported release. They are used only for tensors on a device.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
