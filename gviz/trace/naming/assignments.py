"""Names that the program gives to results: the targets of assignments, and which part of a value each target gets.

Example: in ``a, (b, *rest) = f(x)`` the target tree is ``("a", ("b", ...))``, and the recording stores the path of each
tensor in the return value of ``f``. `Assignments` combines both: for a call stack, it finds the statement that assigns
what is created there, and the target at that path. Where the outermost statement calls a function of the program,
`returned_as` follows the names in that function's ``return``. `Unpacking` counts where several targets take values that
one expression creates one after the other: ``q, k, v = (f(x) for x in xs)``.

Limits: names are read from the recorded source text. Targets such as ``x[i]`` and ``a.b`` are named as they are
written. Assignments by ``exec`` have no text and therefore no name.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from gviz.events import KeyEntry, KeyPath
from gviz.source import parsing
from gviz.source.call_stack import Frame
from gviz.trace.naming.bindings import (
    COMPREHENSIONS,
    TURN,
    Binding,
    Each,
    Key,
    Range,
    Target,
    bindings,
    fields_of,
    name_at,
    name_of,
    names_in,
    parts_of,
    plain,
    range_of,
    unpacked_count_at,
)
from gviz.trace.naming.calls import Call, Calls, constructions
from gviz.trace.stack_tree import Stacks

Goal = tuple[Target, KeyPath | None]


@dataclass(frozen=True, eq=False)  # one for each stack: it is requested for each node
class Assignment:
    """A statement that assigns what is created at a stack to `target`; `depth` is the index of its frame in the stack.

    `paths` has for each frame up to there the part that it takes of its value, and the part as which it passes that on.
    `calls` are the frames that may call a library which calls the program again, with whether each folds a sequence.
    The other frames call the function of the frame below them and get its return value. If `gives` names operations,
    the innermost call returns what the last of these creates.
    """

    target: Target
    paths: tuple[tuple[tuple[Key | None, ...], KeyPath], ...]
    depth: int
    exact: bool
    lines: tuple[int, int]
    called: tuple[str, ...] = ()
    calls: tuple[tuple[int, bool], ...] = ((0, False),)
    gives: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names that the value or parts of it may get."""
        name = self.name()
        return (name,) if name else tuple(dict.fromkeys(names_in(self.target)))

    def name(self, path: KeyPath = (), turn: KeyEntry = TURN) -> str:
        """Return the name of the part at `path` of the innermost frame's value; "" if the text does not show it.

        `turn` selects among values that are created one after another.
        """
        steps = self.part_of_value(path) if path else self.goal[1]
        return "" if steps is None else name_at(self.target, tuple(turn if step == TURN else step for step in steps))

    def part_of_value(self, path: KeyPath = ()) -> KeyPath | None:
        """Return which part of the assigned value the part at `path` is; None if the text does not show it."""
        for taken, element in self.paths:
            if len(path) < len(taken) or not all(map(_fits, taken, path)):
                return None
            path = (*element, *path[len(taken) :])
        return path

    @cached_property
    def goal(self) -> Goal:
        """The target of the value and the part as which it is assigned."""
        return self.target, self.part_of_value()

    @cached_property
    def unpacked_count(self) -> int:
        """The number of variables among which the turn of a value decides; 0 if there is nothing to decide."""
        _, path = self.goal
        return 0 if path is None or path.count(TURN) > 1 else unpacked_count_at(self.target, path)

    @property
    def takes_each(self) -> bool:
        """Whether this is a loop, which takes the parts of the value one by one."""
        return isinstance(self.target, Each)

    def holder(self, path: KeyPath) -> str:
        """Return the variable that holds the whole value around the part at `path`; "" if each part has its own."""
        return self.name(path[:-1]) if path else ""


_GATHERING, _NEXT = "<listcomp>", "__next__"
"""Names of the functions that create the items of a list (before Python 3.12) and of an iterated class."""
_OF_OBJECTS = ("forward", "__call__")
"""Names of the functions that run when an object is called."""


