"""Sizes given once for every dimension, or one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def each(value: Any, count: int) -> tuple[Any, ...]:
    """`value` as one entry a dimension."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * count
