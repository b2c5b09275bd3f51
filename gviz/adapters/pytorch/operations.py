"""What PyTorch's operations are called, and what is known of their rules.

A backward node's name (``MulBackward0``) is the same in gviz's own engine, whose declared operations say which of the
arguments can have a gradient and what that is; for any other node PyTorch's schemas give the names of arguments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import torch

from gviz.adapters.pytorch.private import schemas_of
from gviz.events import OpSeen

_TABLE = Path(__file__).parents[1] / "operations.json"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PYTHON_NAMES = {"truediv": "div", "itruediv": "div_", "matmul": "matmul", "invert": "bitwise_not", "rpow": "pow"}


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation as events describe it; compared by identity, there is one of each.

    `places` gives the slot of each entry of ``next_functions``; None if they are the slots.
    """

    name: str
    grad_fn: str = ""
    slots: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()
    formula: str = ""
    places: tuple[int, ...] | None = None

    def describe(self, number: int) -> OpSeen:
        """This operation as an event."""
        return OpSeen(number, self.name, self.grad_fn, self.slots, self.rules, self.saved, self.formula)

    def slots_of(self, edges: int) -> Sequence[int]:
        """The slots of the entries of ``next_functions``."""
        return range(edges) if self.places is None else self.places


_Row = tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...], str, tuple[int, ...], bool]


@cache
def _declared() -> tuple[dict[str, list[Operation]], dict[str, Operation]]:
    """The declared operations by the name of their node, and by their own."""
    by_node: dict[str, list[Operation]] = {}
    by_name: dict[str, Operation] = {}
    for name, grad_fn, slots, rules, saved, formula, places, variadic in msgspec.json.decode(
        _TABLE.read_bytes(), type=list[_Row]
    ):
        ours = Operation(name, grad_fn, slots, rules, saved, formula, None if variadic else places)
        by_node.setdefault(grad_fn, []).append(ours)
        by_name.setdefault(name, ours)
    return by_node, by_name


@cache
def of_node(grad_fn: str, called: str, edges: int, saved: tuple[str, ...], in_place: bool, scaled: bool) -> Operation:
    """The operation behind a backward node, which was made by calling the function `called` (empty: not known).

    It keeps the tensors `saved`; `scaled` says that it was given a factor other than one, `alpha` or `beta`.
    """

    def unlike(ours: Operation) -> tuple[bool, bool]:
        return ours.name != called, ("alpha" in ours.formula) != scaled

    for ours in sorted(_declared()[0].get(grad_fn, ()), key=unlike):
        if ours.places is None or len(ours.places) == edges:
            name = ours.name.rstrip("_") + "_" if in_place else ours.name
            return replace(ours, name=name, saved=ours.saved or saved)
    name = called or _words(grad_fn)
    return Operation(name, grad_fn, _tensor_arguments(_words(grad_fn), edges), ("",) * edges, saved)


def _tensor_arguments(name: str, edges: int) -> tuple[str, ...]:
    """The names of an operation's tensors, if a gradient goes to each of them."""
    for schema in schemas_of(f"aten::{name}") if name.isidentifier() else ():
        names = tuple(it.name for it in schema.arguments if str(it.type) in ("Tensor", "Optional[Tensor]"))
        if len(names) == edges:
            return names
    return ("input",) * edges


@cache
def untracked(called: str, tensors: int, in_place: bool = False) -> Operation:
    """An operation that autograd does not track."""
    ours = _declared()[1].get(called.rstrip("_"))
    name = called.rstrip("_") + "_" if in_place else called
    if ours is not None and (len(ours.slots) == tensors or ours.places is None):
        return replace(ours, name=name)
    return Operation(name, slots=("input",) * min(tensors, 1))


@cache
def as_given(operation: Operation, inputs: int, further: tuple[str, ...]) -> Operation:
    """An operation with as many slots as it has inputs, the last of them of the names `further`."""
    own = inputs - len(further)
    return replace(operation, slots=(*operation.slots[:own], *further), rules=operation.rules[:own])


@cache
def called(function: Callable[..., Any]) -> str:
    """What a user calls a function: ``add`` for ``Tensor.__radd__``."""
    name = getattr(function, "__name__", type(function).__name__)
    if name == "__get__":
        return str(getattr(getattr(function, "__self__", None), "__name__", name))
    bare = name.strip("_") if name.startswith("__") else name
    return _PYTHON_NAMES.get(bare) or _of_operator(bare)


def _of_operator(bare: str) -> str:
    for prefix in ("r", "i"):
        if bare.startswith(prefix) and bare[1:] in _OPERATORS:
            return bare[1:] if prefix == "r" else bare[1:] + "_"
    return bare


_OPERATORS = {"add", "sub", "mul", "matmul", "div", "floordiv", "mod"}


def _words(grad_fn: str) -> str:
    """``native_layer_norm`` for ``NativeLayerNormBackward0``."""
    return _CAMEL.sub("_", re.sub(r"Backward\d*$", "", grad_fn.rpartition("::")[2])).lower() or grad_fn


@dataclass(frozen=True, slots=True)
class Kept:
    """What nodes of one name keep for their rule: tensors by name, and plain numbers by attribute and by name."""

    grad_fn: str
    saved: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]


_kept: dict[str, Kept] = {}


def kept_by(node: Any) -> Kept:
    """What a node keeps for its rule. Only names are looked at: reading a saved tensor runs its hooks."""
    name = node.name()
    known = _kept.get(name)
    if known is None:
        known = _kept[name] = _looked_at(node, name.rpartition("::")[2])
    return known


def _looked_at(node: Any, grad_fn: str) -> Kept:
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return Kept(grad_fn, ("saved_tensors",), ())
    names = dir(type(node))
    saved = tuple(sorted(part.removeprefix("_raw_saved_") for part in names if part.startswith("_raw_saved_")))
    tensors = {f"_saved_{part}" for part in saved}
    numbers = (p for p in names if p.startswith("_saved_") and p not in tensors and "sym" not in p)
    return Kept(grad_fn, saved, tuple((part, part.removeprefix("_saved_")) for part in numbers))


def settings(node: Any, kept: Kept) -> dict[str, Any]:
    """The plain numbers a node keeps for its rule, by the name its rule gives them: ``dim``, ``alpha``."""
    return {name: _signed(getattr(node, part)) for part, name in kept.settings}


def _signed(value: Any) -> Any:
    """PyTorch keeps a negative dimension as an unsigned number."""
    if value.__class__ is int:
        return value if value < 1 << 63 else value - (1 << 64)
    if isinstance(value, (tuple, list)):
        return tuple(_signed(item) for item in value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


@cache
def argument_names(function: Callable[..., Any], given: int) -> Sequence[str]:
    """The names of a function's positional arguments; none where they cannot be known."""
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        pass
    name = called(function)
    schemas = schemas_of(f"aten::{name}") if name.isidentifier() else []
    fitting = [schema for schema in schemas if len(schema.arguments) >= given]
    return tuple(argument.name for argument in fitting[0].arguments) if fitting else ()
