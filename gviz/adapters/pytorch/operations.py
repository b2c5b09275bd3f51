"""What PyTorch's operations are called, and what is known of their rules.

A backward node's name (``MulBackward0``) is the same in gviz's own engine, whose declared operations say which of the
arguments can have a gradient and what that is; for any other node PyTorch's schemas give the names of arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

import msgspec
import torch

from gviz.adapters.pytorch.private_api import schemas_of
from gviz.adapters.pytorch.tensor_properties import device_of, dtype_of
from gviz.events import OpSeen, Reading

FUNCTIONS = 1 << 12
"""Of so many functions it is remembered what is known of them: those that a program makes may hold tensors."""

_TABLE = Path(__file__).parents[1] / "operations.json"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PYTHON_NAMES = {"truediv": "div", "invert": "bitwise_not", "floordiv": "floor_divide", "mod": "remainder"}


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation as events describe it; compared by identity, there is one of each.

    `places` gives the slot of each entry of ``next_functions``; None if they are the slots. `drawn` is the slot of a
    mask that the call draws itself.
    """

    name: str
    grad_fn: str = ""
    slots: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()
    formula: str = ""
    places: tuple[int, ...] | None = None
    readings: tuple[Reading, ...] = ()
    drawn: str = ""

    def describe(self, number: int) -> OpSeen:
        """This operation as an event."""
        return OpSeen(number, self.name, self.grad_fn, self.slots, self.rules, self.saved, self.formula, self.readings)

    def slots_of(self, edges: int) -> Sequence[int]:
        """The slots of the entries of ``next_functions``."""
        return range(edges) if self.places is None else self.places


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A declared operation in the table; `places` are the slots that can have a gradient."""

    name: str
    grad_fn: str
    slots: tuple[str, ...]
    rules: tuple[str, ...]
    saved: tuple[str, ...]
    formula: str
    places: tuple[int, ...]
    is_variadic: bool
    readings: tuple[Reading, ...] = ()
    drawn: str = ""


@cache
def _declared() -> tuple[dict[str, list[Operation]], dict[str, list[Operation]]]:
    """The declared operations by the name of their node, and by their own."""
    by_node: dict[str, list[Operation]] = {}
    by_name: dict[str, list[Operation]] = {}
    for row in msgspec.json.decode(_TABLE.read_bytes(), type=list[_Row]):
        places = None if row.is_variadic else row.places
        ours = Operation(
            row.name, row.grad_fn, row.slots, row.rules, row.saved, row.formula, places, row.readings, row.drawn
        )
        by_node.setdefault(row.grad_fn, []).append(ours)
        by_name.setdefault(row.name, []).append(ours)
    return by_node, by_name


@cache
def of_node(
    grad_fn: str,
    called: str,
    edges: int,
    saved: tuple[str, ...],
    tensors: tuple[str, ...],
    in_place: bool,
    scaled: bool,
) -> Operation:
    """The operation behind a backward node, which was made by calling the function `called` (empty: not known).

    It keeps the tensors `saved`; `tensors` are the names of those that a function of the program was given; `scaled`
    says that it was given a factor other than one, `alpha` or `beta`.
    """

    own = _words(grad_fn)

    def unlike(ours: Operation) -> tuple[bool, bool, bool]:
        return ours.name != called, ("alpha" in ours.formula) != scaled, ours.name != own

    for ours in sorted(_declared()[0].get(grad_fn, ()), key=unlike):
        if ours.places is None or len(ours.places) == edges:
            name = ours.name.rstrip("_") + "_" if in_place else ours.name
            return replace(ours, name=name, saved=ours.saved or saved)
    slots = tensors if len(tensors) == edges else _tensor_arguments(own, edges)
    return Operation(called or own, grad_fn, slots, ("",) * edges, saved)


def _tensor_arguments(name: str, edges: int) -> tuple[str, ...]:
    """The names of an operation's tensors, if a gradient goes to each of them."""
    for schema in schemas_of(f"aten::{name}") if name.isidentifier() else ():
        names = tuple(it.name for it in schema.arguments if str(it.type) in ("Tensor", "Optional[Tensor]"))
        if len(names) == edges:
            return names
    return ("input",) * edges


@cache
def untracked(called: str, tensors: int, in_place: bool = False, given: tuple[str, ...] = ()) -> Operation:
    """An operation that autograd does not track, called with so many tensors and other arguments of the names `given`.

    Of several that are called so it is the one whose formula speaks of those arguments, and of no others.
    """
    plain = called.rstrip("_")
    options = _arguments(plain) - set(given)

    def unlike(ours: Operation) -> tuple[int, int]:
        words = set(re.findall(r"\w+", ours.formula)) - set(ours.slots)
        return len(words & options), -len(words.intersection(given))

    known = (it for it in _declared()[1].get(plain, ()) if "drawn" not in it.slots)  # what only gviz's engine records
    fitting = [it for it in known if len(it.slots) == tensors or it.places is None]
    name = plain + "_" if in_place else called
    if fitting:
        return replace(min(fitting, key=unlike), name=name)
    return Operation(name, slots=("input",) * min(tensors, 1))


