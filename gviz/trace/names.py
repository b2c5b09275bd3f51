"""What the user calls a node: the variable its tensor was assigned to, read from the source that made it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gviz.events import NodeCreated
from gviz.site import Frame
from gviz.trace.bindings import Binding, Range, bindings, plain, range_of
from gviz.trace.repetition import smallest_period

_LOOK_AHEAD = 200
_LONGEST_PERIOD = 1000


@dataclass(frozen=True, slots=True)
class _Claim:
    """A statement that would call a node `name`; `depth` is the place of its frame in the node's stack."""

    name: str
    depth: int
    exact: bool
    lines: tuple[int, int]
    called: tuple[str, ...] = ()


class Names:
    """The names of a trace's nodes. A pure function of the trace: nothing is imported, nothing is run.

    `given` is the name the program gave a node, if any; `nodes` are in order of creation; `runs` are the places in it
    where a series made at one stack begins, `op` the name of an operation and `module` that of the module of a scope.
    Where the program `goes_on` after them, the last nodes are steps on the way until their statement is over.
    """

    def __init__(
        self,
        nodes: Sequence[int],
        runs: Sequence[int],
        created: Callable[[int], NodeCreated],
        given: Callable[[int], str],
        stacks: Mapping[int, tuple[Frame, ...]],
        sources: Mapping[str, str | None],
        *,
        op: Callable[[int], str] = str,
        module: Callable[[int], str] = lambda scope: "",
        goes_on: bool = False,
    ) -> None:
        self._nodes = nodes
        self._op, self._module = op, module
        self._goes_on = goes_on
        self._created = created
        self._given = given
        self._stacks = stacks
        self._sources = sources
        self._bindings: dict[str, dict[Range, Binding]] = {}
        self._claims: dict[int, _Claim | None] = {}
        self._places = {node: place for place, node in enumerate(nodes)}
        self._runs = [*runs, len(nodes)]
        self._periods: dict[int, int] = {}

    def of(self, node: int) -> str:
        """The name of a node, or nothing: its own, or ``w.grad`` for a tensor that is the gradient of another."""
        return self._own(node) or self._of_gradient(node)

    def possible(self, stack: int) -> str:
        """The name that a node made at a stack gets, if it is not a step on the way to what is assigned."""
        claim = self._claim(stack)
        return claim.name if claim is not None else ""

    def _own(self, node: int) -> str:
        return self._given(node) or self._variable(node)

    def _of_gradient(self, node: int) -> str:
        owner = dict(self._created(node).attrs).get("grad_of")
        if not isinstance(owner, int) or owner not in self._places:
            return ""
        return f"{self._own(owner) or f'#{owner}'}.grad"

    def _variable(self, node: int) -> str:
        """The variable that held the node's tensor first, or nothing."""
        made = self._created(node)
        claim = self._claim(made.stack)
        place = self._places[node]
        if claim is None or made.during[0] or not self._is_last_of_its_call(place, claim):
            return ""
        if made.kind == "parameter" and "parameter" not in claim.called:
            return ""  # what is assigned is the module that has it
        settled = claim.exact and not claim.depth  # what is returned may be taken over by what called it
        return claim.name if settled or not self._is_claimed_later(place, made.stack, claim) else ""

    def _claim(self, stack: int) -> _Claim | None:
        if stack not in self._claims:
            self._claims[stack] = self._found(self._stacks.get(stack, ()))
        return self._claims[stack]

    def _found(self, frames: tuple[Frame, ...]) -> _Claim | None:
        element, exact = None, True
        for depth, frame in enumerate(frames):
            binding = self._in(frame.path).get(range_of(frame))
            if binding is None:
                return None
            exact = exact and binding.exact
            if binding.names:
                name = _chosen(binding.names, element)
                called = binding.called if not depth else ()
                return _Claim(name, depth, exact, binding.lines, called) if name else None
            element = binding.element if binding.element is not None else element
        return None

    def _in(self, path: str) -> dict[Range, Binding]:
        if path not in self._bindings:
            text = self._sources.get(path)
            self._bindings[path] = bindings(text) if text else {}
        return self._bindings[path]

    def _stack_at(self, place: int) -> int:
        return self._created(self._nodes[place]).stack

    def _is_last_of_its_call(self, place: int, claim: _Claim) -> bool:
        """Whether the node is what its call gave, not a step on the way.

        One call of a library may make several nodes at one place of the program, and a loop makes them again and again:
        the ops of such a run repeat, in the same modules, and the last of each repetition is the result.
        """
        run = bisect_right(self._runs, place) - 1
        start, end = self._runs[run], self._runs[run + 1]
        if start not in self._periods:
            made = map(self._created, self._nodes[start : min(end, start + _LONGEST_PERIOD)])
            self._periods[start] = smallest_period([(one.op, self._module(one.scope)) for one in made], cut=True)
        period, length = self._periods[start], end - start
        if self._goes_on and end == len(self._nodes):
            if length < 2 * period:
                return plain(self._op(self._created(self._nodes[place]).op)) in claim.called
        elif length <= _LONGEST_PERIOD and length % period:
            period = length  # what looked like a loop was not one
        return (place - start + 1) % period == 0

    def _is_claimed_later(self, place: int, stack: int, claim: _Claim) -> bool:
        """Whether the same statement goes on to make a node that is the assigned value itself."""
        frames = self._stacks[stack]
        outer, statement = frames[claim.depth + 1 :], frames[claim.depth]
        for later in range(place + 1, min(place + _LOOK_AHEAD, len(self._nodes))):
            number = self._stack_at(later)
            its_frames = self._stacks.get(number, ())
            at = len(its_frames) - len(outer) - 1
            if at < 0 or its_frames[at + 1 :] != outer or not _within(its_frames[at], statement, claim.lines):
                return False
            other = self._claim(number)
            if number != stack and other is not None and other.lines == claim.lines and other.depth == at:
                return not claim.exact or other.depth < claim.depth
        return self._goes_on and not claim.exact  # the statement may not be over: its last node decides


def _chosen(names: tuple[str, ...], element: int | None) -> str:
    if element is None:
        return ", ".join(names) if all(names) else ""
    return names[element] if len(names) > 1 and element < len(names) else ""


def _within(frame: Frame, statement: Frame, lines: tuple[int, int]) -> bool:
    same = frame.path == statement.path and frame.function == statement.function
    return same and lines[0] <= frame.line <= lines[1]
