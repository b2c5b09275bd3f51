"""``torch.save`` and ``torch.load``: tensors and state dicts in gviz's own file format, which contains no code.

A file is a zip archive of ``gviz.json``, which describes the value, and one ``.npy`` of bytes for each piece of memory.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from gviz.engine import dtypes
from gviz.engine.nn.parameter import Buffer, Parameter
from gviz.engine.size import Size
from gviz.engine.tensor import Tensor, new_tensor
from gviz.values.value import Array

# ----------------------------------------------------------------------------------------------------------------------
# Converts tensors and containers of them to plain JSON and raw bytes, and back: what `torch.save` writes.
#
# Loading a file never runs code. Memory that tensors share is stored once, so they share it again.


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


class FileWriter:
    """A file being saved: the pieces of memory found so far, as bytes."""

    def __init__(self) -> None:
        self.memory: list[Array] = []
        self._numbers: dict[int, int] = {}
        self._owners: list[Array] = []  # kept alive, so that no two have the same id

    def plain(self, value: Any) -> Plain:
        """`value` as JSON. Raises TypeError for anything but tensors, numbers, text, and containers of those."""
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
        """Return where an array's elements are in the stored memory."""
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


class FileReader:
    """A file being loaded: `memory` by number."""

    def __init__(self, memory: list[Array]) -> None:
        self._memory = memory

    def value(self, plain: Plain) -> Any:
        """The inverse of `FileWriter.plain`. Raises ValueError for anything that it cannot have made."""
        if not isinstance(plain, dict):
            return plain
        name, content = next(iter(plain.items()))
        if name in _SEQUENCES:
            return _SEQUENCES[name]([self.value(item) for item in content])
        if name in _MAPPINGS:
            mapping = _MAPPINGS[name]({self.value(key): self.value(item) for key, item in content})
            if "metadata" in plain:
                mapping._metadata = self.value(plain["metadata"])
            return mapping
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


__all__ = ["load", "save"]

INDEX = "gviz.json"
FORMAT = 1
NOT_OURS = (
    "this is no file that torch.save of gviz's built-in engine wrote{hint}. The engine reads no pickles: they can run "
    "any code. With PyTorch, save the tensors as numpy arrays; here, make tensors of them with torch.from_numpy"
)


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: Any = None, **_: Any) -> None:
    """Writes tensors, and containers of them, to a path or an open file. Raises TypeError for other objects."""
    packing = FileWriter()
    index = json.dumps({"format": FORMAT, "value": packing.plain(obj)})
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(INDEX, index)
        for number, memory in enumerate(packing.memory):
            with archive.open(f"{number}.npy", "w", force_zip64=True) as part:
                np.save(part, memory, allow_pickle=False)


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, **_: Any
) -> Any:
    """Reads what `save` wrote. Raises RuntimeError for any other file; `weights_only` always applies."""
    if map_location is not None and str(map_location).partition(":")[0] != "cpu":
        raise RuntimeError(f"the built-in engine runs on the CPU; there is no device '{map_location}'")
    if isinstance(f, (str, Path)):
        with open(f, "rb") as file:
            return _read(file)
    return _read(f)


def _read(file: IO[bytes]) -> Any:
    if not zipfile.is_zipfile(file):
        raise RuntimeError(NOT_OURS.format(hint=""))
    with zipfile.ZipFile(file) as archive:
        _check_sizes(archive, file)
        names = archive.namelist()
        if INDEX not in names:
            theirs = any(name.endswith("data.pkl") for name in names)
            raise RuntimeError(NOT_OURS.format(hint=", but PyTorch's" if theirs else ""))
        index = json.loads(archive.read(INDEX))
        if index["format"] > FORMAT:
            raise RuntimeError(f"this file has format {index['format']}; this version of gviz reads up to {FORMAT}")
        memory = [_memory(archive, f"{number}.npy") for number in range(len(names) - 1)]
    return FileReader(memory).value(index["value"])


def _check_sizes(archive: zipfile.ZipFile, file: IO[bytes]) -> None:
    """Raise RuntimeError for a file that would grow when read: `save` does not compress."""
    length = file.seek(0, os.SEEK_END)
    parts = archive.infolist()
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or sum(p.file_size for p in parts) > length:
        raise RuntimeError("this file is compressed, or its sizes are wrong; torch.save does not write such files")


def _memory(archive: zipfile.ZipFile, name: str) -> Array:
    """Return the bytes of one piece of memory. Raises ValueError if the header gives a different number of bytes."""
    with archive.open(name) as part:
        np.lib.format.read_magic(part)
        shape, _, dtype = np.lib.format.read_array_header_1_0(part)
        memory = np.frombuffer(bytearray(part.read()), np.uint8)
    if dtype != np.uint8 or shape != memory.shape:
        raise ValueError(f"{name} is no memory of {memory.size} bytes")
    return memory
