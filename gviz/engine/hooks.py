"""Hooks: handles of registered ones, where a node keeps them, and what they may give back."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gviz.engine.tensor import Tensor

Hook = Callable[["Tensor"], "Tensor | None"]
Values = tuple["Tensor | None", ...]
Registered = dict[int, Callable[..., Any]]
"""Hooks of one kind by the number of their handle, in the order in which they run."""

_next_id = count().__next__


class RemovableHandle:
    """Takes one registration of a hook away again: ``handle.remove()``, or at the end of a ``with`` block."""

    def __init__(self, hooks: Registered, hook: Any) -> None:
        self.id = _next_id()
        self._hooks = hooks
        self._marks: tuple[dict[int, bool], ...] = ()
        hooks[self.id] = hook

    def mark(self, *marked: dict[int, bool]) -> None:
        """Note the hook in these registries too, which say how it is called, until it is removed."""
        self._marks = marked
        for registry in marked:
            registry[self.id] = True

    def remove(self) -> None:
        """Take the hook away; once is enough, twice is harmless, also where it was registered again."""
        self._hooks.pop(self.id, None)
        for registry in self._marks:
            registry.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Extras:
    """What few nodes have: hooks, outputs that keep their gradient, notes of whoever uses the graph.

    `of_tensors` are the hooks of the node's outputs by output number, `before` and `after` its own; `retained` are the
    outputs that keep their gradient; `metadata` is free for anybody's notes, anomaly mode's among them. `place` puts a
    saved output at its place in the graph if that is not an output of the node itself.
    """

    __slots__ = ("after", "before", "metadata", "of_tensors", "place", "retained")

    def __init__(self) -> None:
        self.of_tensors: dict[int, Registered] = {}
        self.retained: dict[int, weakref.ref[Tensor]] = {}
        self.before: Registered = {}
        self.after: Registered = {}
        self.metadata: dict[str, Any] = {}
        self.place: Callable[[Tensor], Tensor] | None = None


def hook_name(hook: object) -> str:
    """A hook's name as PyTorch's messages have it."""
    name: str = getattr(hook, "__name__", "<unknown>")
    return name