class Assignments:
    """The assignments at a trace's call stacks. A pure function of the trace: nothing is imported or run."""

    def __init__(self, stacks: Stacks, sources: Mapping[str, str | None]) -> None:
        self.stacks = stacks
        self._sources = sources
        self._bindings: dict[str, dict[Range, Binding]] = {}
        self._known: dict[int, Assignment | None] = {}
        self._chains: dict[int, tuple[Assignment, ...]] = {}

    def of(self, stack: int) -> Assignment | None:
        """Return the assignment of what is created at a stack, None if it is not assigned."""
        if stack not in self._known:
            self._known[stack] = self._search(stack)
        return self._known[stack]

    def of_caller(self, stack: int, assignment: Assignment, name: str) -> Assignment | None:
        """Return the assignment in a caller of a variable that the function of `assignment` assigns and returns."""
        frame = self.stacks.frame(self.stacks.place(stack, assignment.depth))
        text = self._sources.get(frame.path)
        part = returned_as(text, frame, name) if text else None
        return None if part is None else self._search(stack, assignment.depth + 1, part)

    def chain(self, stack: int) -> tuple[Assignment, ...]:
        """Return all assignments of what is created at a stack, or of parts of it, in its own statement and callers."""
        if stack not in self._chains:
            assignment = self.of(stack)
            self._chains[stack] = tuple(self._and_of_callers(stack, assignment)) if assignment is not None else ()
        return self._chains[stack]

    def _and_of_callers(self, stack: int, assignment: Assignment) -> Iterator[Assignment]:
        yield assignment
        for name in assignment.names:
            outer = self.of_caller(stack, assignment, name)
            if outer is not None:
                yield from self._and_of_callers(stack, outer)

    def possible(self, stack: int) -> tuple[str, ...]:
        """Return the names that the outputs of a node created at a stack can get, unless the node is an intermediate
        step.
        """
        return tuple(dict.fromkeys(name for assignment in self.chain(stack) for name in assignment.names))

    def _search(self, stack: int, since: int = 0, part: KeyPath = ()) -> Assignment | None:
        """Return the assignment in the first frame that has one, from depth `since` on; it gets `part` of the value."""
        stacks = self.stacks
        exact, calls = True, []
        paths: list[tuple[tuple[Key | None, ...], KeyPath]] = [((), part)] if since else []
        gives: tuple[str, ...] = ()
        inner_frame = stacks.frame(stacks.place(stack, since - 1)) if since else None
        for depth, place in enumerate(stacks.outward(stacks.place(stack, since)), since):
            frame = stacks.frame(place)
            below, inner_frame = _function(inner_frame) if inner_frame is not None else "", frame
            if below == _GATHERING:
                continue  # the comprehension it runs for has already given the path
            binding = self._in(frame.path).get(range_of(frame))
            if binding is None or (not depth and range_of(frame) in self._constructions(frame.path)):
                return None
            gives = gives if depth else binding.gives
            exact = exact and binding.exact
            is_turn = bool(paths and paths[-1][1][:1] == (TURN,))
            paths.append((binding.taken, (TURN, *binding.element) if _function(frame) == _NEXT else binding.element))
            is_called = plain(below) in binding.called
            if depth == since or not (is_called or is_turn):
                calls.append((depth, binding.folds))
            if isinstance(binding.target, Each) and depth and not (is_called or is_turn or below in _OF_OBJECTS):
                return None  # such as an item of a data set, from which a batch is made
            if binding.target is not None:
                if binding.stored is not None and self._is_of_a_tensor(place, binding.stored):
                    return None  # an item of a tensor is a view, and the value is copied into it
                called = binding.called if not depth else ()
                return Assignment(
                    binding.target, tuple(paths), depth, exact, binding.lines, called, tuple(calls), gives
                )
        return None

    def _is_of_a_tensor(self, place: int, item: Range) -> bool:
        """Return whether an item that is stored or read is part of a tensor: then it is an operation of its own."""
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
    """Return the name of the function of a frame."""
    return frame.function.rpartition(".")[2]


def _fits(key: Key | None, step: KeyEntry) -> bool:
    """Return whether taking a part by this key matches this step of a path."""
    if isinstance(key, tuple) or step == TURN:
        return key == step
    place, count, name = step
    if isinstance(key, int):
        return count > 0 and place == (key if key >= 0 else key + count)
    return key is not None and key == name


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OF_THEIR_OWN = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
"""Nodes with their own scope, whose ``return`` belongs to another function."""


@dataclass(frozen=True, slots=True)
class _Function:
    """The lines of a function, and the variables that it always returns, each with its part of the return value."""

    name: str
    first: int
    last: int
    variables: dict[str, KeyPath]


def returned_as(text: str, frame: Frame, name: str) -> KeyPath | None:
    """Return which part of a function's return value a variable is; None if that differs between its returns.

    A pure function of the text, which must be valid Python.
    """
    own = frame.function.rpartition(".")[2]
    around = [one for one in _functions(text) if one.name == own and one.first <= frame.line <= one.last]
    return max(around, key=lambda one: one.first).variables.get(name) if around else None


