"""Events, states and values as JSON that any reader understands: names instead of positions, ``"nan"`` as text."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any

import msgspec
import numpy as np

from gviz.events import Event
from gviz.values.plain_text import shown_json
from gviz.values.value import Value

SCHEMA = 1
"""Increases when a field is renamed or removed, not when one is added."""


def text(**parts: object) -> str:
    """Return one JSON document with the number of its schema."""
    return shown_json(json.dumps({"schema": SCHEMA, **form(parts)}, indent=2, ensure_ascii=False, allow_nan=False))


def form(thing: object) -> Any:
    """Return the JSON form of an object. TypeError for a type without one, never the `repr` of an object."""
    match thing:
        case Value():
            return _value(thing)
        case Event():
            return {"event": type(thing).__name__, **form(msgspec.structs.asdict(thing))}
        case msgspec.Struct():
            return form(msgspec.structs.asdict(thing))
        case None | bool() | int() | str():
            return thing
        case float():
            return thing if math.isfinite(thing) else str(thing)
        case complex() | PurePath():
            return str(thing)
        case np.generic():
            return form(thing.item())
        case np.ndarray():
            return form(thing.tolist())
        case bytes():
            return thing.hex()
        case Mapping():
            return {str(key): form(entry) for key, entry in thing.items()}
        case Sequence():
            return [form(entry) for entry in thing]
        case Set():
            return sorted(form(entry) for entry in thing)
    if dataclasses.is_dataclass(thing):
        return {field.name: form(getattr(thing, field.name)) for field in dataclasses.fields(thing)}
    raise TypeError(f"a {type(thing).__name__} has no form in JSON")


def _value(value: Value) -> dict[str, Any]:
    """Return elements if the event has them, and statistics wherever they are known."""
    array = value.array()
    if array is not None and array.dtype.kind == "c":
        array = array.astype(str)
    return {
        "dtype": value.dtype,
        "shape": list(value.shape),
        "elements": None if array is None else form(array.tolist()),
        "stats": form(value.statistics()),
    }
