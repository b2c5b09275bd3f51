"""Which variable a call stack assigns to, read from the source text around its frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gviz.site import Frame
from gviz.trace.bindings import Binding, Range, bindings, range_of


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement that would call a node `name`; `depth` is the place of its frame in the node's stack."""

    name: str
    depth: int
    exact: bool
    lines: tuple[int, int]
    called: tuple[str, ...] = ()


class Claims:
    """The claims of a trace's call stacks. A pure function of the trace: nothing is imported, nothing is run."""

    def __init__(self, stacks: Mapping[int, tuple[Frame, ...]], sources: Mapping[str, str | None]) -> None:
        self.stacks = stacks
        self._sources = sources
        self._bindings: dict[str, dict[Range, Binding]] = {}
        self._known: dict[int, Claim | None] = {}

    def of(self, stack: int) -> Claim | None:
        """The claim to what is made at a stack, None if it is not assigned."""
        if stack not in self._known:
            self._known[stack] = self._found(self.stacks.get(stack, ()))
        return self._known[stack]

    def possible(self, stack: int) -> str:
        """The name that a node made at a stack gets, if it is not a step on the way to what is assigned."""
        claim = self.of(stack)
        return claim.name if claim is not None else ""

    def _found(self, frames: tuple[Frame, ...]) -> Claim | None:
        element, exact = None, True
        for depth, frame in enumerate(frames):
            binding = self._in(frame.path).get(range_of(frame))
            if binding is None:
                return None
            exact = exact and binding.exact
            if binding.names:
                name = _chosen(binding.names, element)
                called = binding.called if not depth else ()
                return Claim(name, depth, exact, binding.lines, called) if name else None
            element = binding.element if binding.element is not None else element
        return None

    def _in(self, path: str) -> dict[Range, Binding]:
        if path not in self._bindings:
            text = self._sources.get(path)
            self._bindings[path] = bindings(text) if text else {}
        return self._bindings[path]


def _chosen(names: tuple[str, ...], element: int | None) -> str:
    if element is None:
        return ", ".join(names) if all(names) else ""
    return names[element] if len(names) > 1 and element < len(names) else ""
