"""Functions under the names that they had in older versions of PyTorch: without the underscore at the end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from gviz.source.call_stack import warn

P = ParamSpec("P")
R = TypeVar("R")


def deprecated_name(function: Callable[P, R], module: str) -> Callable[P, R]:
    """Return a function under its old name, without the underscore at the end. It warns, as PyTorch does."""
    name = function.__name__
    old = name.removesuffix("_")

    @functools.wraps(function)
    def renamed(*args: P.args, **kwargs: P.kwargs) -> R:
        warn(f"`{module}.{old}` is now deprecated in favor of `{module}.{name}`.", FutureWarning)
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = old
    return renamed
