"""Switches of PyTorch that programs flip: threads, determinism, precision, the device. Few change anything here."""

from __future__ import annotations

import os
from typing import Any

from gviz.engine import messages
from gviz.engine.arguments import parser_of, wanting_tensors
from gviz.engine.devices import CPU, refuse
from gviz.engine.devices import device as Device
from gviz.engine.tensor import Tensor

__all__ = [
    "are_deterministic_algorithms_enabled",
    "compile",
    "get_default_device",
    "get_device",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_default_device",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_warn_always",
    "typename",
    "use_deterministic_algorithms",
]

_settings: dict[str, Any] = {
    "num_threads": os.cpu_count() or 1,
    "num_interop_threads": os.cpu_count() or 1,
    "deterministic": False,
    "warn_only": False,
    "precision": "highest",
}


def get_num_threads() -> int:
    """The number given to `set_num_threads`; numpy itself decides how many threads its BLAS has."""
    return int(_settings["num_threads"])


def set_num_threads(n: int) -> None:
    """Remembered for `get_num_threads`."""
    _settings["num_threads"] = _positive("set_num_threads", n)


def get_num_interop_threads() -> int:
    """The number given to `set_num_interop_threads`."""
    return int(_settings["num_interop_threads"])


def set_num_interop_threads(n: int) -> None:
    """Remembered for `get_num_interop_threads`."""
    _settings["num_interop_threads"] = _positive("set_num_interop_threads", n)


def _positive(function: str, n: object) -> int:
    if not isinstance(n, int) or isinstance(n, bool):
        raise RuntimeError(f"{function} expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"{function} expects a positive integer")
    return n


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remembered: every operation of the engine is deterministic."""
    _settings["deterministic"], _settings["warn_only"] = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """The mode given to `use_deterministic_algorithms`."""
    return bool(_settings["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The `warn_only` given to `use_deterministic_algorithms`."""
    return bool(_settings["warn_only"])


def get_float32_matmul_precision() -> str:
    """The value given to `set_float32_matmul_precision`."""
    return str(_settings["precision"])


def set_float32_matmul_precision(precision: str) -> None:
    """Remembered: matrices are always multiplied in full precision."""
    _settings["precision"] = precision


def set_flush_denormal(mode: bool) -> bool:
    """False: the engine leaves very small numbers as they are."""
    return False


def set_warn_always(b: bool) -> None:
    """Whether warnings that appear once in a process are to appear each time."""
    messages.always = bool(b)


def is_warn_always_enabled() -> bool:
    """Whether warnings that appear once in a process appear each time."""
    return messages.always


def get_default_device() -> Device:
    """The CPU."""
    return CPU


def set_default_device(device: Device | str | None) -> None:
    """Refused for all but the CPU."""
    if device is not None:
        refuse(Device(device))


def get_device(input: Tensor) -> int:
    """The number of the GPU a tensor is on: -1, none."""
    return input.get_device()


get_device = wanting_tensors(get_device, "get_device", parser_of("get_device"))


def typename(obj: object, /) -> str:
    """The type of a tensor or object by name."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )


def compile(model: Any = None, **options: Any) -> Any:
    """The model or function itself, which runs eagerly; also usable as a decorator with options."""
    return (lambda function: function) if model is None else model
