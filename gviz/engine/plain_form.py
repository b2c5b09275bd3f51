"""Tensors and containers of them as plain JSON and raw bytes, and back: what `torch.save` writes.

No code is ever run for what a file holds. Memory that tensors share is kept once, so they share it again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.nn.parameter import Buffer, Parameter
from gviz.engine.size import Size
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values import Array

Plain = Any
REFUSED = (
    "torch.save of gviz's built-in engine keeps tensors, numbers, text and containers of them, not "
    "{kind!r} objects; save a module's or an optimizer's state_dict()"
)
_SEQUENCES: dict[str, Callable[..., Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "size": Size,
}  # fmt: skip
_MAPPINGS: dict[str, Callable[..., Any]] = {"dict": dict, "ordered": OrderedDict, "counter": Counter}
_TENSORS: dict[str, type[Tensor]] = {"tensor": Tensor, "parameter": Parameter, "buffer": Buffer}


class Packing:
    """What is being saved: the memory met so far, each with its bytes."""

    def __init__(self) -> None:
        self.memory: list[Array] = []
        self._numbers: dict[int, int] = {}
        self._owners: list[Array] = []  # kept alive, so that no two have the same id

    def plain(self, value: Any) -> Plain:
        """`value` as JSON. TypeError for what is no tensor, number, text, or container of those."""
        if value is None or (isinstance(value, (bool, int, str)) and type(value) in (bool, int, str)):
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "buif":
            kind = "array" if isinstance(value, np.ndarray) else "number"
            return {kind: self._place(np.asarray(value))}
        if isinstance(value, (bytes, dtypes.dtype)):
            return {"bytes": value.hex()} if isinstance(value, bytes) else {"dtype": value.name}
        return self._container(value)

    def _container(self, value: Any) -> Plain:
        for name, kind in _SEQUENCES.items():
            if type(value) is kind:
                return {name: [self.plain(item) for item in value]}
        for name, kind in _MAPPINGS.items():
            if type(value) is kind or (kind is dict and type(value) is defaultdict):
                pairs = [[self.plain(key), self.plain(item)] for key, item in value.items()]
                attributes = getattr(value, "_metadata", None)
                return {name: pairs} if attributes is None else {name: pairs, "metadata": self.plain(attributes)}
        raise TypeError(REFUSED.format(kind=type(value).__name__))

    def _tensor(self, tensor: Tensor) -> Plain:
        name = next((name for name, kind in _TENSORS.items() if type(tensor) is kind), "tensor")
        return {name: self._place(tensor._array), "requires_grad": tensor.requires_grad}

    def _place(self, array: Array) -> Plain:
        """Where an array's elements lie."""
        owner: Any = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if not (owner.flags.c_contiguous or owner.flags.f_contiguous):
            array = owner = np.array(array)
        number = self._numbers.get(id(owner))
        if number is None:
            number = self._numbers[id(owner)] = len(self.memory)
            self._owners.append(owner)
            self.memory.append(np.frombuffer(owner.tobytes(order="A"), np.uint8))
        offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        return [number, array.dtype.name, list(array.shape), list(array.strides), offset]


class Unpacking:
    """What is being loaded: `memory` by number."""

    def __init__(self, memory: list[Array]) -> None:
        self._memory = memory

    def value(self, plain: Plain) -> Any:
        """What `Packing.plain` was given. ValueError for anything it cannot have made."""
        if not isinstance(plain, dict):
            return plain
        name, content = next(iter(plain.items()))
        if name in _SEQUENCES:
            return _SEQUENCES[name]([self.value(item) for item in content])
        if name in _MAPPINGS:
            made = _MAPPINGS[name]({self.value(key): self.value(item) for key, item in content})
            if "metadata" in plain:
                made._metadata = self.value(plain["metadata"])
            return made
        if name in _TENSORS:
            return self._tensor(_TENSORS[name], content, plain["requires_grad"])
        return self._leaf(name, content)

    def _leaf(self, name: str, content: Plain) -> Any:
        if name in ("array", "number"):
            array = self._array(content)
            return array if name == "array" else array[()]
        readers: dict[str, Callable[[str], Any]] = {
            "float": float.fromhex, "bytes": bytes.fromhex, "dtype": dtypes.named,
        }  # fmt: skip
        if name not in readers:
            raise ValueError(f"this file holds {name!r}, which this version of gviz does not know")
        return readers[name](content)

    def _tensor(self, kind: type[Tensor], content: Plain, requires_grad: bool) -> Tensor:
        tensor = new_tensor(self._array(content))
        if kind is Tensor:
            return tensor.requires_grad_(requires_grad)
        return Parameter(tensor, requires_grad) if kind is Parameter else Buffer(tensor)

    def _array(self, content: Plain) -> Array:
        number, dtype, shape, strides, offset = content
        kind = dtypes.named(dtype).numpy
        return np.ndarray(tuple(shape), kind, self._memory[number], offset, tuple(strides))
