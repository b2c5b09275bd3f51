"""Which variable a call stack assigns to, read from the source text around its frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from gviz.events import KeyEntry, KeyPath
from gviz.site import Frame
from gviz.trace.naming.assignments import returned_as
from gviz.trace.naming.bindings import (
    TURN,
    Binding,
    Each,
    Key,
    Range,
    Target,
    bindings,
    name_at,
    names_in,
    plain,
    range_of,
    turns_at,
)
from gviz.trace.naming.calls import constructions
from gviz.trace.stacks import Stacks

Goal = tuple[Target, KeyPath | None]


@dataclass(frozen=True, eq=False)  # one for each stack: what it means is asked for each node
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
        """All that what is made, or parts of it, may be called."""
        name = self.name()
        return (name,) if name else tuple(dict.fromkeys(names_in(self.target)))

    def name(self, path: KeyPath = (), turn: KeyEntry = TURN) -> str:
        """What the part at `path` of what the innermost frame gets is called; nothing where the text does not tell.

        Of what is given one after another, the place tells which is meant by `turn`.
        """
        way = self.way(path) if path else self.goal[1]
        return "" if way is None else name_at(self.target, tuple(turn if step == TURN else step for step in way))

    def way(self, path: KeyPath = ()) -> KeyPath | None:
        """Which part of what is assigned the part at `path` is; None where the text does not tell."""
        for taken, element in self.ways:
            if len(path) < len(taken) or not all(map(_fits, taken, path)):
                return None
            path = (*element, *path[len(taken) :])
        return path

    @cached_property
    def goal(self) -> Goal:
        """What is made, by what it is assigned to and as which part."""
        return self.target, self.way()

    @cached_property
    def turns(self) -> int:
        """Among how many variables its turn decides which is meant; 0 where nothing is to be decided."""
        _, way = self.goal
        return 0 if way is None or way.count(TURN) > 1 else turns_at(self.target, way)

    @property
    def takes_each(self) -> bool:
        """Whether it is a loop's, which takes the parts of what is made one by one."""
        return isinstance(self.target, Each)

    def holder(self, path: KeyPath) -> str:
        """The variable that holds the whole of which the part at `path` is one; nothing where each has its own."""
        return self.name(path[:-1]) if path else ""


_GATHERING, _NEXT = "<listcomp>", "__next__"
"""What functions are called that make the items of a list, before Python 3.12, and of what a class iterates over."""
_OF_OBJECTS = ("forward", "__call__")
"""What a function is called that runs where an object is called."""


class Claims:
    """The claims of a trace's call stacks. A pure function of the trace: nothing is imported, nothing is run."""

    def __init__(self, stacks: Stacks, sources: Mapping[str, str | None]) -> None:
        self.stacks = stacks
        self._sources = sources
        self._bindings: dict[str, dict[Range, Binding]] = {}
        self._known: dict[int, Claim | None] = {}
        self._chains: dict[int, tuple[Claim, ...]] = {}

    def of(self, stack: int) -> Claim | None:
        """The claim to what is made at a stack, None if it is not assigned."""
        if stack not in self._known:
            self._known[stack] = self._found(stack)
        return self._known[stack]

    def of_caller(self, stack: int, claim: Claim, name: str) -> Claim | None:
        """The claim of a caller's statement to what a claim assigns to a variable that its function returns."""
        frame = self.stacks.frame(self.stacks.place(stack, claim.depth))
        text = self._sources.get(frame.path)
        part = returned_as(text, frame, name) if text else None
        return None if part is None else self._found(stack, claim.depth + 1, part)

    def chain(self, stack: int) -> tuple[Claim, ...]:
        """All claims to what is made at a stack, or to parts of it: of the statement that made it, and of callers."""
        if stack not in self._chains:
            claim = self.of(stack)
            self._chains[stack] = tuple(self._and_of_callers(stack, claim)) if claim is not None else ()
        return self._chains[stack]

    def _and_of_callers(self, stack: int, claim: Claim) -> Iterator[Claim]:
        yield claim
        for name in claim.names:
            outer = self.of_caller(stack, claim, name)
            if outer is not None:
                yield from self._and_of_callers(stack, outer)

    def possible(self, stack: int) -> tuple[str, ...]:
        """The names that outputs of a node made at a stack get, if it is no step on the way to what is assigned."""
        return tuple(dict.fromkeys(name for claim in self.chain(stack) for name in claim.names))

    def _found(self, stack: int, since: int = 0, part: KeyPath = ()) -> Claim | None:
        """The first claim of a frame from a depth on, which gets as a `part` what is made, or a variable was given."""
        stacks = self.stacks
        exact, calls = True, []
        ways: list[tuple[tuple[Key | None, ...], KeyPath]] = [((), part)] if since else []
        gives: tuple[str, ...] = ()
        within = stacks.frame(stacks.place(stack, since - 1)) if since else None
        for depth, place in enumerate(stacks.outward(stacks.place(stack, since)), since):
            frame = stacks.frame(place)
            below, within = _function(within) if within is not None else "", frame
            if below == _GATHERING:
                continue  # the comprehension that it runs for has said already what it makes
            binding = self._in(frame.path).get(range_of(frame))
            if binding is None or (not depth and range_of(frame) in self._constructions(frame.path)):
                return None
            gives = gives if depth else binding.gives
            exact = exact and binding.exact
            is_turn = bool(ways and ways[-1][1][:1] == (TURN,))
            ways.append((binding.taken, (TURN, *binding.element) if _function(frame) == _NEXT else binding.element))
            is_called = plain(below) in binding.called
            if depth == since or not (is_called or is_turn):
                calls.append((depth, binding.folds))
            if isinstance(binding.target, Each) and depth and not (is_called or is_turn or below in _OF_OBJECTS):
                return None  # such as an item of a data set, of which a batch is made
            if binding.target is not None:
                if binding.stored is not None and self._is_of_a_tensor(place, binding.stored):
                    return None  # of a tensor, an item is a view, and the value is copied into it
                called = binding.called if not depth else ()
                return Claim(binding.target, tuple(ways), depth, exact, binding.lines, called, tuple(calls), gives)
        return None

    def _is_of_a_tensor(self, place: int, item: Range) -> bool:
        """Whether an item that is stored or read at a place is part of a tensor: then it is an operation of its own."""
        frame, outer = self.stacks.frame(place), self.stacks.caller(place)
        line, end_line, column, end_column = item
        store = Frame(frame.path, frame.function, line, end_line, column, end_column)
        return self.stacks.ends_at(self.stacks.called(outer, store))

    def _constructions(self, path: str) -> frozenset[Range]:
        text = self._sources.get(path)
        return constructions(text) if text else frozenset()

    def _in(self, path: str) -> dict[Range, Binding]:
        if path not in self._bindings:
            text = self._sources.get(path)
            self._bindings[path] = bindings(text) if text else {}
        return self._bindings[path]


def _function(frame: Frame) -> str:
    """The name of the function that a frame runs."""
    return frame.function.rpartition(".")[2]


def _fits(key: Key | None, step: KeyEntry) -> bool:
    """Whether a program that takes a part by this key goes this step."""
    if isinstance(key, tuple) or step == TURN:
        return key == step
    place, count, name = step
    if isinstance(key, int):
        return count > 0 and place == (key if key >= 0 else key + count)
    return key is not None and key == name
