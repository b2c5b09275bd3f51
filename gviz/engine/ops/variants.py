"""A function and its in-place method from one preparation of their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from gviz.engine.apply import Attrs, apply
from gviz.engine.op import Op
from gviz.engine.surface import front
from gviz.engine.tensor import Tensor
from gviz.engine.views import apply_in_place

Prepared = tuple[Op, Sequence[Tensor], Attrs] | tuple[Op, Sequence[Tensor], Attrs, Callable[[], None]]
"""What runs on what; and a check of values, which PyTorch makes last: after it has looked at memory that meets."""
Prepare = Callable[..., Prepared]


def in_both_ways(*names: str) -> Callable[[Prepare], Prepare]:
    """Offer what a preparation names as ``torch.<name>``, ``Tensor.<name>`` and ``Tensor.<name>_``."""

    def offer(prepare: Prepare) -> Prepare:
        front(*names)(_running(prepare, _apply, names[0]))
        front(*[name + "_" for name in names], function=False)(_running(prepare, apply_in_place, names[0] + "_"))
        return prepare

    return offer


def _apply(op: Op, tensors: Sequence[Tensor], attrs: Attrs, check: Callable[[], None] | None = None) -> Any:
    if check is not None:
        check()
    return apply(op, tensors, attrs)


def _running(prepare: Prepare, run: Callable[..., Any], name: str) -> Callable[..., Tensor]:
    def function(*args: Any, **kwargs: Any) -> Tensor:
        result: Tensor = run(*prepare(*args, **kwargs))
        return result

    function.__name__, function.__doc__ = name, prepare.__doc__
    signature = inspect.signature(prepare).replace(return_annotation="Tensor")
    function.__signature__ = signature  # type: ignore[attr-defined]  # every function may have one
    return function
