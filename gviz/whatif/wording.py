"""A recorded operation as a line of PyTorch: of the ways to write it the first that gives what was recorded.

The function that an operation declares to mean it is one of them, and the suite holds that one against PyTorch.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import gviz.engine as torch
from gviz.engine.op import REQUIRED, Op
from gviz.engine.tensor import Tensor
from gviz.whatif import operations

_SIGNS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("+", operator.add), "sub": ("-", operator.sub), "mul": ("*", operator.mul), "div": ("/", operator.truediv),
    "pow": ("**", operator.pow), "matmul": ("@", operator.matmul), "mm": ("@", operator.matmul),
}  # fmt: skip
_PACKAGES = ("", "nn.functional.", "Tensor.", "special.", "linalg.", "fft.")
"""Where a function of an operation's own name may be."""


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to write an operation: a head, operands, and arguments by name."""

    head: str
    function: Callable[..., Any]
    positional: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()

    def text(self, names: Mapping[int, str]) -> str:
        """The line; `names` are what the operands are called, by `id`."""
        given = [spoken(one, names) for one in self.positional]
        if self.head in [sign for sign, _ in _SIGNS.values()]:
            return f" {self.head} ".join(given)
        if self.head == "[]":
            return f"{given[0]}[{', '.join(given[1:])}]"
        if self.head == "[:]":
            return f"{given[0]}[{', '.join([*[':'] * self.positional[1], _stretch(*self.positional[2:])])}]"
        given += [f"{name}={spoken(one, names)}" for name, one in self.keywords]
        if self.head.startswith("Tensor."):
            return f"{given[0]}.{self.head.removeprefix('Tensor.')}({', '.join(given[1:])})"
        return f"torch.{self.head}({', '.join(given)})"

    def outputs(self) -> list[Any]:
        """What it gives on the engine; raises one of `operations.FAILURES`."""
        results = self.function(*self.positional, **dict(self.keywords))
        return list(results) if isinstance(results, tuple | list) else [results]


class Unspeakable(Exception):
    """An argument that is no plain value."""


def spoken(value: Any, names: Mapping[int, str]) -> str:
    """An operand's name, or a plain value as Python writes it."""
    if id(value) in names:
        return names[id(value)]
    if isinstance(value, list):
        return f"[{', '.join(spoken(one, names) for one in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(spoken(one, names) for one in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, np.dtype | torch.dtype):
        return f"torch.{str(value).removeprefix('torch.')}"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise Unspeakable


def wordings(op: Op, attrs: Mapping[str, Any], operands: Sequence[Any]) -> Iterator[Wording]:
    """The ways to write an operation, the best to read first."""
    given = {name: value for name, value in attrs.items() if op.attrs[name] is REQUIRED or op.attrs[name] != value}
    if op.name in _SIGNS and len(operands) + len(given) == 2:
        yield Wording(*_SIGNS[op.name], (*operands, *given.values()))
    if op.name == "slice":
        start, end, step = (given[name] for name in ("start", "end", "step"))
        yield Wording("[:]", _part, (operands[0], given["dim"], start, end, step))
    if op.name == "index" and op.slots[1:] == tuple(f"index{at}" for at in range(len(operands) - 1)):
        yield Wording("[]", lambda tensor, *index: tensor[index], (*operands,))
    for path in dict.fromkeys([op.torch, *(package + op.name for package in _PACKAGES)]):
        function = _function(path) if path else None
        if function is None:
            continue
        if op.variadic:
            yield Wording(path, function, ([*operands],), tuple(given.items()))
            continue
        yield Wording(path, function, (*operands, *given.values()) if path.startswith("Tensor.") else (*operands,),
                      () if path.startswith("Tensor.") else tuple(given.items()))  # fmt: skip
        first, *others = zip(op.slots, operands, strict=False)
        yield Wording(path, function, (first[1],), (*others, *given.items()))


def _part(tensor: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    part: Tensor = tensor[(*[slice(None)] * dim, slice(start, end, step))]
    return part


def _stretch(start: int, end: int, step: int) -> str:
    """A slice as people write it."""
    return f"{start or ''}:{'' if end >= sys.maxsize else end}{'' if step == 1 else f':{step}'}"


def _function(path: str) -> Callable[..., Any] | None:
    found: Any = torch
    for name in path.split("."):
        found = getattr(found, name, None)
    return found if callable(found) else None


def gives(wording: Wording, recorded: Sequence[np.ndarray[Any, Any] | None], *, exactly: bool) -> list[Tensor] | None:
    """The tensors that a wording gives, if they are what was recorded; a function may keep some to itself."""
    try:
        made = wording.outputs()
        wording.text({id(one): "x" for one in wording.positional})
    except (*operations.FAILURES, AttributeError, Unspeakable):
        return None
    if len(made) > len(recorded) or not all(isinstance(tensor, Tensor) for tensor in made):
        return None
    pairs = [(tensor.detach().numpy(), array) for tensor, array in zip(made, recorded, strict=False)]
    return made if all(array is not None and _same(mine, array, exactly) for mine, array in pairs) else None


def _same(mine: Any, recorded: Any, exactly: bool) -> bool:
    if mine.shape != recorded.shape or mine.dtype != recorded.dtype:
        return False
    if exactly or mine.dtype.kind not in "fc":
        return np.array_equal(mine, recorded, equal_nan=mine.dtype.kind in "fc")
    return bool(np.allclose(mine, recorded, rtol=1e-4, atol=1e-6, equal_nan=True))
