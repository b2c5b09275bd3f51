"""Whether an event that came from a file is one that a program could have said."""

from __future__ import annotations

from itertools import chain
from math import prod

import msgspec

from gviz.events import KINDS, Event, Output
from gviz.trace.codec import values
from gviz.values import ITEM_SIZES, Value

LARGEST_NUMBER = 1 << 32
_MOST_DIMENSIONS = 64


def check(event: Event) -> None:
    """Raises ValueError for numbers and shapes that no recording can contain."""
    for value in values(event):
        check_value(value)
    numbers = _numbers(event)
    if numbers and not 0 <= min(numbers) <= max(numbers) < LARGEST_NUMBER:
        raise ValueError(f"the numbers {numbers} are impossible")


def check_value(value: Value) -> None:
    """Raises ValueError if the elements do not fit the shape, or the shape nothing at all."""
    shape, data = value.shape, value.data
    if shape and (len(shape) > _MOST_DIMENSIONS or min(shape) < 0):
        raise ValueError(f"the shape {str(shape)[:60]} is impossible")
    if data is not None and prod(shape) * ITEM_SIZES.get(value.dtype, -1) != len(data):
        raise ValueError(f"{len(data)} bytes do not make an array of shape {str(shape)[:60]}")


def _numbers(thing: Event | Output) -> list[int]:
    """All whole numbers in the fields of an event: they count something, or name what was counted."""
    single, several, pairs, structs = _NUMBER_FIELDS[type(thing)]
    found = [getattr(thing, name) for name in single]
    for name in several:
        found.extend(getattr(thing, name))
    for name in pairs:
        found.extend(chain.from_iterable(getattr(thing, name)))
    for name in structs:
        for part in getattr(thing, name):
            found.extend(_numbers(part))
    return found


def _number_fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, ...], ...]:
    """The fields that are numbers, series of numbers, series of those, and series of outputs.

    What may be None or anything is none of them: strides may be negative.
    """
    types = {field.name: _kind_of(field.type) for field in msgspec.structs.fields(kind)}
    return tuple(tuple(name for name, found in types.items() if found == wanted) for wanted in _NUMBER_KINDS)


def _kind_of(annotation: object) -> str:
    if annotation is int:
        return "number"
    if getattr(annotation, "__origin__", None) is not tuple:
        return ""
    item = getattr(annotation, "__args__", (None,))[0]
    return "outputs" if item is Output else {"number": "series", "series": "table"}.get(_kind_of(item), "")


_NUMBER_KINDS = ("number", "series", "table", "outputs")
_STRUCTS: tuple[type[msgspec.Struct], ...] = (*KINDS, Output)
_NUMBER_FIELDS = {kind: _number_fields(kind) for kind in _STRUCTS}