CONVERSIONS = frozenset(
    {
        "to", "type", "type_as", "float", "double", "half", "bfloat16", "cfloat", "cdouble", "chalf", "bool", "byte",
        "char", "short", "int", "long", "cpu", "cuda", "xpu", "mtia", "hpu", "ipu", "copy",
    }
)  # fmt: skip
"""What gives the numbers of one tensor in another dtype, or on another device."""


class Kind(Protocol):
    """Where numbers lie, and as what: a tensor, or what a graph node knows of one."""

    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...


def conversion(operation: Operation, source: Kind, made: Kind) -> tuple[Operation, dict[str, str]]:
    """How a conversion reads, and its arguments: as which dtype, from which device (`source`) to which.

    A program gives them in many ways, ``x.to(other)`` and ``x.double()`` among them: what came of it says them all.
    """
    (dtype, device), (into, there) = _kind(source), _kind(made)
    is_cast, is_moved = dtype is not into, device != there
    facts = {"dtype": str(into).removeprefix("torch.")} if is_cast else {}
    if is_moved:
        facts |= {"source": str(device), "device": str(there)}
    return _converting(operation, is_cast, is_moved), facts


@cache
def unknown_conversion(operation: Operation) -> Operation:
    """How a conversion reads of which neither dtype nor device is known: one within a call, before PyTorch 2.6."""
    return replace(operation, formula=f"{_converted_slot(operation)} converted")


def _converted_slot(operation: Operation) -> str:
    return "src" if "src" in operation.slots else next(iter(operation.slots), "input")


def _kind(it: Kind) -> tuple[torch.dtype, torch.device]:
    return (dtype_of(it), device_of(it)) if isinstance(it, torch.Tensor) else (it.dtype, it.device)


@cache
def _converting(operation: Operation, is_cast: bool, is_moved: bool) -> Operation:
    slot = _converted_slot(operation)
    return replace(operation, formula=f"{slot}{' from source to device' * is_moved}{' as dtype' * is_cast}")


@cache
def defaults(operation: Operation, given: tuple[str, ...]) -> tuple[tuple[str, int | None], ...]:
    """The arguments that the formula of an operation speaks of, and that it was not given: whole numbers, or None."""
    wanted = set(re.findall(r"\w+", operation.formula)) - {*operation.slots, *given}
    name = operation.name.rstrip("_")
    schemas = schemas_of(f"aten::{name}") if name.isidentifier() and wanted else ()
    known = {it.name: it.default_value for each in schemas for it in each.arguments if it.has_default_value()}
    plain = {name: known[name] for name in sorted(wanted & known.keys()) if known[name] in (None, [])}
    whole = {name: known[name] for name in sorted(wanted & known.keys()) if type(known[name]) is int}
    return *((name, None) for name in plain), *whole.items()


def _arguments(name: str) -> set[str]:
    """The names of all arguments that an operation can be given."""
    schemas = schemas_of(f"aten::{name}") if name.isidentifier() else ()
    return {argument.name for schema in schemas for argument in schema.arguments}


@cache
def as_given(operation: Operation, inputs: int, further: tuple[str, ...]) -> Operation:
    """An operation with as many slots as it has inputs, the last of them of the names `further`."""
    own = inputs - len(further)
    return replace(operation, slots=(*operation.slots[:own], *further), rules=operation.rules[:own])


@lru_cache(FUNCTIONS)
def called(function: Callable[..., Any]) -> str:
    """What a user calls a function: ``add`` for ``Tensor.__radd__``, ``sum`` for an overload of it."""
    name = getattr(function, "__name__", type(function).__name__).partition(".")[0]
    if name == "__get__":
        return str(getattr(getattr(function, "__self__", None), "__name__", name))
    if not name.startswith("__"):
        return name
    bare = name.strip("_")
    if bare[:1] == "r" and bare[1:] in _OPERATORS:
        return "rsub" if bare == "rsub" else _PYTHON_NAMES.get(bare[1:], bare[1:])
    if bare[:1] == "i" and bare[1:] in _OPERATORS:
        return _PYTHON_NAMES.get(bare[1:], bare[1:]) + "_"
    return _PYTHON_NAMES.get(bare, bare)


_OPERATORS = {"add", "sub", "mul", "matmul", "div", "truediv", "floordiv", "mod", "pow"}


@lru_cache(FUNCTIONS)
def is_reflected(function: Callable[..., Any]) -> bool:
    """Whether a function is an operator that is given its right operand first, where the order matters."""
    name = getattr(function, "__name__", "")
    return name.startswith("__r") and name.strip("_")[1:] in _OPERATORS - {"add", "mul", "sub"}


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
    return {name: _as_given(name, getattr(node, part)) for part, name in kept.settings}


def _as_given(name: str, value: Any) -> Any:
    """An argument as a program gives it, of the number that a node keeps of it."""
    words = _BY_NUMBER.get(name, ())
    return words[value] if value.__class__ is int and 0 <= value < len(words) else _signed(value)


_BY_NUMBER = {"reduction": ("none", "mean", "sum")}
"""What the numbers mean that nodes keep of arguments which are words."""


def _signed(value: Any) -> Any:
    """PyTorch keeps a negative dimension as an unsigned number."""
    if value.__class__ is int:
        return value if value < 1 << 63 else value - (1 << 64)
    if isinstance(value, (tuple, list)):
        return tuple(_signed(item) for item in value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
