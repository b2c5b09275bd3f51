"""Runs calls that consist of several operations, such as ``matmul``, by their name.

The name does not determine what a call did, so the callers compare the result with the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gviz import engine
from gviz.engine import einsum, float64, full
from gviz.engine.nn import functional
from gviz.engine.tensor import Tensor
from gviz.events import NodeCreated

Run = Callable[[Sequence[Tensor]], Sequence[Tensor]]

_CASTS = {
    "float", "double", "half", "bfloat16", "to", "type", "type_as", "long", "int", "short", "char", "byte", "bool",
}  # fmt: skip
_METHODS = {
    "matmul": "matmul", "view_as": "view_as", "expand_as": "expand_as", "reshape_as": "reshape_as", "norm": "norm",
    "reshape": "reshape", "flatten": "flatten", "and": "__and__", "or": "__or__", "xor": "__xor__", "std": "std",
    "var": "var", "square": "square", "true_divide": "true_divide", "logical_and": "logical_and",
    "outer": "outer", "topk": "topk", "sort": "sort", "roll": "roll", "unfold": "unfold",
}  # fmt: skip
_MAKERS = {"zeros_like": 0.0, "ones_like": 1.0}
_FUNCTIONS = {
    "linear", "layer_norm", "normalize", "silu", "relu6", "hardtanh", "one_hot", "logsigmoid", "conv1d", "conv2d",
    "pad", "conv_transpose2d", "max_pool2d", "avg_pool2d", "cross_entropy", "group_norm", "batch_norm",
}  # fmt: skip


def run_by_name(name: str, created: NodeCreated) -> Run | None:
    """Return a function that runs the call of a node on given tensors; None if the call is not known."""
    attrs = {key: value for key, value in created.attrs if value is not None}
    if name in _CASTS:
        return _cast(created)
    if name in _MAKERS and _gives_fractions(created):
        return lambda tensors: [full(tensors[0].shape, _MAKERS[name], dtype=float64)]
    if name == "getitem" and not attrs and len(created.inputs) > 1:
        return lambda tensors: [tensors[0][tuple(tensors[1:])]]
    if name == "getitem" and set(attrs) == {"key"} and len(created.inputs) == 1:
        return lambda tensors: [tensors[0][_index(attrs["key"])]]
    if name.rstrip("_") == "setitem" and set(attrs) == {"key"} and len(created.inputs) == 2:
        return lambda tensors: [_written(tensors[0], _index(attrs["key"]), tensors[1])]
    if name == "einsum":
        return lambda tensors: [einsum(*attrs.values(), *tensors)]
    if name in _METHODS:
        return lambda tensors: _listed(getattr(tensors[0], _METHODS[name])(*tensors[1:], **attrs))
    if name in _FUNCTIONS:
        return lambda tensors: _listed(getattr(functional, name)(*tensors, **attrs))
    return None


def _listed(result: Any) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)


def _cast(created: NodeCreated) -> Run | None:
    """Return a cast to the dtype of the result; None if it is unknown, or the engine lacks it."""
    if _gives_fractions(created):
        return lambda tensors: [tensors[0] if tensors[0].is_floating_point() else tensors[0].double()]
    dtype = getattr(engine, _dtype(created), None)
    return None if dtype is None else lambda tensors: [tensors[0].to(dtype)]


def _gives_fractions(created: NodeCreated) -> bool:
    """Return whether a call returned floats; these are computed in float64, whatever dtype the program used."""
    return "float" in _dtype(created)


def _dtype(created: NodeCreated) -> str:
    """Return the dtype that a call returned; empty if unknown."""
    value = created.outputs[0].value if created.outputs else None
    return "" if value is None else value.dtype


def _index(key: Any) -> Any:
    """Return an index from its recorded form."""
    if key == "Ellipsis":
        return ...
    if not isinstance(key, list | tuple):
        return key
    return slice(*key[1:]) if key and key[0] == "slice" else tuple(map(_index, key))


def _written(tensor: Tensor, index: Any, value: Tensor) -> Tensor:
    tensor[index] = value
    return tensor
