"""Shapes as the traced program sees them: numbers that notice when the program decides by them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gviz import site
from gviz.engine.jit import notices
from gviz.engine.size import Size

if TYPE_CHECKING:
    from gviz.engine.jit.recorder import GraphRecorder

_NUMPY = np.__path__[0]


class TracedSize(int):
    """One size of a traced tensor. What is computed from it is one too; made a plain number it warns, as in PyTorch."""

    recorder: GraphRecorder

    @classmethod
    def of(cls, value: int, recorder: GraphRecorder) -> TracedSize:
        size = cls(value)
        size.recorder = recorder
        return size

    def __int__(self) -> int:
        self._read("integer")
        return plain_int(self)

    def __float__(self) -> float:
        self._read("float")
        return float(plain_int(self))

    def __bool__(self) -> bool:
        self._read("boolean")
        return plain_int(self) != 0

    def __hash__(self) -> int:
        return hash(plain_int(self))

    def _read(self, how: str) -> None:
        """Warn if it is the program that asks, not the engine or numpy."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        asking = frame.f_code.co_filename
        if not (site.is_hidden(asking) or asking.startswith(_NUMPY)):
            self.recorder.warns(notices.READING[how])


def _comparison(name: str) -> Callable[[TracedSize, Any], Any]:
    def compare(self: TracedSize, other: Any) -> Any:
        self._read("boolean")
        return getattr(int, name)(self, other)

    return compare


def _arithmetic(name: str) -> Callable[[TracedSize, Any], Any]:
    def compute(self: TracedSize, other: Any) -> Any:
        value = getattr(int, name)(self, other)
        return TracedSize.of(value, self.recorder) if type(value) is int else value

    return compute


for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(TracedSize, name, _comparison(name))
for name in ("add", "sub", "mul", "floordiv", "mod"):
    for way in (f"__{name}__", f"__r{name}__"):
        setattr(TracedSize, way, _arithmetic(way))


def plain_int(size: int) -> int:
    """The number that a size is."""
    return int.__add__(size, 0)


def traced_shape(recorder: GraphRecorder, shape: tuple[int, ...]) -> Size:
    """A shape whose sizes notice."""
    return tuple.__new__(Size, [TracedSize.of(size, recorder) for size in shape])


def plain(value: Any) -> Any:
    """A copy of attributes in which sizes are plain numbers."""
    if isinstance(value, TracedSize):
        return plain_int(value)
    if type(value) in (tuple, list):
        return type(value)([plain(item) for item in value])
    if type(value) is dict:
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Size):
        return tuple([plain(item) for item in value])
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: plain(getattr(value, field.name)) for field in fields(value)})
    return value
