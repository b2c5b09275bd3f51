"""``torch.utils.hooks``: the handle that registering a hook returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gviz.engine.node import RemovableHandle as RemovableHandle
from gviz.engine.unsupported_names import lookup_in

F = TypeVar("F", bound=Callable[..., Any])


def unserializable_hook(f: F) -> F:
    """Marks a hook that is omitted, without a warning, when its tensor is pickled."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]  # every function may have attributes
    return f


__getattr__ = lookup_in(__name__)
