"""``import torchviz`` when ``import torch`` means the built-in engine: its one function, drawn by `gviz.make_dot`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from gviz.api.make_dot import make_dot as draw

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor
    from gviz.render.graphviz.digraph import Digraph

__all__ = ["make_dot"]


def make_dot(
    var: Tensor | tuple[Tensor, ...],
    params: Mapping[str, Tensor] | None = None,
    show_attrs: bool = False,
    show_saved: bool = False,
    max_attr_chars: int = 50,
) -> Digraph:
    """Return the graph behind a tensor; called like ``torchviz.make_dot``."""
    return draw(var, params, show_attrs, show_saved, max_attr_chars)


def make_dot_from_trace(trace: object) -> NoReturn:
    """Raise NotImplementedError, as torchviz itself does."""
    raise NotImplementedError("make_dot_from_trace is not implemented in torchviz either: use make_dot")
