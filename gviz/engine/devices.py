"""``torch.device``: the CPU is the only one there is; the others can be named, and are refused in PyTorch's words."""

from __future__ import annotations

import re
import sys
import warnings
from typing import Any

from gviz.site import is_hidden

_TYPES = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, mtia, "
    "privateuseone"
)
_COMPILED_FOR = {"xpu": "XPU", "hip": "HIP"}
_CALLS = (
    "device() received an invalid combination of arguments - got ({got}), but expected one of:\n"
    " * (torch.device device)\n{why} * (str type, int index = -1)\n"
)


class device:  # PyTorch's own spelling: users write torch.device
    """A place for tensors, by type and index. As a context manager it changes nothing: all tensors are on the CPU."""

    __slots__ = ("index", "type")
    __module__ = "torch"
    type: str
    index: int | None

    def __new__(cls, type: Any = ..., index: int | None = None) -> device:
        if isinstance(type, device):
            return type
        self = super().__new__(cls)
        self.type, self.index = _parsed(type, index)
        return self

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (str(self),)

    def __enter__(self) -> device:
        refuse(self)
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def _restored(text: str) -> device:
    return device(text)


def _parsed(kind: object, index: int | None) -> tuple[str, int | None]:
    if kind is ...:
        raise TypeError(_CALLS.format(got="", why=""))
    if isinstance(kind, int) and not isinstance(kind, bool):
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if not isinstance(kind, str):
        name = type(kind).__name__
        why = f"      didn't match because some of the arguments have invalid types: (!{name}!)\n"
        raise TypeError(_CALLS.format(got=name, why=why))
    if not kind:
        raise RuntimeError("Device string must not be empty")
    parts = re.fullmatch(r"([a-z]+)(?::(0|[1-9]\d*))?", kind)
    if parts is None:
        raise RuntimeError(f"Invalid device string: '{kind}'")
    name, own = parts.groups()
    if name not in _TYPES.split(", "):
        raise RuntimeError(f"Expected one of {_TYPES} device type at start of device string: {kind}")
    if own is not None and index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {kind}")
    return name, int(own) if own is not None else index


CPU = device("cpu")


class _Cuda:
    """What device ``cuda`` means: an error, as in a PyTorch without it, or, `stands_for_cpu`, the CPU; said once."""

    stands_for_cpu = False
    was_said = False


cuda_here = _Cuda()

NO_GPU = (
    "gviz's built-in engine has no GPU: device 'cuda' means the CPU here, and a CUDA graph is one that is captured and "
    "replayed on fixed buffers of the CPU"
)


def say_what_cuda_means() -> None:
    """Warn, the first time, that ``cuda`` is the CPU. AssertionError, in PyTorch's words, where it is not."""
    if not cuda_here.stands_for_cpu:
        raise AssertionError("Torch not compiled with CUDA enabled")
    if cuda_here.was_said:
        return
    cuda_here.was_said = True
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and is_hidden(frame.f_code.co_filename):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(NO_GPU, stacklevel=depth + 1)


def refuse(wanted: device) -> None:
    """Do nothing for the CPU, and what stands for it. Raise in PyTorch's words for a device it was not built for."""
    if wanted.type == "cpu":
        return
    if wanted.type == "cuda":
        say_what_cuda_means()
        return
    if wanted.type in _COMPILED_FOR:
        raise AssertionError(f"Torch not compiled with {_COMPILED_FOR[wanted.type]} enabled")
    raise NotImplementedError(f"gviz's built-in engine has no device '{wanted}': all its tensors are on the CPU")


def check(value: object, function: str) -> None:
    """Refuse a ``device=`` argument that is no device, or none of ours."""
    if value is None or value is CPU:
        return
    if not isinstance(value, (str, int, device)) or isinstance(value, bool):
        raise TypeError(f"{function}(): argument 'device' must be torch.device, not {type(value).__name__}")
    refuse(device(value))
