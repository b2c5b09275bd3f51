"""Formats values: the elements if they are few, otherwise a summary; and sums of values.

If space is short, digits go first, then parts, and the rest becomes ``…``. A number is never cut in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from gviz.values.number_text import bytes_text, dtype_text, exact, number, shape_text
from gviz.values.value import Array, Stats, Value

NO_VALUE = "·"
NOT_STORED = "not stored"
UNKNOWN = "?"
CUT = "…"
BAD = "!"
FEW = 4
"""Up to this number of elements are written one by one where the width is limited, or in a formula."""
SOME = 12
"""Up to this number of elements are written one by one without a width limit, and with matrix rows on lines."""

DEFAULT_DTYPE = "float32"
SINGLE = ("float32", "float16", "bfloat16")
"""The dtypes whose numbers are written with at most single precision digits."""
_KEPT_TEXTS = 4096
"""The number of cached texts: stepping shows the same values repeatedly."""


def kind_text(value: Value) -> str:
    """Format the shape and, unless it is the default ``float32``, the dtype: ``(8,3)``, ``(8,3) f64``."""
    return shape_text(value.shape) + ("" if value.dtype == DEFAULT_DTYPE else f" {dtype_text(value.dtype)}")


def short(value: Value | None, width: int | None = None, digits: int = 4) -> str:
    """Format a value in one line: a scalar as its number, few elements in full, a tensor by shape, range, mean and rms.

    Chooses the richest form that fits into `width` characters (None: no limit, up to `SOME` elements). Elements of a
    tensor have at most `digits` significant digits.
    """
    return _short(value, width, digits)


@lru_cache(_KEPT_TEXTS)
def _short(value: Value | None, width: int | None, digits: int) -> str:
    return fitting(_forms(value, digits, _few(width)), width)


def short_meant(value: Value | None, width: int | None = None, digits: int = 4) -> str:
    """Format a value as `short` does, without the mark of an error: the program wrote its infinities on purpose."""
    return _short_meant(value, width, digits)


@lru_cache(_KEPT_TEXTS)
def _short_meant(value: Value | None, width: int | None, digits: int) -> str:
    forms = _forms(value, digits, _few(width))
    return fitting((form.removeprefix(f"{BAD} ").replace(f" {BAD} ", " ") for form in forms), width)


def _few(width: int | None) -> int:
    return SOME if width is None else FEW


def grad(value: Value | None, width: int | None = None, digits: int = 4) -> str:
    """Format a gradient in one line: as `short`, and for a tensor also its L2 norm ``|g|``, which mean and rms hide."""
    return _grad(value, width, digits)


@lru_cache(_KEPT_TEXTS)
def _grad(value: Value | None, width: int | None, digits: int) -> str:
    length, few = norm(value) if value is not None and value.size > 1 else None, _few(width)
    forms = list(_forms(value, digits, few))
    if value is not None and value.size <= FEW and bad_text(value):
        forms = [*_richest(value, digits, few), *_bad_forms(value)]
    elif value is not None and length is not None and _is_written_out(value, few):
        forms = [*_richest(value, digits, few), f"|g| {number(length, 3)}", *forms[-1:]]
    elif length is not None:
        with_length = [f"{form} |g| {number(length, 3)}" for form in forms]
        forms = [*with_length[:-1], f"|g| {number(length, 3)}", *forms[-1:]]
    return fitting(forms, width)


def share(value: Value, width: int | None = None, digits: int = 4) -> str:
    """Format one contribution: its number, the norm ``|g|`` of a tensor, or its nan and inf counts."""
    return _share(value, width, digits)


@lru_cache(_KEPT_TEXTS)
def _share(value: Value, width: int | None, digits: int) -> str:
    return fitting(_share_forms(value, digits, _few(width)), width)


def _share_forms(value: Value, digits: int, few: int) -> list[str]:
    length = norm(value)
    lengths = [f"|g| {number(length, most)}" for most in (3, 2)] if length is not None else []
    if value.size <= FEW <= few or _is_written_out(value, few) or (length is None and not bad_text(value)):
        forms = list(_forms(value, digits, few))
        return [*_richest(value, digits, few), *lengths, *forms[-1:]] if value.size > 1 else forms
    return list(_bad_forms(value)) or lengths


LENGTHS = " (lengths do not add)"
"""The note on norms in a sum."""


def added(
    old: Value, part: Value, total: Value | None = None, width: int | None = None, digits: int = 4, gives: str = " -> "
) -> str:
    """Format an addition and its result in one notation: ``1 += 3 -> 4``, with elements, or with norms ``|g|``.

    Chooses the first form that fits: fewer digits, then norms, then without the sum (always left out if None).
    """
    values = [value for value in (old, part, total) if value is not None]
    forms = list(_in_one_notation(values, digits, _few(width)))
    sums = [(f"{a} += {b}{gives}{rest[0]}", _noted(a, b, rest[0])) for a, b, *rest in forms if rest]
    noted = [form for text, note in sums for form in dict.fromkeys((f"{text}{note}", text))]
    alone = "+= " + share(part, None if width is None else max(width - 3, 1), digits)
    return fitting([*noted, *[f"{a} += {b}" for a, b, *_ in forms], alone], width)


def addition(old: Value, part: Value, total: Value) -> tuple[str, str, str]:
    """Return the three parts of `added` without a width limit: ``1``, ``3``, ``4``."""
    alone = (share(old), share(part), share(total))
    a, b, c = next(_in_one_notation([old, part, total], 4, _few(None)), alone)
    return a, b, f"{c}{_noted(a, b, c)}"


def _noted(*words: str) -> str:
    """Return the note after texts that are all norms, otherwise ""."""
    return LENGTHS if all("|g|" in word for word in words) else ""


def _in_one_notation(values: Sequence[Value], digits: int, few: int) -> Iterator[tuple[str, ...]]:
    """Yield ways to write several values of one shape alike, richest first."""
    written_out = all(_is_written_out(value, few) for value in values)
    if written_out:
        yield from zip(*(_richest(value, digits, few) for value in values), strict=True)
    if not written_out or values[0].size > 1:
        yield from zip(*(_share_forms(value, digits, 0) for value in values), strict=False)


def _is_written_out(value: Value, few: int) -> bool:
    """Return whether all elements are known and few enough to list, and (above `FEW`) none is nan or inf."""
    return 0 < value.size <= few and value.array() is not None and (value.size <= FEW or not bad_text(value))


def full(value: Value | None) -> str:
    """Format everything known about a value with exact numbers: dtype, shape, elements or statistics, size."""
    if value is None:
        return "no value"
    head = f"{value.dtype} {shape_text(value.shape)}"
    array = value.array()
    if array is not None and 0 < array.size <= SOME:
        return f"{_elements(array, exact)}  {head}"
    stats = value.statistics()
    if stats is None:
        return f"{head}  not stored"
    least, most = (exact(np.float32(end) if value.dtype in SINGLE else end) for end in (stats.min, stats.max))
    body = [f"min {least}  max {most}  mean {number(stats.mean, 6)}  rms {number(stats.rms, 6)}"] * _has_finite(
        value, stats
    )
    return "  ".join([head, *body, *_remarks(value, stats), bytes_text(value.nbytes)])


def norm(value: Value) -> float | None:
    """Return the L2 norm over the finite elements, or None if there are none or nothing was stored."""
    stats = value.statistics()
    if stats is None or not _has_finite(value, stats):
        return None
    return stats.rms * math.sqrt(value.size - stats.nan - stats.inf)


def norm_text(value: Value) -> str:
    """Format the L2 norm, ``|g| 0.52``; empty if it is not known."""
    length = norm(value)
    return f"|g| {number(length, 3)}" if length is not None else ""


def bad_text(value: Value | None) -> str:
    """Format the counts of nan and inf in a value: ``3 nan, 1 inf``; empty if there are none or nothing is known.

    If only statistics without signs were kept, as of tensors on a GPU, ``inf`` counts both infinities.
    """
    return "" if value is None else _bad_text(value)


@lru_cache(_KEPT_TEXTS)
def _bad_text(value: Value) -> str:
    if _all_finite(value):
        return ""
    stats = value.statistics()
    if stats is None:
        return ""
    array = value.array() if stats.inf else None
    if array is None:
        minus = max(stats.minus, 0)
    else:
        minus = int(np.count_nonzero(np.isneginf(array))) if array.dtype.kind == "f" else 0
    counts = ((stats.nan, "nan"), (stats.inf - minus, "inf"), (minus, "-inf"))
    return ", ".join(f"{count} {name}" for count, name in counts if count)


def _all_finite(value: Value) -> bool:
    """Return whether all elements are certainly finite, without statistics, which take ten times as long."""
    array = value.array() if value.stats is None else None
    return array is not None and (array.dtype.kind not in "fc" or bool(np.isfinite(array).all()))


def fitting(forms: Iterable[str], width: int | None) -> str:
    """Return the first of the forms that fits into `width`, otherwise ``…``."""
    return next((form for form in forms if width is None or len(form) <= width), CUT)


def or_unknown(text: str, whole: str) -> str:
    """Return a text about an unrecorded course of events, or ``?`` if it is based on values that were not stored.

    `whole` is the same text without a width limit.
    """
    return UNKNOWN if NOT_STORED in whole or whole == UNKNOWN else text


def _forms(value: Value | None, digits: int, few: int) -> Iterator[str]:
    """Yield the ways to write a value, richest first."""
    if value is None:
        yield NO_VALUE
        return
    yield from _richest(value, digits, few)
    if 1 < value.size <= few:
        yield from _summaries(value, value.statistics())
    if value.shape:
        yield shape_text(value.shape)


def _richest(value: Value, most: int, few: int) -> Iterator[str]:
    """Yield few elements in full with fewer and fewer digits, or summaries of many."""
    array = value.array()
    if array is not None and _is_written_out(value, few):
        for digits in range(most if array.size > 1 else 4, 1, -1):
            yield _elements(array, partial(number, digits=digits))
    elif value.size == 0:
        yield f"{kind_text(value)} empty"
    else:
        yield from _summaries(value, value.statistics())


def _elements(array: Array, write: Callable[[Any], str]) -> str:
    text = elements_text(array.reshape(()) if array.size == 1 else array, write)
    return f"{BAD} {text}" if "nan" in text or "inf" in text else text


def elements_text(array: Array, write: Callable[[Any], str] = exact) -> str:
    """Return all elements as text, with brackets around each dimension: ``[[1 2] [3 4]]``."""
    if array.ndim == 0:
        return write(array[()])
    return "[" + " ".join(elements_text(part, write) for part in array) + "]"


def _summaries(value: Value, stats: Stats | None) -> Iterator[str]:
    kind, shape = kind_text(value), shape_text(value.shape)
    if stats is None:
        yield f"{kind} {NOT_STORED}"
        yield NOT_STORED
        if not value.shape:  # a tensor still has a shape
            yield UNKNOWN
        return
    remarks, bad = " ".join(_remarks(value, stats)), bool(bad_text(value))
    span = _range(value, stats, mean=False)
    yield _joined(kind, _range(value, stats, mean=True), remarks)
    yield _joined(kind, span, remarks)
    if not bad:
        yield _joined(shape, span)
        yield _joined(shape, _range(value, stats, mean=False, digits=2))
    yield _joined(shape, remarks)
    yield from _bad_forms(value)


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _bad_forms(value: Value) -> Iterator[str]:
    bad = bad_text(value)
    if bad:
        yield f"{BAD} {bad}"
        yield f"{BAD} {'nan' if 'nan' in bad else 'inf'}"


def _range(value: Value, stats: Stats, *, mean: bool, digits: int = 3) -> str:
    if not _has_finite(value, stats):
        return ""
    if value.dtype == "bool":
        return f"{stats.mean:.0%} true"
    size = "abs " if value.dtype.startswith("complex") else ""
    # No -0: equal statistics give the same text.
    low, high, middle = (number(each + 0.0, digits) for each in (stats.min, stats.max, stats.mean))
    text = f"{size}[{low} .. {high}]"
    return f"{text} μ {middle} rms {number(stats.rms, digits)}" if mean else text


def _remarks(value: Value, stats: Stats) -> list[str]:
    bad = bad_text(value)
    dead = value.dtype != "bool" and stats.zero * 2 >= value.size > 0
    return ([f"{BAD} {bad}"] if bad else []) + ([f"{math.floor(100 * stats.zero / value.size)}% zero"] if dead else [])


def _has_finite(value: Value, stats: Stats) -> bool:
    return value.size > stats.nan + stats.inf
