"""Describes the arguments of a call for events: tensors and numbers as operands, everything else as plain data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch

from gviz.adapters.pytorch import operation_catalog
from gviz.adapters.pytorch.node_creation import Operand, OperationCall, UntrackedOperand
from gviz.adapters.pytorch.private_api import schemas_of
from gviz.adapters.pytorch.tensor_properties import is_cut_off
from gviz.adapters.pytorch.value_capture import name_of


def call_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, in_place: bool = False) -> OperationCall:
    """Return the `OperationCall` that describes a function call in events."""
    called = operation_catalog.called(function)
    operands: list[tuple[str, Operand]] = []
    attrs: list[tuple[str, Any]] = []
    if len(args) > 2 and called in _NUMBER_BY_NUMBER and all(type(number) is int for number in args[1:]):
        args = (args[0], tuple(args[1:]))
    is_own = isinstance(function, type)
    names = _argument_names(function, tuple(map(type, args))) if is_own or len(args) > 1 or kwargs else ()
    is_reflected = operation_catalog.is_reflected(function)
    for place, value in enumerate(args):
        name = names[place] if place < len(names) else ""
        if isinstance(value, torch.Tensor) or (
            isinstance(value, (int, float)) and (is_reflected or _is_operand(called, place, len(args)))
        ):
            operands.append((name, value))
        else:
            _sort(name or f"argument{place}", name, value, operands, attrs)
    for name, value in kwargs.items():
        if name != "_stacklevel":
            _sort(name, name, value, operands, attrs)
    if is_reflected:
        operands.reverse()
    if called in _LIKE_ANOTHER:
        del operands[1:]
    no_gradient = [UntrackedOperand(name, operand) for name, operand in operands if not _leads_on(operand)]
    tensors = _named_tensors(names, args, kwargs) if is_own else ()
    return OperationCall(called, [operand for _, operand in operands], tuple(attrs), in_place, no_gradient, tensors)


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


def _leads_on(operand: Operand) -> bool:
    """Return whether a gradient can flow through an operand."""
    return isinstance(operand, torch.Tensor) and operand.requires_grad and not is_cut_off(operand)


def _sort(shown: str, name: str, value: Any, operands: list[tuple[str, Operand]], attrs: list[tuple[str, Any]]) -> None:
    """Add an argument to `operands` if it is or contains tensors, otherwise to `attrs` as plain data."""
    tensors = _tensors_of(value)
    if tensors:
        operands += [(name, tensor) for tensor in tensors]
    else:
        attrs.append((shown, plain(value)))


_WITH_NUMBERS = {
    "add", "sub", "rsub", "mul", "div", "floor_divide", "maximum", "minimum", "fmod", "remainder",
    "gt", "ge", "lt", "le", "eq", "ne",
}  # fmt: skip


def _is_operand(name: str, place: int, count: int) -> bool:
    """Return whether a Python number in this position is an operand, as a tensor would be."""
    return ((place, count) == (1, 2) and name.rstrip("_") in _WITH_NUMBERS) or (place, name) == (2, "setitem")


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
