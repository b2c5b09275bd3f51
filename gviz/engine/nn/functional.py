"""``torch.nn.functional``: the functions of all layers in one namespace.

Each function is defined next to its module: ``conv2d`` and `Conv2d` in ``conv.py``, ``cross_entropy`` and
`CrossEntropyLoss` in ``loss.py``. There, `_declare` adds it to this namespace, wrapped in a check of its arguments with
PyTorch's error texts. Modules call the functions through this namespace, as in PyTorch, so that a program can replace
one. ``python -m gviz.engine.type_stubs`` writes ``functional.pyi``, which gives type checkers the signatures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gviz.engine.argument_parser import want_tensors as _want_tensors
from gviz.engine.ops.images import pad
from gviz.engine.ops.matrix_products import linear
from gviz.engine.unsupported_names import lookup_in as _lookup_in

_F = TypeVar("_F", bound=Callable[..., Any])

_READ_FIRST = {
    **{f"{name}_loss": "target.size input.size" for name in ("mse", "l1", "smooth_l1", "huber")},
    **{f"binary_cross_entropy{end}": "target.size input.size" for end in ("", "_with_logits")},
    **dict.fromkeys(("glu", "dropout1d", "group_norm", "local_response_norm", "interpolate"), "input.dim"),
    **dict.fromkeys(("instance_norm", "gaussian_nll_loss"), "input.size"),
    **dict.fromkeys(("tanh", "tanhshrink"), "input.tanh"),
    **{name: f"input.{name}" for name in ("sigmoid", "softmax", "log_softmax")},
    "softsign": "input.abs",
    "normalize": "input.norm",
    "lp_pool1d": "input.pow",
    "margin_ranking_loss": "input1.dim input2.dim target.dim",
    "triplet_margin_with_distance_loss": "anchor.ndim positive.ndim negative.ndim",
}
"""The attributes that functions which PyTorch implements in Python read first; a number or a tuple has none of them."""


def _split(read: str) -> tuple[str, str]:
    name, _, attribute = read.partition(".")
    return name, attribute


def _declare(function: _F) -> _F:
    """Add a function to this namespace under its name. Return it unchanged."""
    declared: dict[str, Any] = {"__name__": __name__, function.__name__: function}
    _want_tensors(declared, reads=[_split(read) for read in _READ_FIRST.get(function.__name__, "").split()])
    globals()[function.__name__] = declared[function.__name__]
    return function


_declare(linear)
_declare(pad)

__getattr__ = _lookup_in(__name__)
