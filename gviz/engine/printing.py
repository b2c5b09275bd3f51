"""Prints tensors character by character as PyTorch does, because readers compare the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import numpy as np

from gviz.engine import dtypes
from gviz.values.value import Array

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


@dataclass(slots=True)
class Options:
    """How tensors are printed.

    A tensor of more than `threshold` elements is summarized: `edgeitems` elements are shown at either end of long axes.
    With `sci_mode` None the values decide.
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}
_now = Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Changes how tensors are printed. None leaves an option unchanged, except for `sci_mode`."""
    own = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options = _PROFILES.get(profile or "", {}) | {name: value for name, value in own.items() if value is not None}
    for name, value in (options | {"sci_mode": sci_mode}).items():
        setattr(_now, name, value)


def get_printoptions() -> dict[str, Any]:
    """The current options, as arguments of `set_printoptions`."""
    return asdict(_now)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Prints with other options within the block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_text(array: Array, kind: dtypes.dtype, origin: Sequence[str]) -> str:
    """``tensor([1., 2.], requires_grad=True)``: the elements, the dtype unless it is obvious, and then `origin`."""
    has_size = array.ndim != 1 if not array.size else not _now.edgeitems
    notes = [f"size={tuple(array.shape)}"] if has_size else []
    if kind is not dtypes.get_default_dtype() and (not array.size or kind not in (dtypes.int64, dtypes.bool_)):
        notes.append(f"dtype={kind}")
    notes += origin
    return _with_notes("tensor(" + elements(array, indent=len("tensor(")), notes) + ")"


def elements(array: Array, indent: int) -> str:
    """The elements in brackets, with aligned columns and shortened axes."""
    if not array.size:
        return "[]"
    shorten = array.size > _now.threshold
    text, width = _format(_ends(array) if shorten else array)
    return _nested(array, indent, shorten, text, width)


def _with_notes(text: str, notes: list[str]) -> str:
    length = len(text) - text.rfind("\n") + 1
    for note in notes:
        if length + len(note) + 2 > _now.linewidth:
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
    if shorten and len(array) > 2 * _now.edgeitems:
        parts.insert(_now.edgeitems, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _row(array: Array, indent: int, shorten: bool, text: Callable[[Any], str], width: int) -> str:
    words = [text(value) for value in _shown(array, shorten)]
    if shorten and len(array) > 2 * _now.edgeitems:
        words.insert(_now.edgeitems, " ..." if _now.edgeitems else "...")
    per_line = max(1, (_now.linewidth - indent) // (width + 2))
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _shown(array: Array, shorten: bool) -> list[Any]:
    edge = _now.edgeitems
    return [*array[:edge], *array[len(array) - edge :]] if shorten and len(array) > 2 * edge else list(array)


def _ends(array: Array) -> Array:
    """Return the elements that remain when long axes are shortened; only they decide the format."""
    edge = _now.edgeitems
    for axis, length in enumerate(array.shape):
        if length > 2 * edge:
            array = np.take(array, [*range(edge), *range(length - edge, length)], axis)
    return array


def _format(array: Array) -> tuple[Callable[[Any], str], int]:
    """Return the function that formats one element, padded to the common width, and that width."""
    if array.dtype.kind == "f":
        return _float_format(array)
    plain = bool if array.dtype.kind == "b" else int
    width = max((len(str(plain(v))) for v in array.reshape(-1)), default=1)
    return lambda v: str(plain(v)).rjust(width), width


def _float_format(array: Array) -> tuple[Callable[[Any], str], int]:
    """Whole numbers end in a point; others have four decimals, or are scientific if extreme or far apart."""
    finite = array[np.isfinite(array) & (array != 0)].astype(np.float64)
    whole = bool((finite == np.ceil(finite)).all())
    sizes = np.abs(finite)
    spec, point = _notation(whole, sizes)
    width = max((len(format(v, spec)) + len(point) for v in finite), default=1)
    return lambda v: (format(float(v), spec) + (point if np.isfinite(v) else "")).rjust(width), width


def _notation(whole: bool, sizes: Array) -> tuple[str, str]:
    """Return the format for numbers of these sizes, and the suffix of whole ones."""
    extreme = bool(sizes.size) and bool(sizes.max() / sizes.min() > 1000 or sizes.max() > 1e8 or sizes.min() < 1e-4)
    scientific = extreme if _now.sci_mode is None or not sizes.size else _now.sci_mode
    if scientific:
        return f".{_now.precision}e", ""
    return (".0f", ".") if whole else (f".{_now.precision}f", "")


# ----------------------------------------------------------------------------------------------------------------------
# As C++ prints a tensor, for errors whose text contains one.


def cpp_text(array: Array, kind: dtypes.dtype) -> str:
    """Return a tensor as PyTorch's C++ prints it: matrix by matrix, the numbers of each with one width."""
    sizes = ",".join(map(str, array.shape))
    name = "CPUBoolType" if kind.name == "bool" else f"torch.{kind.tensor_type}Tensor"
    end = f"[ {name}{{{sizes}}} ]"
    if not array.size:
        return end
    matrices = []
    for place in np.ndindex(*array.shape[:-2]):
        head = f"({','.join(str(i + 1) for i in place)},.,.) = \n" if place else ""
        matrices.append(head + _cpp_matrix(array[place].astype(float), " " if place else ""))
    return "\n\n".join(matrices) + "\n" + end


_CPP_LINE = 80
"""Characters of a line of PyTorch's C++."""


def _cpp_matrix(matrix: Array, indent: str) -> str:
    """Return the rows of a matrix; those longer than a line in blocks of columns."""
    written, scale = _cpp_format(matrix)
    columns = matrix.shape[1]
    most = (_CPP_LINE - len(indent)) // (len(written.format(0.0)) + 1)
    blocks = []
    for first in range(0, columns, most):
        last = min(first + most, columns)
        rows = [" ".join(written.format(float(value) / scale) for value in row[first:last]) for row in matrix]
        head = f"Columns {first + 1} to {last}{indent}" if columns > most else ""
        head += f"{scale:g} *\n{indent}" if scale != 1 else ""
        blocks.append(head + f"\n{indent}".join(rows))
    return "\n\n".join(blocks)


def _cpp_format(numbers: Array) -> tuple[str, float]:
    """The format of a matrix's numbers, and what they are divided by, as in ``__printFormat`` of PyTorch."""
    finite = np.abs(numbers[np.isfinite(numbers)])
    limits = (finite.min(), finite.max()) if finite.size else (1, 1)
    least, most = (int(np.floor(np.log10(limit))) + 1 if limit else 1 for limit in limits)
    if bool((finite == np.ceil(finite)).all()):
        return ("{:11.4e}" if most > 9 else f"{{:{most + 1}.0f}}"), 1
    if most - least > 4:
        return f"{{:{12 if max(abs(most), abs(least)) > 99 else 11}.4e}}", 1
    if most > 5 or most < 0:
        return "{:7.4f}", 10.0 ** (most - 1)
    return f"{{:{most + 6 if most else 7}.4f}}", 1
