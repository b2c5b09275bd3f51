"""The names of PyTorch's operations, and what is known of their backward rules.

A backward node's name (``MulBackward0``) is the same in the built-in engine. Its declared operations give the arguments
that can have a gradient, and the formula of each gradient. For any other node, PyTorch's schemas give the argument
names.
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
from gviz.events.documented_operation_names import PRODUCTS
from gviz.events.graph import HOOK_FUNCTION, HOOK_NAME

FUNCTIONS = 1 << 12
"""The size of caches by function. They are bounded because functions that a program creates may hold tensors."""

_TABLE = Path(__file__).parents[1] / "operations.json"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PYTHON_NAMES = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "invert": "bitwise_not", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation as events describe it. There is one object for each, compared by identity.

    `places` gives the slot of each entry of ``next_functions``; None if entry and slot coincide. `drawn` is the slot of
    a mask that the call itself draws.
    `call` and `more` are those of `OpSeen`.
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
    call: str = ""
    more: bool = False

    def describe(self, number: int) -> OpSeen:
        """Return this operation as an event."""
        return OpSeen(
            number, self.name, self.grad_fn, self.slots, self.rules, self.saved, self.formula, self.readings, self.call,
            self.more,
        )  # fmt: skip

    def slots_of(self, edges: int) -> Sequence[int]:
        """Return the slots of the entries of ``next_functions``."""
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
    """Return the declared operations by the name of their node, and by their own name."""
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
    call: str = "",
    more: bool = False,
) -> Operation:
    """Return the operation of a backward node that a call of the function `called` created (empty if unknown).

    `saved` names the tensors that the node saved. `tensors` names the tensor arguments of a custom function. `scaled`
    is True if a factor `alpha` or `beta` differs from one.
    `call` is that function, also for one of several nodes that the call made; with `more` others follow.
    """

    own = _words(grad_fn)

    def unlike(ours: Operation) -> tuple[bool, bool, bool]:
        return ours.name != called, ("alpha" in ours.formula) != scaled, ours.name != own

    for ours in sorted(_declared()[0].get(grad_fn, ()), key=unlike):
        if ours.places is None or len(ours.places) == edges:
            name = ours.name.rstrip("_") + "_" if in_place else ours.name
            public = call if more or call != name or name in PRODUCTS else ""
            return replace(ours, name=name, saved=ours.saved or saved, call=public, more=more)
    slots = tensors if len(tensors) == edges else _tensor_arguments(own, edges)
    name = called or own
    if grad_fn == f"{HOOK_FUNCTION}Backward":
        return Operation(HOOK_NAME, grad_fn, slots, ("",) * edges)
    public = call if more or call != name or name in PRODUCTS else ""
    return Operation(name, grad_fn, slots, ("",) * edges, saved, call=public, more=more)


def _tensor_arguments(name: str, edges: int) -> tuple[str, ...]:
    """Return the names of an operation's tensor arguments, if there are `edges` of them; else ``input`` for each."""
    for schema in schemas_of(f"aten::{name}") if name.isidentifier() else ():
        names = tuple(it.name for it in schema.arguments if str(it.type) in ("Tensor", "Optional[Tensor]"))
        if len(names) == edges:
            return names
    return ("input",) * edges


@cache
def untracked(called: str, tensors: int, in_place: bool = False, names: tuple[str, ...] = ()) -> Operation:
    """Return an untracked operation, called with `tensors` operands and other arguments with the names `names`.

    Of several operations of that name it is the one whose formula mentions those arguments and no others.
    """
    plain = called.rstrip("_")
    options = _arguments(plain) - set(names)

    def unlike(ours: Operation) -> tuple[int, int]:
        words = set(re.findall(r"\w+", ours.formula)) - set(ours.slots)
        return len(words & options), -len(words.intersection(names))

    # without what only the built-in engine records
    known = (it for it in _declared()[1].get(plain, ()) if "drawn" not in it.slots)
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
"""Functions that convert a tensor to another dtype or device."""


class TensorType(Protocol):
    """The dtype and device of a tensor, or of a graph node's metadata."""

    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...


def conversion(operation: Operation, source: TensorType, result: TensorType) -> tuple[Operation, dict[str, str]]:
    """Return the operation for a conversion, and its arguments: the dtype, and the devices from `source` to `device`.

    A program can write them in many ways, such as ``x.to(other)`` and ``x.double()``; the result shows what they were.
    """
    (dtype, device), (into, there) = _kind(source), _kind(result)
    is_cast, is_moved = dtype is not into, device != there
    facts = {"dtype": str(into).removeprefix("torch.")} if is_cast else {}
    if is_moved:
        facts |= {"source": str(device), "device": str(there)}
    return _converting(operation, is_cast, is_moved), facts


@cache
def unknown_conversion(operation: Operation) -> Operation:
    """Return the operation for a conversion of unknown dtype and device: one inside a call, before PyTorch 2.6."""
    return replace(operation, formula=f"{_converted_slot(operation)} converted")


def _converted_slot(operation: Operation) -> str:
    return "src" if "src" in operation.slots else next(iter(operation.slots), "input")


def _kind(it: TensorType) -> tuple[torch.dtype, torch.device]:
    return (dtype_of(it), device_of(it)) if isinstance(it, torch.Tensor) else (it.dtype, it.device)


