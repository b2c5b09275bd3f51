"""Writes recorded operations and arrays as PyTorch code.

An operation has several spellings, and the first that gives the recorded result is used. One of them is the function
that the operation declares as its equivalent; the test suite compares that one with PyTorch.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import gviz.engine as torch
from gviz.engine.op import REQUIRED, Op
from gviz.errors import GvizError, NotStored
from gviz.source.parsing import SIGNS
from gviz.trace.timeline import Timeline
from gviz.values.value import Array, Value

_PACKAGES = ("", "nn.functional.", "Tensor.", "special.", "linalg.", "fft.")
"""Where a function with an operation's own name may be."""


class _NoLiteral(Exception):
    """An argument that is not a plain value."""


def spellings(op: Op, attrs: Mapping[str, Any], operands: Sequence[str]) -> Iterator[str]:
    """Yield the spellings of an operation on operands with these names, most readable first."""
    changed = {name: value for name, value in attrs.items() if op.attrs[name] is REQUIRED or op.attrs[name] != value}
    try:
        options = {name: _literal(_as_tuple(name, value)) for name, value in changed.items()}
    except _NoLiteral:
        return
    if op.name in SIGNS and len(operands) + len(options) == 2:
        left, right = (*operands, *options.values())
        yield f"{_grouped(left)} {SIGNS[op.name]} {right}"
    if op.drawn:  # no function of its name takes the random numbers it drew
        yield f"{_grouped(operands[0])} * {operands[1]}"
    if op.name == "slice":
        stretch = _slice_text(*(changed[name] for name in ("start", "end", "step")))
        yield f"{_grouped(operands[0])}[{', '.join([*[':'] * changed['dim'], stretch])}]"
    if op.name == "index" and op.slots[1:] == tuple(f"index{at}" for at in range(len(operands) - 1)):
        yield f"{_grouped(operands[0])}[{', '.join(operands[1:])}]"
    for path in dict.fromkeys([op.torch, *(package + op.name for package in _PACKAGES)]):
        if path:
            yield from _calls(path, op, operands, options)


def _calls(path: str, op: Op, operands: Sequence[str], options: Mapping[str, str]) -> Iterator[str]:
    """Yield calls of the function, first with as few keywords as possible, then with all but the first as keywords."""
    keywords = [f"{name}={value}" for name, value in options.items()]
    if op.takes_list:
        yield _call(path, [f"[{', '.join(operands)}]", *keywords])
        return
    yield _call(path, [*operands, *(options.values() if path.startswith("Tensor.") else keywords)])
    by_name = [f"{slot}={operand}" for slot, operand in zip(op.slots[1:], operands[1:], strict=False)]
    yield _call(path, [operands[0], *by_name, *keywords])


def _call(path: str, arguments: Sequence[str]) -> str:
    if path.startswith("Tensor."):
        return f"{_grouped(arguments[0])}.{path.removeprefix('Tensor.')}({', '.join(arguments[1:])})"
    return f"torch.{path}({', '.join(arguments)})"


def _grouped(operand: str) -> str:
    """Return an operand in parentheses if it needs them."""
    is_name, is_positive = operand[0].isalpha() or operand[0] == "_", operand.replace(".", "").isdigit()
    return operand if is_name or is_positive else f"({operand})"


def _as_tuple(name: str, value: Any) -> Any:
    """Return an argument in the form PyTorch expects: a single dimension as a tuple."""
    return (value,) if name == "dims" and isinstance(value, int) else value


def _literal(value: Any) -> str:
    """Return a plain value as Python source."""
    if isinstance(value, list):
        return f"[{', '.join(_literal(one) for one in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_literal(one) for one in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.dtype | torch.dtype):
        return f"torch.{str(value).removeprefix('torch.')}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise _NoLiteral


def _slice_text(start: int, end: int, step: int) -> str:
    """Return a slice as it is usually written."""
    return f"{start or ''}:{'' if end >= sys.maxsize else end}{'' if step == 1 else f':{step}'}"


# Arrays, with the digits that distinguish each number from all others of its dtype

MOST_ELEMENTS = 20_000
"""The most numbers that a script contains."""


class Literals:
    """The recorded numbers in a script; `of_what` names a value in the errors."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._elements = 0

    def tensor(self, value: Value | None, of_what: str, *, requires_grad: bool = False) -> str:
        """Return the call that creates a tensor with this value; an empty one keeps its shape."""
        array, dtype = self._counted(value, of_what)
        more = "" if dtype in ("float32", "int64", "bool") and array.size else f", dtype=torch.{dtype}"
        more += ", requires_grad=True" if requires_grad else ""
        if not array.size:
            return f"torch.empty({array.shape}{more})"
        text = f"torch.tensor({_array_literal(array)}{more})"
        return text if len(text) < 100 else "\n    ".join(textwrap.wrap(text, 110, break_long_words=False))

    def number(self, value: Value | None, of_what: str) -> str:
        """Return the single number of a value."""
        return _array_literal(self._counted(value, of_what)[0])

    def is_one(self, value: Value | None, of_what: str) -> bool:
        """Return whether a value is the number 1, the default seed of a backward pass."""
        array, _ = self._stored(value, of_what)
        return not array.ndim and bool(array == 1)

    def _counted(self, value: Value | None, of_what: str) -> tuple[Array, str]:
        array, dtype = self._stored(value, of_what)
        self._elements += array.size
        if self._elements > MOST_ELEMENTS:
            raise GvizError(f"the script would hold more than {MOST_ELEMENTS:,} numbers", exit_code=2)
        return array, dtype

    def _stored(self, value: Value | None, of_what: str) -> tuple[Array, str]:
        """Return the elements of a value and its dtype, which numpy may lack."""
        array = None if value is None else self._timeline.array(value)
        if value is None or array is None:
            raise NotStored(f"the value of {of_what}")
        if array.dtype.kind == "c":
            raise GvizError(f"no script is written of complex numbers, as {of_what} holds them", exit_code=2)
        return array, value.dtype


def _array_literal(array: Array) -> str:
    return f"[{', '.join(_array_literal(part) for part in array)}]" if array.ndim else str(array[()])
