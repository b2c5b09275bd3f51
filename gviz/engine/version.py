"""``torch.version``: the version of PyTorch that the engine follows."""

from __future__ import annotations

__all__ = ["__version__", "cuda", "debug", "hip"]

__version__ = "2.13.0+gviz"
debug = False
cuda: str | None = None
hip: str | None = None
