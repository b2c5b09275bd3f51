"""All elements of a tensor as a matrix, their distribution, and a map of the large ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gviz.errors import KEEP_ALL
from gviz.render.boxes.tensor_pictures import DARKEST, NOT_A_NUMBER, heat
from gviz.trace.node_gradients import in_its_iteration
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.glyphs import Glyphs
from gviz.tui.styled_lines import Line, Span, line, wrapped
from gviz.values.number_text import number
from gviz.values.value import Array, Value, capture
from gviz.values.value_text import bad_text, full

ROWS = 60
"""How many rows of a matrix are written; the others are counted."""

BINS = 8
BAR = 24
_RISING, _FALLING = " ░▒▓█", " -~=%"
_RISING_ASCII = " .+*#"


def tensor_lines(
    timeline: Timeline, title: str, style: str, value: Value | None, width: int, glyphs: Glyphs
) -> Iterator[Line]:
    """Yield everything about one value: statistics, histogram, heat map, elements; or that they were not stored."""
    yield from wrapped(line((f"{title}: ", "title"), full(value)), width, 2)
    array = timeline.array(value) if value is not None else None
    if array is None:
        if value is not None:
            yield from wrapped(line((f"  its elements were not stored: {KEEP_ALL}", "muted")), width)
        return
    if array.size > 1 and array.dtype.kind in "fiuc":
        yield from _histogram(array, style, width, glyphs)
        yield from _heat(array, width, glyphs)
    yield from _elements(array, style, width)


def _histogram(array: Array, style: str, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """Yield a bar with its count for each range of values."""
    flat = (np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64)).reshape(-1)
    finite = flat[np.isfinite(flat)]
    if not finite.size or finite.min() == finite.max() or not np.isfinite(finite.max() - finite.min()):
        return
    counts, edges = np.histogram(finite, bins=BINS)
    room = max(min(BAR, width - 34), 4)
    yield line(("  spread", "muted"))
    for count, low, high in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        bar = glyphs.text("█") * max(round(room * count / max(counts)), 1 if count else 0)
        yield line((f"  {number(low, 3):>9} .. {number(high, 3):<9} ", "muted"), (bar, style), f" {count}")
    if finite.size < flat.size:
        yield line(("  ", ""), (f"! {bad_text(capture(flat))}", "error"))


def _heat(array: Array, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """Yield a map of the large magnitudes: each cell is the mean of a block; negative means have other characters."""
    if array.size <= 8:
        return
    rising = _RISING_ASCII if glyphs.ascii else _RISING
    key = f"  where: {rising[1]} to {rising[-1]} positive, {_FALLING[1]} to {_FALLING[-1]} negative, blank near 0"
    yield from wrapped(line((key, "muted")), width, 2)
    for row in heat(array):
        yield line("  ", *(_shade(level, rising) for level in row))


def _shade(level: int, rising: str) -> Span:
    if level == NOT_A_NUMBER:
        return "!!", "error"
    return ((rising if level >= 0 else _FALLING)[min(abs(level), DARKEST)] * 2, "value" if level >= 0 else "grad")


def _elements(array: Array, style: str, width: int) -> Iterator[Line]:
    """Yield every element in columns of equal width; wide matrices in ranges of columns, other tensors in slices."""
    if array.ndim <= 1:
        yield from _matrix(array.reshape(1, -1), "", style, width)
        return
    slices = array.reshape(-1, *array.shape[-2:])
    written = 0
    for at, matrix in enumerate(slices):
        if written >= ROWS:
            yield line((f"  and {len(slices) - at} more slices", "muted"))
            return
        where = ", ".join(map(str, np.unravel_index(at, array.shape[:-2]))) + ", " if array.ndim > 2 else ""
        yield from _matrix(matrix, where, style, width)
        written += len(matrix)


def _matrix(matrix: Array, where: str, style: str, width: int) -> Iterator[Line]:
    rows = [[number(x, 6) for x in row] for row in matrix[:ROWS]]
    wide = max((len(text) for row in rows for text in row), default=1) + 1
    fit = max((width - 2) // wide, 1)
    for start in range(0, max(matrix.shape[1], 1), fit):
        if where or matrix.shape[1] > fit:
            end = min(start + fit, matrix.shape[1])
            yield line((f"  [{where}:, {start}:{end}]", "muted"))
        for row in rows:
            yield line("  ", *((f"{text:>{wide}}", _element_style(text, style)) for text in row[start : start + fit]))
    if len(matrix) > ROWS:
        yield line((f"  and {len(matrix) - ROWS} more rows", "muted"))


def _element_style(text: str, style: str) -> str:
    return "error" if "nan" in text or "inf" in text else style


def node_tensors(timeline: Timeline, moment: Moment, node: int, width: int, glyphs: Glyphs) -> Iterator[Line]:
    """Yield the tensors of a node at a moment, each in full: its value, its incoming gradient, its ``.grad``."""
    state = in_its_iteration(timeline, moment.n, moment.state(node)) if node else None
    for nr, output in enumerate(state.outputs if state is not None else ()):
        which = f" {nr}" if state is not None and len(state.outputs) > 1 else ""
        tensors = (
            ("value", "value", output.value),
            ("incoming", "grad", output.incoming),
            (".grad", "grad", output.grad),
        )
        for name, style, value in tensors:
            if value is not None and value.size > 1:
                yield ()
                yield from tensor_lines(timeline, f"{name}{which}", style, value, width, glyphs)
