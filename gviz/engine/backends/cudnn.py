"""``torch.backends.cudnn``: what programs set for reproducible results, which they have here anyway."""

from __future__ import annotations

from gviz.engine.missing import lookup_in

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether there is a cuDNN: never."""
    return False


def version() -> None:
    """The version of cuDNN: None."""


__getattr__ = lookup_in(__name__)
