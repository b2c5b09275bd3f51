"""``torch.backends.mkl``: the engine has numpy's BLAS."""

from __future__ import annotations

from gviz.engine.missing import lookup_in


def is_available() -> bool:
    """Whether matrices are multiplied by MKL: not as far as the engine knows."""
    return False


__getattr__ = lookup_in(__name__)
