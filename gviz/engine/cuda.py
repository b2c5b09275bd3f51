"""``torch.cuda``, of a PyTorch that was built without it."""

from __future__ import annotations

from typing import Any, NoReturn

from gviz.engine.missing import lookup_in


def is_available() -> bool:
    """Whether there is a GPU: never."""
    return False


def is_initialized() -> bool:
    """Whether CUDA was started: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether GPUs have bfloat16: there is none."""
    return False


def device_count() -> int:
    """The number of GPUs: none."""
    return 0


def empty_cache() -> None:
    """Nothing to do."""


def manual_seed(seed: int) -> None:
    """Nothing to do: there is no generator on a GPU."""


def manual_seed_all(seed: int) -> None:
    """Nothing to do, as above."""


def memory_allocated(device: Any = None) -> int:
    """The bytes in use on a GPU: none."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """The bytes that were in use on a GPU: none."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """The bytes kept on a GPU: none."""
    return 0


def _refused(*args: Any, **options: Any) -> NoReturn:
    """Refused: there is only the CPU."""
    raise AssertionError("Torch not compiled with CUDA enabled")


current_device = get_device_name = get_device_properties = init = synchronize = set_device = _refused

__getattr__ = lookup_in(__name__)
