"""The non-tensor arguments of an operation as plain data: what events and files hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from gviz.events import Attr

Attrs = tuple[tuple[str, Attr], ...]
"""Attributes as events hold them."""


def plain_attrs(attrs: Mapping[str, Any], otherwise: Callable[[Any], Any] = str) -> Attrs:
    """Attributes as numbers, text, and tuples of those; `otherwise` says what any other object is."""
    return tuple([(name, _plain(value, otherwise)) for name, value in attrs.items()])


def _plain(value: Any, otherwise: Callable[[Any], Any]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_plain(item, otherwise) for item in value])
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return tuple([_plain(getattr(value, field.name), otherwise) for field in fields(value)])
    return otherwise(value)
