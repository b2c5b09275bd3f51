"""Combines samples into a batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.creation import as_tensor, tensor
from gviz.engine.ops.joining import stack
from gviz.engine.tensor import Tensor


def default_collate(batch: Sequence[Any]) -> Any:
    """Combines samples into one batch: tensors are stacked, numbers become a tensor, containers are kept."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch), 0)
    if isinstance(first, np.ndarray):
        if first.dtype.kind not in "buif":
            raise TypeError(_refusal(first.dtype))
        return default_collate([as_tensor(array) for array in batch])
    if isinstance(first, (np.bool_, np.number)):
        return as_tensor(np.asarray(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype=dtypes.float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    return _containers(batch)


def _containers(batch: Sequence[Any]) -> Any:
    first = batch[0]
    if isinstance(first, Mapping):
        return _mapping(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[default_collate(samples) for samples in zip(*batch, strict=True)])
    if not isinstance(first, Sequence):
        raise TypeError(_refusal(type(first)))
    if any(len(sample) != len(first) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    return _sequence(first, [default_collate(samples) for samples in zip(*batch, strict=True)])


def default_convert(data: Any) -> Any:
    """A sample with NumPy arrays converted to tensors; containers are kept."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SaUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[default_convert(item) for item in data])
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence(data, [default_convert(item) for item in data])
    return data


def _mapping(like: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
    """`values` in a mapping of the same type, or a plain one if that fails."""
    try:
        if isinstance(like, MutableMapping):
            result = copy.copy(like)
            result.update(values)
            return result
        return type(like)(values)  # type: ignore[call-arg]  # works for most types; TypeError otherwise
    except TypeError:
        return values


def _sequence(like: Sequence[Any], values: list[Any]) -> Any:
    """`values` in a sequence of the same type; a list for a tuple, or if that fails."""
    if isinstance(like, tuple):
        return values
    try:
        if isinstance(like, MutableSequence):
            result = copy.copy(like)
            for position, value in enumerate(values):
                result[position] = value
            return result
        return type(like)(values)  # type: ignore[call-arg]  # works for most types; TypeError otherwise
    except TypeError:
        return values


def _refusal(kind: object) -> str:
    return f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {kind}"
