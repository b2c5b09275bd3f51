"""Flattens tensors in tuples, lists and dictionaries, and puts them back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gviz.engine.tensor import Tensor

Structure = Any
"""A tensor's number, or a tuple, list or dict of structures."""

NO_OUTPUT = (
    "The traced function didn't return any values! Side-effects are not captured in traces, so it would be a no-op."
)
OUTPUT_KIND = "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"


def flat(value: Any) -> tuple[list[Tensor], Structure]:
    """The tensors of a value, and its structure. Raises RuntimeError, with PyTorch's text, for any other content."""
    tensors: list[Tensor] = []

    def place(part: Any) -> int:
        if not isinstance(part, Tensor):
            raise RuntimeError(OUTPUT_KIND)
        tensors.append(part)
        return len(tensors) - 1

    structure = mapped(value, place)
    return tensors, structure


def rebuilt(structure: Structure, tensors: list[Tensor]) -> Any:
    """The value, rebuilt from its structure and tensors."""
    return mapped(structure, tensors.__getitem__)


def mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """A value with every leaf replaced by ``leaf(...)``."""
    if isinstance(value, tuple):
        parts = [mapped(part, leaf) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [mapped(part, leaf) for part in value]
    if isinstance(value, dict):
        return {key: mapped(part, leaf) for key, part in value.items()}
    return leaf(value)


def containers(value: Any) -> Iterator[str]:
    """Yields the names of the containers in a value whose length may differ from run to run."""
    if isinstance(value, (list, dict)):
        yield type(value).__name__
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from containers(part)
