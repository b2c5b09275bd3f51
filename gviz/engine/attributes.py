"""The non-tensor arguments of an operation as plain data and back: what events hold, what it takes to run it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from gviz.engine import dtypes
from gviz.events import Attr

Attrs = tuple[tuple[str, Attr], ...]
"""Attributes as events hold them."""

_SLICE = "slice"
_DTYPE = "torch."


def plain_attrs(attrs: dict[str, Any]) -> Attrs:
    """Attributes as plain data."""
    return tuple([(name, _plain(value)) for name, value in attrs.items()])


def revived_attrs(attrs: Attrs, kinds: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """Attributes as the operation takes them; `kinds` says which of them are made of their fields, by name."""
    return {name: kinds[name](*map(_revived, value)) if name in kinds else _revived(value) for name, value in attrs}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_plain(item) for item in value)
    if isinstance(value, slice):
        return (_SLICE, _plain(value.start), _plain(value.stop), _plain(value.step))
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(_plain(getattr(value, field.name)) for field in fields(value))
    return str(value)


def _revived(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        if len(value) == 4 and value[0] == _SLICE:
            return slice(*value[1:])
        return tuple(_revived(item) for item in value)
    if isinstance(value, str) and value.startswith(_DTYPE):
        return dtypes.named(value.removeprefix(_DTYPE))
    return value