@lru_cache(maxsize=64)
def _functions(text: str) -> tuple[_Function, ...]:
    """Return the functions of a source text that return variables."""
    return tuple(
        _Function(node.name, node.lineno, node.end_lineno or node.lineno, returned)
        for node in ast.walk(parsing.program(text))
        if isinstance(node, _FUNCTIONS) and (returned := _returned(node))
    )


def _returned(function: ast.AST) -> dict[str, KeyPath]:
    """Return the variables that are the same part in every ``return``: the text does not show which one runs."""
    paths = [dict(_unique(_variables(value, ()))) for value in _returns(function)]
    first, *others = paths or [{}]
    return {name: path for name, path in first.items() if all(other.get(name) == path for other in others)}


def _unique(named: Iterable[tuple[str, KeyPath]]) -> Iterator[tuple[str, KeyPath]]:
    parts = [*named]
    counts = Counter(name for name, _ in parts)
    return ((name, path) for name, path in parts if counts[name] == 1)


def _returns(part: ast.AST) -> Iterator[ast.expr]:
    """Yield the return values of a function except constants, without nested functions."""
    for inner in ast.iter_child_nodes(part):
        if isinstance(inner, ast.Return):
            if inner.value is not None and not isinstance(inner.value, ast.Constant):
                yield inner.value
        elif not isinstance(inner, _OF_THEIR_OWN):
            yield from _returns(inner)


def _variables(value: ast.expr, path: KeyPath) -> Iterator[tuple[str, KeyPath]]:
    """Yield the variables that an expression passes on unchanged, each with its part of the value."""
    match value:
        case ast.Name() | ast.Attribute():
            yield name_of(value), path
        case ast.IfExp(body=body, orelse=other):
            yield from _variables(body, path)
            yield from _variables(other, path)
        case _ if not isinstance(value, COMPREHENSIONS):
            for step, part in (*parts_of(value), *fields_of(value)):
                yield from _variables(part, (*path, step))


_ITS_OWN = ("<genexpr>", "<listcomp>")
"""The functions in which parts of a statement run as frames of their own."""


class Unpacking:
    """Tuple unpacking of values that are created one after another.

    A statement that runs once creates as many results as it has variables, one after another. If it created more or
    fewer, for example because a function returned its argument, the assignment is ambiguous.
    """

    def __init__(self, assignments: Assignments, calls: Calls) -> None:
        self._assignments, self._calls = assignments, calls
        self._known: dict[int, int] = {}

    def of(self, at: int, assignment: Assignment, is_result: Callable[[int, Assignment], bool]) -> int | None:
        """Return the turn, counted from 0, in which the result at a place in the thread order was created; None if
        unknown.
        """
        if at not in self._known:
            results_so_far = self._around(at, assignment)
            results = [place for place in results_so_far.places if self._is_another(place, assignment, is_result)]
            is_certain = len(results) == assignment.unpacked_count and not results_so_far.is_open
            self._known |= {place: turn if is_certain else -1 for turn, place in enumerate(results)}
        turn = self._known.setdefault(at, -1)
        return turn if turn >= 0 else None

    def _is_another(self, place: int, assignment: Assignment, is_result: Callable[[int, Assignment], bool]) -> bool:
        other = self._assignments.of(self._calls.stacks.item(place))
        if other is None or (other.goal, other.lines) != (assignment.goal, assignment.lines):
            return False
        return is_result(place, other)

    def _around(self, at: int, assignment: Assignment) -> Call:
        """Return the uninterrupted run of nodes that the same statement created around a place."""
        stacks, stack = self._assignments.stacks, self._calls.stacks.item(at)
        function = stacks.frame(stacks.place(stack, assignment.depth)).function
        depth = assignment.depth + (function.rpartition(".")[2] in _ITS_OWN)
        statement, outer = stacks.frame(stacks.place(stack, depth)), stacks.place(stack, depth + 1)
        outside = stacks.count(outer)

        def is_of_statement(other: int) -> bool:
            at = stacks.count(stacks.place(other)) - outside - 1
            if at < 0 or stacks.place(other, at + 1) != outer:
                return False
            return is_part_of(stacks.frame(stacks.place(other, at)), statement, assignment.lines)

        return self._calls.around(at, is_of_statement)


def is_part_of(frame: Frame, statement: Frame, lines: tuple[int, int]) -> bool:
    """Return whether a frame runs a part of the statement on these lines."""
    same = frame.path == statement.path and frame.function == statement.function
    return same and lines[0] <= frame.line <= lines[1]
