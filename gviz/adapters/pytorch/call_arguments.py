"""Describes the arguments of a call for events: tensors and numbers as operands, everything else as plain data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from gviz.adapters.pytorch import operation_catalog
from gviz.adapters.pytorch.node_creation import Operand, OperationCall, UntrackedOperand
from gviz.adapters.pytorch.private_api import schemas_of
from gviz.adapters.pytorch.tensor_properties import is_cut_off
from gviz.adapters.pytorch.value_capture import name_of


class _Function(NamedTuple):
    """What the description of a call needs to know of its function.

    `is_own` is true for a function of the program (`torch.autograd.Function`).
    """

    name: str
    is_own: bool
    is_reflected: bool
    takes_numbers: bool
    """Whether it accepts a list of numbers as separate arguments, too."""
    is_arithmetic: bool
    """Whether its second argument may be a Python number that acts as a tensor."""


@lru_cache(operation_catalog.FUNCTIONS)
def _function(function: Callable[..., Any]) -> _Function:
    name = operation_catalog.called(function)
    return _Function(
        name, isinstance(function, type), operation_catalog.is_reflected(function), name in _NUMBER_BY_NUMBER,
        name.rstrip("_") in _WITH_NUMBERS,
    )  # fmt: skip


def call_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, in_place: bool = False) -> OperationCall:
    """Return the `OperationCall` that describes a function call in events."""
    called, is_own, is_reflected, takes_numbers, is_arithmetic = _function(function)
    operands: list[Operand] = []
    no_gradient: list[UntrackedOperand] = []
    attrs: list[tuple[str, Any]] = []
    if takes_numbers and len(args) > 2 and all(type(number) is int for number in args[1:]):
        args = (args[0], tuple(args[1:]))
    count = len(args)
    names = _argument_names(function, tuple(map(type, args))) if is_own or count > 1 or kwargs else ()
    known = len(names)
    for place, value in enumerate(args):
        name = names[place] if place < known else ""
        if isinstance(value, torch.Tensor):
            operands.append(value)
            if not value.requires_grad or is_cut_off(value):
                no_gradient.append(UntrackedOperand(name, value))
        elif isinstance(value, (int, float)) and (
            is_reflected or (place == 1 and count == 2 and is_arithmetic) or (place == 2 and called == "setitem")
        ):  # an operand, as a tensor would be
            operands.append(value)
            no_gradient.append(UntrackedOperand(name, value))
        else:
            _sort(name or f"argument{place}", name, value, operands, no_gradient, attrs)
    for name, value in kwargs.items():
        if name != "_stacklevel":
            _sort(name, name, value, operands, no_gradient, attrs)
    if is_reflected:
        operands.reverse()
        no_gradient.reverse()
    if called in _LIKE_ANOTHER and len(operands) > 1:
        no_gradient = [it for it in no_gradient if it.operand is operands[0]][:1]
        del operands[1:]
    tensors = _named_tensors(names, args, kwargs) if is_own else ()
    return OperationCall(called, operands, tuple(attrs), in_place, no_gradient, tensors)


def named_arguments(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, without those whose name is not known."""
    return {**dict(zip(_argument_names(function, tuple(map(type, args))), args, strict=False)), **kwargs}


