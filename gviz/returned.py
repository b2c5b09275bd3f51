"""Which parts of what a call gave are tensors, and whether it was the program that called."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from gviz import site
from gviz.events import KeyPath

_DEEPEST = 4


def called_by_the_program(folder: str, handing_on: tuple[str, ...], called: str = "") -> bool:
    """Whether the program itself made the call that ends here.

    Between it and the caller of this function stand, of the files in a framework's `folder`, only those that are
    `handing_on` calls and what they give, and functions that are `called` so.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and site.is_hidden(path := frame.f_code.co_filename):
        if path.startswith(folder) and not path.startswith(handing_on) and frame.f_code.co_name != called:
            return False
        frame = frame.f_back
    return frame is not None


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


def _field_names(result: object) -> tuple[str, ...]:
    """The names by which the items of a tuple can be read, of a named tuple or of ``torch.return_types``."""
    kind = type(result)
    return () if kind in (tuple, list) else tuple(getattr(kind, "_fields", getattr(kind, "__match_args__", ())))
