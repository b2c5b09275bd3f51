"""Which parts of what a call gave are tensors, and how a program takes each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gviz.events import KeyPath

_DEEPEST = 4


def parts(result: object, kind: type, path: KeyPath = ()) -> Iterator[tuple[Any, KeyPath]]:
    """The tensors, which are of this kind, within tuples, lists and mappings, and the ways to them."""
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
    """A part of what a call gave, as a program takes it: ``[1][0]``, ``.values``, ``['loss']``."""
    return "".join(f"[{place}]" if not name else f".{name}" if count else f"[{name!r}]" for place, count, name in path)


def _field_names(result: object) -> tuple[str, ...]:
    """The names by which the items of a tuple can be read, of a named tuple or of ``torch.return_types``."""
    kind = type(result)
    return () if kind in (tuple, list) else tuple(getattr(kind, "_fields", getattr(kind, "__match_args__", ())))
