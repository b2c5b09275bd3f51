"""``torch.backends.mps``: no Apple GPU."""

from __future__ import annotations

from gviz.engine.missing import lookup_in


def is_available() -> bool:
    """Whether there is one: never."""
    return False


def is_built() -> bool:
    """Whether the engine could use one: no."""
    return False


__getattr__ = lookup_in(__name__)
