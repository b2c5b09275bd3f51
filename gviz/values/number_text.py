"""Formats numbers, shapes, dtypes, sizes and durations, the same everywhere.

Four significant digits, integers without ``.0``, never a tiny number as 0. Plain ASCII minus, so that a copied number
can be pasted into Python.
"""

from __future__ import annotations

import math
import re
from typing import Any

_SHORT_DTYPES = {"bool": "bool", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
_DTYPE_LETTERS = {"float": "f", "int": "i", "uint": "u"}


def number(x: Any, digits: int = 4) -> str:
    """Format one number with at most `digits` significant digits; integers may have two more (``123456``)."""
    if isinstance(x, bool) or type(x).__name__ == "bool":
        return str(bool(x))
    if isinstance(x, complex) or type(x).__name__ == "complex64":
        return _complex(x, digits)
    if isinstance(x, int):
        return str(x) if abs(x) < 10 ** (digits + 2) else _large(x, digits)
    x = float(x)
    if not math.isfinite(x):
        return str(x)
    if x == int(x) and abs(x) < 10 ** (digits + 2):
        return "-0" if x == 0 and math.copysign(1, x) < 0 else str(int(x))
    return f"{x:.{digits}g}"


def exact(x: Any) -> str:
    """Return the shortest text that gives the number back, in its own precision."""
    text = str(x)
    return text.removesuffix(".0") if isinstance(x, float) or type(x).__module__ == "numpy" else text


def typed_count(text: str) -> int | None:
    """Parse a typed count or choice; None for other text and for more than 18 digits."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def shape_text(shape: tuple[int, ...]) -> str:
    """Format a shape without blanks: ``()``, ``(3,)``, ``(8,3)``."""
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def dtype_text(dtype: str) -> str:
    """Return the short name of a dtype: ``f32``, ``i64``, ``bf16``, ``c64``, ``f32 sparse``; unknown ones unchanged."""
    name, gap, layout = dtype.partition(" ")
    kind = name.rstrip("0123456789")
    known = _SHORT_DTYPES.get(name) or (_DTYPE_LETTERS[kind] + name[len(kind) :] if kind in _DTYPE_LETTERS else name)
    return known + gap + layout


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 leaf``, ``2 leaves``."""
    return f"{count} {noun if count == 1 else {'leaf': 'leaves'}.get(noun, noun + 's')}"


def count_text(count: int) -> str:
    """Format a count: ``840``, ``1.23k``, ``1.2M``."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{number(count / size, 3)}{unit}"
    return str(count)


def times_text(count: int) -> str:
    """Return ``once``, ``twice``, ``3 times``."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def bytes_text(count: int) -> str:
    """Format a number of bytes: ``192 B``, ``3.34 MiB``."""
    size, rank = float(count), 0
    while round(size) >= 1024 and rank < len(_BYTES) - 1:
        size, rank = size / 1024, rank + 1
    return f"{count if rank == 0 else number(size, 3)} {_BYTES[rank]}"


def seconds_text(seconds: float) -> str:
    """Format a duration: ``12 µs``, ``3.4 ms``, ``120 ms``, ``1.2 s``."""
    scale, unit = next(((by, unit) for below, by, unit in _DURATIONS if seconds < below), (1.0, "s"))
    count = seconds * scale
    return f"{number(count, 2) if count < 99.5 else round(count)} {unit}"


_DURATIONS = (1e-3, 1e6, "µs"), (1.0, 1e3, "ms")


def _complex(x: complex, digits: int) -> str:
    sign = "" if math.copysign(1, x.imag) < 0 and x.imag == x.imag else "+"
    return f"{number(float(x.real), digits)}{sign}{number(float(x.imag), digits)}j"


def _large(x: int, digits: int) -> str:
    try:
        return f"{float(x):.{digits}g}"
    except OverflowError:
        text = str(abs(x))
        return f"{'-' if x < 0 else ''}{text[0]}.{text[1:digits]}e+{len(text) - 1}"
