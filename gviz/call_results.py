"""Finds the tensors in a call's result, and how a program accesses each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gviz.events import KeyPath

_DEEPEST = 4


def parts(result: object, kind: type, path: KeyPath = ()) -> Iterator[tuple[Any, KeyPath]]:
    """Yield the objects of type `kind` in nested tuples, list and mappings, with their paths."""
    if isinstance(result, kind):
        if path:
            yield result, path
    elif len(path) == _DEEPEST:
        return
    elif isinstance(result, tuple | list):
        names = _field_names(result)
        for place, item in enumerate(result):
            step = place, len(result), names[place] if place < len(names) else ""
            yield from parts(item, kind, (*path, step))
    elif isinstance(result, Mapping):
        for name, item in result.items():
            if isinstance(name, str):
                yield from parts(item, kind, (*path, (0, 0, name)))


def as_taken(path: KeyPath) -> str:
    """Return the path of a part of a call's result as Python code: ``[1][0]``, ``.values``, ``['loss']``."""
    return "".join(f"[{place}]" if not name else f".{name}" if count else f"[{name!r}]" for place, count, name in path)


def _field_names(result: object) -> tuple[str, ...]:
    """Return the attribute names of a tuple's items, for a named tuple or ``torch.return_types``."""
    kind = type(result)
    return () if kind in (tuple, list) else tuple(getattr(kind, "_fields", getattr(kind, "__match_args__", ())))
