"""PyTorch's global settings: threads, determinism, precision, the device. Few have an effect here."""

from __future__ import annotations

import os
from typing import Any

from gviz.engine import messages
from gviz.engine.argument_parser import parser_of, wanting_tensors
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
    """The number passed to `set_num_threads`; NumPy itself decides how many threads its BLAS uses."""
    return int(_settings["num_threads"])


def set_num_threads(n: int) -> None:
    """Stores the number for `get_num_threads`."""
    _settings["num_threads"] = _positive("set_num_threads", n)


def get_num_interop_threads() -> int:
    """The number passed to `set_num_interop_threads`."""
    return int(_settings["num_interop_threads"])


def set_num_interop_threads(n: int) -> None:
    """Stores the number for `get_num_interop_threads`."""
    _settings["num_interop_threads"] = _positive("set_num_interop_threads", n)


def _positive(function: str, n: object) -> int:
    if not isinstance(n, int) or isinstance(n, bool):
        raise RuntimeError(f"{function} expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"{function} expects a positive integer")
    return n


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Stores the mode; every operation of the engine is deterministic."""
    _settings["deterministic"], _settings["warn_only"] = bool(mode), bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """The mode passed to `use_deterministic_algorithms`."""
    return bool(_settings["deterministic"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """The `warn_only` passed to `use_deterministic_algorithms`."""
    return bool(_settings["warn_only"])


def get_float32_matmul_precision() -> str:
    """The value passed to `set_float32_matmul_precision`."""
    return str(_settings["precision"])


def set_float32_matmul_precision(precision: str) -> None:
    """Stores the value; matrices are always multiplied in full precision."""
    _settings["precision"] = precision


def set_flush_denormal(mode: bool) -> bool:
    """Returns False: the engine does not flush denormal numbers."""
    return False


def set_warn_always(b: bool) -> None:
    """Sets whether warnings that appear once per process appear every time."""
    messages.always = bool(b)


def is_warn_always_enabled() -> bool:
    """Whether warnings that appear once per process appear every time."""
    return messages.always


def get_default_device() -> Device:
    """The CPU."""
    return CPU


def set_default_device(device: Device | str | None) -> None:
    """Raises an error for any device but the CPU."""
    if device is not None:
        refuse(Device(device))


def get_device(input: Tensor) -> int:
    """The index of a tensor's GPU: always -1, for none."""
    return input.get_device()


get_device = wanting_tensors(get_device, "get_device", parser_of("get_device"))


def typename(obj: object, /) -> str:
    """The name of a tensor's or object's type."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )


def compile(model: Any = None, **options: Any) -> Any:
    """Returns the model or function itself, which runs eagerly; also usable as a decorator with options."""
    return (lambda function: function) if model is None else model
