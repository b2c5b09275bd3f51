"""What a call was given, as events describe it: its tensors and numbers, and everything else as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from gviz.adapters.pytorch import operations
from gviz.adapters.pytorch.created import Call, Operand, Untracked


def call_of(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, in_place: bool = False) -> Call:
    """A call as events describe it."""
    called = operations.called(function)
    given: list[tuple[str, Operand]] = []
    attrs: list[tuple[str, Any]] = []
    names = operations.argument_names(function, len(args)) if len(args) > 1 or kwargs else ()
    for place, value in enumerate(args):
        name = names[place] if place < len(names) else ""
        if isinstance(value, torch.Tensor) or (
            isinstance(value, (int, float)) and _is_operand(called, place, len(args))
        ):
            given.append((name, value))
        else:
            _sort(name or f"argument{place}", name, value, given, attrs)
    for name, value in kwargs.items():
        if name != "_stacklevel":
            _sort(name, name, value, given, attrs)
    no_gradient = [
        Untracked(name, operand) for name, operand in given
        if not (isinstance(operand, torch.Tensor) and operand.requires_grad)
    ]  # fmt: skip
    return Call(called, [operand for _, operand in given], tuple(attrs), in_place, no_gradient)


def _sort(shown: str, name: str, value: Any, given: list[tuple[str, Operand]], attrs: list[tuple[str, Any]]) -> None:
    """Take an argument for the tensors that it is or holds, else for plain data."""
    tensors = _tensors_of(value)
    if tensors:
        given += [(name, tensor) for tensor in tensors]
    else:
        attrs.append((shown, plain(value)))


_WITH_NUMBERS = {"add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder"}


def _is_operand(name: str, place: int, given: int) -> bool:
    """Whether a Python number at this place takes part as a tensor would."""
    return ((place, given) == (1, 2) and name.rstrip("_") in _WITH_NUMBERS) or (place, name) == (2, "setitem")


def plain(value: Any) -> Any:
    """An argument as plain data."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(plain(item) for item in value)
    if isinstance(value, slice):
        return ("slice", plain(value.start), plain(value.stop), plain(value.step))
    if isinstance(value, torch.Tensor):
        return f"tensor of shape {tuple(value.shape)}"
    return getattr(value, "__name__", None) or str(value)[:200]


def _tensors_of(value: Any) -> Sequence[torch.Tensor]:
    """The tensors that an argument is or holds."""
    if isinstance(value, torch.Tensor):
        return (value,)
    return list(tensors_in(value)) if isinstance(value, (tuple, list)) else ()


def tensors_in(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among values, also within tuples and lists of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from tensors_in(value)