@cache
def _converting(operation: Operation, is_cast: bool, is_moved: bool) -> Operation:
    slot = _converted_slot(operation)
    return replace(operation, formula=f"{slot}{' from source to device' * is_moved}{' as dtype' * is_cast}")


@cache
def defaults(operation: Operation, names: tuple[str, ...]) -> tuple[tuple[str, int | None], ...]:
    """Return the default values, None or an int, of arguments that the formula mentions and the call did not pass."""
    arguments = set(re.findall(r"\w+", operation.formula)) - {*operation.slots, *names}
    name = operation.name.rstrip("_")
    schemas = schemas_of(f"aten::{name}") if name.isidentifier() and arguments else ()
    known = {it.name: it.default_value for each in schemas for it in each.arguments if it.has_default_value()}
    plain = {name: known[name] for name in sorted(arguments & known.keys()) if known[name] in (None, [])}
    whole = {name: known[name] for name in sorted(arguments & known.keys()) if type(known[name]) is int}
    return *((name, None) for name in plain), *whole.items()


def _arguments(name: str) -> set[str]:
    """Return the names of all arguments of an operation."""
    schemas = schemas_of(f"aten::{name}") if name.isidentifier() else ()
    return {argument.name for schema in schemas for argument in schema.arguments}


@cache
def with_inputs(operation: Operation, inputs: int, further: tuple[str, ...]) -> Operation:
    """Return an operation with exactly as many slots as `inputs`, the last of them named by `further`."""
    own = inputs - len(further)
    if not further and len(operation.slots) == own >= len(operation.rules):
        return operation
    return replace(operation, slots=(*operation.slots[:own], *further), rules=operation.rules[:own])


@cache
def with_saved(operation: Operation, names: tuple[str, ...] | None) -> Operation:
    """Return a custom function as an operation with the names of what it saves; without them if they are unknown."""
    if names is None:
        return operation
    return replace(operation, saved=names)


SAVED_BY_FUNCTION = ("saved_tensors",)
"""The name under which a node of a custom function has everything that it saved."""


@lru_cache(FUNCTIONS)
def called(function: Callable[..., Any]) -> str:
    """Return the public name of a function: ``add`` for ``Tensor.__radd__``, ``sum`` for one of its overloads."""
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


_OPERATORS = {
    "add", "sub", "mul", "matmul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift",
}  # fmt: skip
_COMMUTATIVE = {"add", "mul", "and", "or", "xor"}


@lru_cache(FUNCTIONS)
def is_reflected(function: Callable[..., Any]) -> bool:
    """Return whether a function is a non-commutative operator that takes its right operand first."""
    name = getattr(function, "__name__", "")
    return name.startswith("__r") and name.strip("_")[1:] in _OPERATORS - _COMMUTATIVE - {"sub"}


def _words(grad_fn: str) -> str:
    """Return the operation name in a node name: ``native_layer_norm`` for ``NativeLayerNormBackward0``."""
    return _CAMEL.sub("_", re.sub(r"Backward\d*$", "", grad_fn.rpartition("::")[2])).lower() or grad_fn


@dataclass(frozen=True, slots=True)
class Kept:
    """What nodes of one name save for their backward rule: tensors by name, and plain numbers.

    `settings` has the attribute and the name of each number, and a function that returns it as a program passes it.
    """

    grad_fn: str
    saved: tuple[str, ...]
    settings: tuple[tuple[str, str, Callable[[Any], Any]], ...]


_kept: dict[str, Kept] = {}


def kept_by(node: Any) -> Kept:
    """Return what a node saves for its backward rule. Reads names only: reading a saved tensor runs its hooks."""
    name = node.name()
    known = _kept.get(name)
    if known is None:
        known = _kept[name] = _looked_at(node, name.rpartition("::")[2])
    return known


def _looked_at(node: Any, grad_fn: str) -> Kept:
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        return Kept(grad_fn, SAVED_BY_FUNCTION, ())
    names = dir(type(node))
    saved = tuple(sorted(part.removeprefix("_raw_saved_") for part in names if part.startswith("_raw_saved_")))
    tensors = {f"_saved_{part}" for part in saved}
    numbers = (p for p in names if p.startswith("_saved_") and p not in tensors and "sym" not in p)
    named = [(part, part.removeprefix("_saved_")) for part in numbers]
    reads = {"reduction": _reduction}
    return Kept(grad_fn, saved, tuple((part, name, reads.get(name, _signed)) for part, name in named))


def settings(node: Any, kept: Kept) -> dict[str, Any]:
    """Return the plain numbers that a node saved, by their name in the backward rule: ``dim``, ``alpha``."""
    return {name: read(getattr(node, part)) for part, name, read in kept.settings}


def _reduction(number: Any) -> Any:
    """Return the word that a program passes for a reduction, from the number that a node saved for it."""
    return _REDUCTIONS[number] if number.__class__ is int and 0 <= number < len(_REDUCTIONS) else _signed(number)


_REDUCTIONS = "none", "mean", "sum"


def _signed(value: Any) -> Any:
    """Return the signed form of a dimension: PyTorch saves a negative one as an unsigned number."""
    if value.__class__ is int:
        return value if value < 0x8000_0000_0000_0000 else value - (1 << 64)
    if value.__class__ is float:
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_signed(item) for item in value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
