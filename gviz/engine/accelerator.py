"""``torch.accelerator``, where there is none."""

from __future__ import annotations

from gviz.engine.missing import lookup_in


def is_available() -> bool:
    """Whether there is one: never."""
    return False


def device_count() -> int:
    """How many there are: none."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """The device of the accelerator: None."""


__getattr__ = lookup_in(__name__)
