"""A recorded operation as PyTorch: the ways to write it, of which the first that gives what was recorded is taken.

The function that an operation declares to mean it is one of them, and the suite holds that one against PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import gviz.engine as torch
from gviz.engine.op import REQUIRED, Op
from gviz.syntax import SIGNS

_PACKAGES = ("", "nn.functional.", "Tensor.", "special.", "linalg.", "fft.")
"""Where a function of an operation's own name may be."""


class _Unspeakable(Exception):
    """An argument that is no plain value."""


def wordings(op: Op, attrs: Mapping[str, Any], operands: Sequence[str]) -> Iterator[str]:
    """The ways to write an operation on operands of these names, the best to read first."""
    changed = {name: value for name, value in attrs.items() if op.attrs[name] is REQUIRED or op.attrs[name] != value}
    try:
        given = {name: _spoken(_listed(name, value)) for name, value in changed.items()}
    except _Unspeakable:
        return
    if op.name in SIGNS and len(operands) + len(given) == 2:
        left, right = (*operands, *given.values())
        yield f"{_grouped(left)} {SIGNS[op.name]} {right}"
    if op.drawn:  # no function of its name takes what it drew
        yield f"{_grouped(operands[0])} * {operands[1]}"
    if op.name == "slice":
        stretch = _stretch(*(changed[name] for name in ("start", "end", "step")))
        yield f"{_grouped(operands[0])}[{', '.join([*[':'] * changed['dim'], stretch])}]"
    if op.name == "index" and op.slots[1:] == tuple(f"index{at}" for at in range(len(operands) - 1)):
        yield f"{_grouped(operands[0])}[{', '.join(operands[1:])}]"
    for path in dict.fromkeys([op.torch, *(package + op.name for package in _PACKAGES)]):
        if path:
            yield from _calls(path, op, operands, given)


def _calls(path: str, op: Op, operands: Sequence[str], given: Mapping[str, str]) -> Iterator[str]:
    """A call of that function with as little said by name as it takes, then with all but the first."""
    keywords = [f"{name}={value}" for name, value in given.items()]
    if op.variadic:
        yield _call(path, [f"[{', '.join(operands)}]", *keywords])
        return
    yield _call(path, [*operands, *(given.values() if path.startswith("Tensor.") else keywords)])
    by_name = [f"{slot}={operand}" for slot, operand in zip(op.slots[1:], operands[1:], strict=False)]
    yield _call(path, [operands[0], *by_name, *keywords])


def _call(path: str, arguments: Sequence[str]) -> str:
    if path.startswith("Tensor."):
        return f"{_grouped(arguments[0])}.{path.removeprefix('Tensor.')}({', '.join(arguments[1:])})"
    return f"torch.{path}({', '.join(arguments)})"


def _grouped(operand: str) -> str:
    """An operand that what follows it takes as a whole."""
    is_name, is_positive = operand[0].isalpha() or operand[0] == "_", operand.replace(".", "").isdigit()
    return operand if is_name or is_positive else f"({operand})"


def _listed(name: str, value: Any) -> Any:
    """An argument as PyTorch takes it by name: one of several dimensions is a tuple of one."""
    return (value,) if name == "dims" and isinstance(value, int) else value


def _spoken(value: Any) -> str:
    """A plain value as Python writes it."""
    if isinstance(value, list):
        return f"[{', '.join(_spoken(one) for one in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_spoken(one) for one in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.dtype | torch.dtype):
        return f"torch.{str(value).removeprefix('torch.')}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise _Unspeakable


def _stretch(start: int, end: int, step: int) -> str:
    """A slice as people write it."""
    return f"{start or ''}:{'' if end >= sys.maxsize else end}{'' if step == 1 else f':{step}'}"
