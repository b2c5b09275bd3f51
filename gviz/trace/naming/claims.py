"""Which variable a call stack assigns to, read from the source text around its frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from gviz.events import KeyEntry, KeyPath
from gviz.site import Frame
from gviz.trace.naming.bindings import Binding, Key, Range, bindings, plain, range_of
from gviz.trace.naming.constructions import constructions
from gviz.trace.naming.targets import Each, Target, name_at, names_in


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement that assigns what is made at a stack to `target`; `depth` is the place of its frame in the stack.

    `ways` tell, for each frame up to there, which part of what it gets is taken, and as which part that is passed on.
    `calls` are those among them that may call a library which calls the program again, and whether each folds a
    sequence: the others call the function of the frame below them, and get what that gives. If `gives` names any
    operations, the innermost call gives what the last of these makes.
    """

    target: Target
    ways: tuple[tuple[tuple[Key | None, ...], KeyPath], ...]
    depth: int
    exact: bool
    lines: tuple[int, int]
    called: tuple[str, ...] = ()
    calls: tuple[tuple[int, bool], ...] = ((0, False),)
    gives: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All that parts of what is made may be called."""
        return tuple(dict.fromkeys(names_in(self.target)))

    def name(self, path: KeyPath = ()) -> str:
        """What the part at `path` of what the innermost frame gets is called; nothing where the text does not tell."""
        for taken, element in self.ways:
            if len(path) < len(taken) or not all(map(_fits, taken, path)):
                return ""
            path = (*element, *path[len(taken) :])
        return name_at(self.target, path)

    @property
    def takes_each(self) -> bool:
        """Whether it is a loop's, which takes the parts of what is made one by one."""
        return isinstance(self.target, Each)

    def holder(self, path: KeyPath) -> str:
        """The variable that holds the whole of which the part at `path` is one; nothing where each has its own."""
        return self.name(path[:-1]) if path else ""


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

    def possible(self, stack: int) -> tuple[str, ...]:
        """The names that outputs of a node made at a stack get, if it is no step on the way to what is assigned."""
        claim = self.of(stack)
        return claim.names if claim is not None else ()

    def _found(self, frames: tuple[Frame, ...]) -> Claim | None:
        exact, ways, calls = True, [], []
        gives: tuple[str, ...] = ()
        for depth, frame in enumerate(frames):
            binding = self._in(frame.path).get(range_of(frame))
            if binding is None or (not depth and range_of(frame) in self._constructions(frame.path)):
                return None
            gives = gives if depth else binding.gives
            exact = exact and binding.exact
            ways.append((binding.taken, binding.element))
            if not depth or plain(frames[depth - 1].function.rpartition(".")[2]) not in binding.called:
                calls.append((depth, binding.folds))
            if binding.target is not None:
                if binding.stored is not None and self._is_of_a_tensor(frame, binding.stored, frames[depth + 1 :]):
                    return None  # of a tensor, an item is a view, and the value is copied into it
                called = binding.called if not depth else ()
                return Claim(binding.target, tuple(ways), depth, exact, binding.lines, called, tuple(calls), gives)
        return None

    def _is_of_a_tensor(self, frame: Frame, item: Range, outer: tuple[Frame, ...]) -> bool:
        """Whether an item that a frame stores or reads is a part of a tensor: then that is an operation of its own."""
        line, end_line, column, end_column = item
        store = Frame(frame.path, frame.function, line, end_line, column, end_column)
        return (store, *outer) in self._all

    @cached_property
    def _all(self) -> frozenset[tuple[Frame, ...]]:
        return frozenset(self.stacks.values())

    def _constructions(self, path: str) -> frozenset[Range]:
        text = self._sources.get(path)
        return constructions(text) if text else frozenset()

    def _in(self, path: str) -> dict[Range, Binding]:
        if path not in self._bindings:
            text = self._sources.get(path)
            self._bindings[path] = bindings(text) if text else {}
        return self._bindings[path]


def _fits(key: Key | None, step: KeyEntry) -> bool:
    """Whether a program that takes a part by this key goes this step."""
    place, count, name = step
    if isinstance(key, int):
        return count > 0 and place == (key if key >= 0 else key + count)
    return key is not None and key == name
