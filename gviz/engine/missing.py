"""Says of a name that PyTorch has and the engine has not that this is the engine's limit, and what comes nearest."""

from __future__ import annotations

import sys
from collections.abc import Callable
from difflib import get_close_matches
from typing import NoReturn


def lookup_in(module: str) -> Callable[[str], NoReturn]:
    """A module's ``__getattr__``, called for names it does not have."""
    shaped = module.replace("gviz.engine", "torch")

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        present = [known for known in vars(sys.modules[module]) if not known.startswith("_")]
        near = get_close_matches(name, present, 3)
        nearest = f"; it has {', '.join(near)}" if near else ""
        raise AttributeError(f"gviz's built-in engine has no {shaped}.{name} yet{nearest}")

    return __getattr__