def _named_tensors(names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the arguments that are tensors. A custom function can have a gradient for each of them."""
    named = [*zip(names, args, strict=False), *kwargs.items()]
    return tuple(name for name, value in named if isinstance(value, torch.Tensor))


_LIKE_ANOTHER = {"to", "type_as"}
"""Functions that use only the dtype and device of a second tensor."""

_NUMBER_BY_NUMBER = {
    "view", "reshape", "expand", "permute", "repeat", "tile", "flip", "resize_", "new_zeros", "new_ones", "new_empty",
}  # fmt: skip
"""Functions that also accept a list of numbers as separate arguments, as in ``x.view(2, 3)``."""


def _sort(
    shown: str, name: str, value: Any, operands: list[Operand], no_gradient: list[UntrackedOperand],
    attrs: list[tuple[str, Any]],
) -> None:  # fmt: skip
    """Add an argument to `operands` if it is or contains tensors, otherwise to `attrs` as plain data."""
    tensors = _tensors_of(value)
    if not tensors:
        attrs.append((shown, plain(value)))
    for tensor in tensors:
        operands.append(tensor)
        if not tensor.requires_grad or is_cut_off(tensor):
            no_gradient.append(UntrackedOperand(name, tensor))


_WITH_NUMBERS = {
    "add", "sub", "rsub", "mul", "div", "floor_divide", "maximum", "minimum", "fmod", "remainder",
    "gt", "ge", "lt", "le", "eq", "ne",
}  # fmt: skip


def plain(value: Any) -> Any:
    """Return an argument as plain data."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(plain(item) for item in value)
    if isinstance(value, slice):
        return ("slice", plain(value.start), plain(value.stop), plain(value.step))
    if isinstance(value, torch.Tensor):
        return f"tensor of shape {tuple(value.shape)}"
    if isinstance(value, torch.dtype):
        return name_of(value)
    return getattr(value, "__name__", None) or str(value)[:200]


def _tensors_of(value: Any) -> Sequence[torch.Tensor]:
    """Return the tensors that an argument is or contains."""
    if isinstance(value, torch.Tensor):
        return (value,)
    return list(tensors_in(value)) if isinstance(value, (tuple, list)) else ()


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among `values`, including those in nested tuples and lists."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from tensors_in(value)


@lru_cache(operation_catalog.FUNCTIONS)
def _argument_names(function: Callable[..., Any], types: tuple[type, ...]) -> Sequence[str]:
    """Return the names of a function's positional arguments for values of these types; empty if unknown."""
    name = operation_catalog.called(function)
    if isinstance(function, type) and issubclass(function, torch.autograd.Function):
        return _names_of_forward(function, len(types))
    schema = getattr(function, "_schema", None)
    if schema is not None:
        return tuple(argument.name for argument in schema.arguments)
    try:
        names = tuple(inspect.signature(function).parameters)
        if names[:1] != ("args",):
            return names
    except (TypeError, ValueError):
        pass
    for schema in schemas_of(f"aten::{name}") if name.isidentifier() else ():
        taken = [argument for argument in schema.arguments if not argument.kwarg_only]
        if len(taken) >= len(types) and all(map(_takes, taken, types)):
            return tuple(argument.name for argument in taken)
    return ()


def _names_of_forward(function: type[torch.autograd.Function], count: int) -> Sequence[str]:
    """Return the names of the arguments of ``apply``: those of ``forward`` without its `ctx`.

    A ``forward`` with a separate ``setup_context`` takes no `ctx`. Arguments of ``*tensors`` are numbered:
    ``tensors0``, ``tensors1``.
    """
    taken = list(inspect.signature(function.forward).parameters.values())
    if function.setup_context is torch.autograd.Function.setup_context:
        taken = taken[1:]
    names = [it.name for it in taken if it.kind is not it.VAR_POSITIONAL]
    further = next((it.name for it in taken if it.kind is it.VAR_POSITIONAL), "")
    return [*names, *(f"{further}{place}" for place in range(count - len(names) if further else 0))]


def _takes(argument: Any, kind: type) -> bool:
    """Return whether a schema argument accepts a value of this type, as far as its type text shows."""
    text = str(argument.type)
    if kind is torch.dtype:
        return bool(argument.name == "dtype")
    if issubclass(kind, torch.Tensor):
        return text in ("Tensor", "Optional[Tensor]")
    return next((any(word in text for word in words) for known, *words in _WRITTEN if issubclass(kind, known)), True)


_WRITTEN: tuple[tuple[Any, ...], ...] = (
    (bool, "bool", "number"), (int, "int", "number", "float"), (float, "float", "number"), (str, "str"),
    (tuple, "List"), (list, "List"), (torch.device, "Device"),
)  # fmt: skip
"""How schemas write the argument types that accept values of a Python type."""
