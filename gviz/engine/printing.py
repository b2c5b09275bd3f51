"""How tensors print: character by character as PyTorch prints them, because that is what readers compare with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gviz.engine import dtypes
from gviz.values import Array

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor

LINE = 80
MANY = 1000
EDGE = 3
"""Of a long axis, this many elements are shown at either end; a tensor is long from `MANY` elements on."""


def tensor_text(tensor: Tensor) -> str:
    """``tensor([1., 2.], requires_grad=True)``."""
    head = "Parameter containing:\n" if tensor._is_parameter else ""
    array = tensor._array
    notes = [] if array.size or array.ndim == 1 else [f"size={tuple(array.shape)}"]
    kind = tensor.dtype
    if kind is not dtypes.get_default_dtype() and (not array.size or kind not in (dtypes.int64, dtypes.bool_)):
        notes.append(f"dtype={kind}")
    notes += _origin(tensor)
    return head + _with_notes("tensor(" + elements(array, indent=len("tensor(")), notes) + ")"


def elements(array: Array, indent: int) -> str:
    """The elements in brackets, columns aligned, long axes shortened."""
    if not array.size:
        return "[]"
    shorten = array.size > MANY
    text, width = _format(_ends(array) if shorten else array)
    return _nested(array, indent, shorten, text, width)


def _origin(tensor: Tensor) -> list[str]:
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view that was cut off by a write to its base
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        return [f"grad_fn=<{type(grad_fn).__name__}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _with_notes(text: str, notes: list[str]) -> str:
    length = len(text) - text.rfind("\n") + 1
    for note in notes:
        if length + len(note) + 2 > LINE:
            text += ",\n" + " " * len("tensor(") + note
            length = len("tensor(") + len(note)
        else:
            text += ", " + note
            length += len(note) + 2
    return text


def _nested(array: Array, indent: int, shorten: bool, text: Callable[[Any], str], width: int) -> str:
    if not array.ndim:
        return text(array[()])
    if array.ndim == 1:
        return _row(array, indent, shorten, text, width)
    parts = [_nested(part, indent + 1, shorten, text, width) for part in _shown(array, shorten)]
    if shorten and len(array) > 2 * EDGE:
        parts.insert(EDGE, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _row(array: Array, indent: int, shorten: bool, text: Callable[[Any], str], width: int) -> str:
    words = [text(value) for value in _shown(array, shorten)]
    if shorten and len(array) > 2 * EDGE:
        words.insert(EDGE, " ...")
    per_line = max(1, (LINE - indent) // (width + 2))
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _shown(array: Array, shorten: bool) -> list[Any]:
    return [*array[:EDGE], *array[-EDGE:]] if shorten and len(array) > 2 * EDGE else list(array)


def _ends(array: Array) -> Array:
    """What is left of an array when long axes are shortened: it alone decides the format."""
    for axis, length in enumerate(array.shape):
        if length > 2 * EDGE:
            array = np.take(array, [*range(EDGE), *range(length - EDGE, length)], axis)
    return array


def _format(array: Array) -> tuple[Callable[[Any], str], int]:
    """How one element is written, padded to the width of the widest, and that width."""
    if array.dtype.kind == "f":
        return _float_format(array)
    plain = bool if array.dtype.kind == "b" else int
    width = max(len(str(plain(v))) for v in array.reshape(-1))
    return lambda v: str(plain(v)).rjust(width), width


def _float_format(array: Array) -> tuple[Callable[[Any], str], int]:
    """Whole numbers end in a point; four decimals otherwise; scientific where sizes are extreme or far apart."""
    told = array[np.isfinite(array) & (array != 0)].astype(np.float64)
    whole = bool((told == np.ceil(told)).all())
    sizes = np.abs(told)
    wide = bool(told.size) and (sizes.max() / sizes.min() > 1000 or sizes.max() > 1e8)
    if wide or (told.size and not whole and sizes.min() < 1e-4):
        spec, point = ".4e", ""
    else:
        spec, point = (".0f", ".") if whole else (".4f", "")
    width = max((len(format(v, spec)) + len(point) for v in told), default=1)
    return lambda v: (format(float(v), spec) + (point if np.isfinite(v) else "")).rjust(width), width
