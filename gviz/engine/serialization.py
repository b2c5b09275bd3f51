"""``torch.save`` and ``torch.load``: tensors and state dicts in files of gviz's own, which hold no code.

A file is a zip of ``gviz.json``, which says what there is, and one ``.npy`` of bytes for each piece of memory.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from gviz.engine.plain_form import Packing, Unpacking
from gviz.values import Array

__all__ = ["load", "save"]

INDEX = "gviz.json"
FORMAT = 1
NOT_OURS = (
    "this is no file that torch.save of gviz's built-in engine wrote{hint}. The engine reads no pickles: they can run "
    "any code. With PyTorch, save the tensors as numpy arrays; here, make tensors of them with torch.from_numpy"
)


def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: Any = None, **_: Any) -> None:
    """Write tensors, and containers of them, to a path or an open file. TypeError for objects of any other kind."""
    packing = Packing()
    index = json.dumps({"format": FORMAT, "value": packing.plain(obj)})
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(INDEX, index)
        for number, memory in enumerate(packing.memory):
            with archive.open(f"{number}.npy", "w", force_zip64=True) as part:
                np.save(part, memory, allow_pickle=False)


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, **_: Any
) -> Any:
    """What `save` wrote. RuntimeError for any other file; `weights_only` is always so."""
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
    return Unpacking(memory).value(index["value"])


def _check_sizes(archive: zipfile.ZipFile, file: IO[bytes]) -> None:
    """RuntimeError for a file that would become larger when it is read: `save` compresses nothing."""
    length = file.seek(0, os.SEEK_END)
    parts = archive.infolist()
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts) or sum(p.file_size for p in parts) > length:
        raise RuntimeError(
            "this file is compressed, or says that it holds more than it does; torch.save writes none such"
        )


def _memory(archive: zipfile.ZipFile, name: str) -> Array:
    """The bytes of one piece of memory. ValueError if it says that it has another number of them than it has."""
    with archive.open(name) as part:
        np.lib.format.read_magic(part)
        shape, _, dtype = np.lib.format.read_array_header_1_0(part)
        memory = np.frombuffer(bytearray(part.read()), np.uint8)
    if dtype != np.uint8 or shape != memory.shape:
        raise ValueError(f"{name} is no memory of {memory.size} bytes")
    return memory
