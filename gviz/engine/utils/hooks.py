"""``torch.utils.hooks``: the handle that every registration of a hook gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gviz.engine.node import RemovableHandle as RemovableHandle
from gviz.engine.unsupported_names import lookup_in

F = TypeVar("F", bound=Callable[..., Any])


def unserializable_hook(f: F) -> F:
    """Mark a hook as one that is left out, without a warning, when its tensor is pickled."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]  # every function may have attributes
    return f


__getattr__ = lookup_in(__name__)
