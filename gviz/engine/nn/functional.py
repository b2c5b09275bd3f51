"""``torch.nn.functional``: the functions of all layers in one namespace.

Each function is defined next to its module: ``conv2d`` and `Conv2d` in ``conv.py``, ``cross_entropy`` and
`CrossEntropyLoss` in ``loss.py``. There, `_declare` adds it to this namespace, wrapped in a check of its arguments with
PyTorch's error texts. Modules call the functions through this namespace, as in PyTorch, so that a program can replace
one. ``python -m gviz.engine.type_stubs`` writes ``functional.pyi``, which gives type checkers the signatures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gviz.engine.arguments import want_tensors as _want_tensors
from gviz.engine.ops.images import pad
from gviz.engine.ops.matrix_products import linear
from gviz.engine.unsupported_names import lookup_in as _lookup_in

_F = TypeVar("_F", bound=Callable[..., Any])


def _declare(function: _F) -> _F:
    """Add a function to this namespace under its name. Return it unchanged."""
    declared: dict[str, Any] = {"__name__": __name__, function.__name__: function}
    _want_tensors(declared)
    globals()[function.__name__] = declared[function.__name__]
    return function


_declare(linear)
_declare(pad)

__getattr__ = _lookup_in(__name__)
