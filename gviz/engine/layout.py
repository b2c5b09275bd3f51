"""``torch.layout`` and ``torch.memory_format``: the engine has arrays with strides, and no other kind."""

from __future__ import annotations

from typing import Any

__all__ = [
    "channels_last",
    "channels_last_3d",
    "contiguous_format",
    "layout",
    "memory_format",
    "preserve_format",
    "sparse_coo",
    "sparse_csr",
    "strided",
]


class _Named:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return named, (self.name,)


class layout(_Named):  # PyTorch's own spelling, as below
    """How the elements of a tensor lie in memory."""

    __slots__ = ()
    __module__ = "torch"


class memory_format(_Named):
    """In which order the elements of a new tensor lie."""

    __slots__ = ()
    __module__ = "torch"


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def named(name: str) -> _Named:
    """The layout or memory format called `name`."""
    found: _Named = globals()[name]
    return found


def check(given: object) -> None:
    """Refuse the layouts and memory formats that the engine has no arrays for."""
    if given in (None, strided, contiguous_format, preserve_format):
        return
    if isinstance(given, _Named):
        raise NotImplementedError(f"gviz's built-in engine has no {given} tensors: their memory is strided")
    raise TypeError(f"argument must be torch.layout or torch.memory_format, not {type(given).__name__}")
