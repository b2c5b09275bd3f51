"""Finds the tensors in a call's result, and how a program accesses each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
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


def tensors_in(thing: object, path: KeyPath = ()) -> Iterator[tuple[Any, KeyPath]]:
    """Yield the tensors in a tensor, nested tuples, lists, mappings and dataclasses, each once, with their paths."""
    seen: set[int] = set()
    for tensor, where in _tensors_in(thing, path):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield tensor, where


def _tensors_in(thing: object, path: KeyPath) -> Iterator[tuple[Any, KeyPath]]:
    if hasattr(thing, "grad_fn") and hasattr(thing, "requires_grad"):
        yield thing, path
    elif len(path) == _DEEPEST:
        return
    elif isinstance(thing, Mapping):
        for name, item in thing.items():
            yield from _tensors_in(item, (*path, (0, 0, str(name))))
    elif isinstance(thing, tuple | list):
        for place, item in enumerate(thing):
            yield from _tensors_in(item, (*path, (place, len(thing), "")))
    elif is_dataclass(thing) and not isinstance(thing, type):
        for field in fields(thing):
            yield from _tensors_in(getattr(thing, field.name), (*path, (0, 1, field.name)))


def as_taken(path: KeyPath) -> str:
    """Return the path of a part of a call's result as Python code: ``[1][0]``, ``.values``, ``['loss']``."""
    return "".join(f"[{place}]" if not name else f".{name}" if count else f"[{name!r}]" for place, count, name in path)


def _field_names(result: object) -> tuple[str, ...]:
    """Return the attribute names of a tuple's items, for a named tuple or ``torch.return_types``."""
    kind = type(result)
    return () if kind in (tuple, list) else tuple(getattr(kind, "_fields", getattr(kind, "__match_args__", ())))
