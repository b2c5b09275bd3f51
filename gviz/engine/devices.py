"""``torch.device``, and the devices that the engine knows but does not have.

All tensors are on the CPU. A program may name another device: creating a tensor there raises the error of a PyTorch
that was built without it. A program may also query a device. ``torch.mps``, ``torch.xpu``, ``torch.accelerator`` and
the switches of ``torch.backends`` return what such a PyTorch returns: they are small namespaces, made at the end of
this file. ``torch.cuda``, which also has streams and graphs, is in `cuda`.

Where ``import torch`` imports the engine, ``cuda`` means the CPU (`cuda_here`), so that tutorials run unchanged.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

from gviz.engine.unsupported_names import lookup_in
from gviz.source.call_stack import warn

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
    """A device for tensors, by type and index. As a context manager it does nothing: all tensors are on the CPU."""

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
    """Whether device ``cuda`` means the CPU (`stands_for_cpu`) or an error, and whether the warning was shown."""

    stands_for_cpu = False
    was_warned = False


cuda_here = _Cuda()

NO_GPU = (
    "gviz's built-in engine has no GPU: device 'cuda' means the CPU here, and a CUDA graph is one that is captured and "
    "replayed on fixed buffers of the CPU"
)


def warn_that_cuda_is_the_cpu() -> None:
    """Warns once that ``cuda`` means the CPU. Raises AssertionError, with PyTorch's text, if it does not."""
    if not cuda_here.stands_for_cpu:
        raise AssertionError("Torch not compiled with CUDA enabled")
    if cuda_here.was_warned:
        return
    cuda_here.was_warned = True
    warn(NO_GPU)


def refuse(requested: device) -> None:
    """Raises PyTorch's error for a device that is neither the CPU nor a name for it."""
    if requested.type == "cpu":
        return
    if requested.type == "cuda":
        warn_that_cuda_is_the_cpu()
        return
    if requested.type in _COMPILED_FOR:
        raise AssertionError(f"Torch not compiled with {_COMPILED_FOR[requested.type]} enabled")
    raise NotImplementedError(f"gviz's built-in engine has no device '{requested}': all its tensors are on the CPU")


def check(value: object, function: str) -> None:
    """Raises an error for a ``device`` argument of `function` that is not a device, or one that the engine lacks."""
    if value is None or value is CPU:
        return
    if not isinstance(value, (str, int, device)) or isinstance(value, bool):
        raise TypeError(f"{function}(): argument 'device' must be torch.device, not {type(value).__name__}")
    refuse(device(value))


def _answers(value: Any, doc: str) -> Callable[[], Any]:
    """Return a function that always returns `value`."""

    def function() -> Any:
        return value

    function.__doc__ = doc
    function.__annotations__ = {"return": "None" if value is None else type(value).__name__}
    return function


def _namespace(path: str, doc: str, **members: Any) -> Any:
    """Return a module of the engine, made of `members`; ``import torch.mps`` finds it like a module with a file."""
    name = f"{__package__}.{path}"
    module = ModuleType(name, doc)
    module.__spec__, module.__path__ = ModuleSpec(name, None, is_package=True), []
    for own, member in members.items():
        if callable(member):
            member.__module__, member.__name__, member.__qualname__ = name, own, own  # pickle finds it by these names
    vars(module).update(members, __getattr__=lookup_in(name))
    sys.modules[name] = module
    return module


def _current_accelerator(check_available: bool = False) -> None:
    """Return the device of the accelerator: None."""


mps = _namespace(
    "mps",
    "``torch.mps``, without an Apple GPU.",
    is_available=_answers(False, "Whether there is an Apple GPU: never."),
    device_count=_answers(0, "The number of Apple GPUs: 0."),
)
xpu = _namespace(
    "xpu",
    "``torch.xpu``, without an Intel GPU.",
    is_available=_answers(False, "Whether there is an Intel GPU: never."),
    device_count=_answers(0, "The number of Intel GPUs: 0."),
)
accelerator = _namespace(
    "accelerator",
    "``torch.accelerator``, without one.",
    is_available=_answers(False, "Whether there is an accelerator: never."),
    device_count=_answers(0, "The number of accelerators: 0."),
    current_accelerator=_current_accelerator,
)
backends = _namespace(
    "backends",
    "``torch.backends``: switches that programs set and that change nothing here.",
    cuda=_namespace(
        "backends.cuda",
        "``torch.backends.cuda``: no GPU, and its switches.",
        matmul=SimpleNamespace(allow_tf32=False),
        is_built=_answers(False, "Whether the engine could use a GPU: no."),
    ),
    cudnn=_namespace(
        "backends.cudnn",
        "``torch.backends.cudnn``: switches for reproducible results, which the engine always gives.",
        enabled=True,
        benchmark=False,
        deterministic=False,
        allow_tf32=True,
        is_available=_answers(False, "Whether there is a cuDNN: never."),
        version=_answers(None, "The version of cuDNN: None."),
    ),
    mkl=_namespace(
        "backends.mkl",
        "``torch.backends.mkl``: the engine multiplies with numpy's BLAS.",
        is_available=_answers(False, "Whether matrices are multiplied by MKL: not as far as the engine knows."),
    ),
    mps=_namespace(
        "backends.mps",
        "``torch.backends.mps``: no Apple GPU.",
        is_available=_answers(False, "Whether there is an Apple GPU: never."),
        is_built=_answers(False, "Whether the engine could use one: no."),
    ),
)

sys.modules[f"{__package__}.device"] = sys.modules[__name__]  # pickles of older versions look for `_restored` here
