"""``torch.backends.cuda``: no GPU, and its switches."""

from __future__ import annotations

from types import SimpleNamespace

from gviz.engine.missing import lookup_in

matmul = SimpleNamespace(allow_tf32=False)


def is_built() -> bool:
    """Whether the engine could use one: no."""
    return False


__getattr__ = lookup_in(__name__)
