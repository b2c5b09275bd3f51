"""What the user calls a node: the variable its tensor was assigned to, read from the source that made it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence, Set

import numpy as np

from gviz.events import KeyPath, NodeCreated
from gviz.returned import as_taken
from gviz.site import Frame
from gviz.trace.bindings import STORING, plain
from gviz.trace.claims import Claim, Claims
from gviz.trace.repetition import smallest_period
from gviz.trace.state import Origins

_LOOK_AHEAD = 200
_LONGEST_PERIOD = 1000
_INTO_A_VIEW = ("copy", "fill")


class Names:
    """The names of a trace's nodes, whose `places` in order of creation are those of their `origins`.

    `given` is the name the program gave a node, if any; `returned` tells of each output that is a part of what a call
    gave the way to it, and `giving_several` are the stacks of such calls; `op` is the name of an operation and `module`
    that of the module of a scope. Where the program `goes_on` after them, the last nodes are steps on the way until
    their statement is over.
    """

    def __init__(
        self,
        places: Mapping[int, int],
        origins: Origins,
        created: Callable[[int], NodeCreated],
        given: Callable[[int], str],
        returned: Callable[[int], Mapping[int, KeyPath]],
        claims: Claims,
        giving_several: Set[int],
        *,
        op: Callable[[int], str],
        module: Callable[[int], str],
        goes_on: bool,
    ) -> None:
        self._places = places
        self._origins = origins
        self._created = created
        self._given = given
        self._returned = returned
        self._claims = claims
        self._giving_several = giving_several
        self._op, self._module = op, module
        self._goes_on = goes_on
        self._runs = _runs(origins)
        self._periods: dict[int, int] = {}

    def of(self, node: int) -> str:
        """The name of a node, or nothing: its own, or ``w.grad`` for a tensor that is the gradient of another.

        One of several outputs has the names of these, or that of the variable which holds all that its call gave.
        """
        return self._own(node) or self._of_gradient(node)

    def of_outputs(self, node: int) -> tuple[str, ...]:
        """What each of a node's outputs is called, as far as it is called anything; of a node with one what it is."""
        parts = self._returned(node)
        if not parts or self._given(node):
            return (self.of(node),)
        claim = self._claims.of(self._origins.stack.item(self._places[node]))
        names = {nr: _name_of_part(claim, path) for nr, path in parts.items()} if claim is not None else {}
        return tuple(names.get(nr, "") for nr in range(max(parts) + 1))

    def _own(self, node: int) -> str:
        return self._given(node) or (self._variables(node) if self._returned(node) else self._variable(node))

    def _variables(self, node: int) -> str:
        """What the outputs are called that are parts of what a call gave."""
        claim, parts = self._claims.of(self._origins.stack.item(self._places[node])), self._returned(node)
        if claim is None:
            return ""
        holders = {claim.holder(path) for path in parts.values()}
        counts = {path[-1][1] for path in parts.values()}
        if counts == {len(parts)} and len(parts) > 1 and len(holders) == 1 and "" not in holders:
            return holders.pop()
        return ", ".join(dict.fromkeys(filter(None, self.of_outputs(node))))

    def _of_gradient(self, node: int) -> str:
        owner = self._origins.gradient_of.item(self._places[node])
        return f"{self._own(owner) or f'#{owner}'}.grad" if owner in self._places else ""

    def _variable(self, node: int) -> str:
        """The variable that held the node's tensor first, or nothing."""
        place = self._places[node]
        claim = self._claims.of(self._origins.stack.item(place))
        name = claim.name() if claim is not None else ""
        if claim is None or not name or self._origins.stack.item(place) in self._giving_several:
            return ""
        if not self._is_last_of_its_call(place, claim):
            return ""
        made = self._created(node)
        if (
            made.during[0]
            or (made.untracked and self._is_of_a_part(place, claim))
            or (made.kind == "parameter" and "parameter" not in claim.called)
        ):
            return ""  # it belongs to a pass, or what is assigned is the module that has it
        settled = claim.exact and not claim.depth  # what is returned may be taken over by what called it
        return name if settled or not self._is_claimed_later(place, claim) else ""

    def _is_of_a_part(self, place: int, claim: Claim) -> bool:
        """Whether the node is of the view ``b[0]`` that ``b[0] = v`` made to write to it, and not of ``b``."""
        return claim.called == STORING and plain(self._op(self._origins.op.item(place))) in _INTO_A_VIEW

    def _is_last_of_its_call(self, place: int, claim: Claim) -> bool:
        """Whether the node is what its call gave, not a step on the way.

        One call of a library may make several nodes at one place of the program, and a loop makes them again and again:
        the ops of such a run repeat, in the same modules, and the last of each repetition is the result.
        """
        run = bisect_right(self._runs, place) - 1
        start, end = self._runs[run], self._runs[run + 1]
        if start not in self._periods:
            self._periods[start] = self._period(slice(start, min(end, start + _LONGEST_PERIOD)))
        period, length = self._periods[start], end - start
        if self._goes_on and end == len(self._places):
            if length < 2 * period:
                return plain(self._op(self._origins.op.item(place))) in claim.called
        elif length <= _LONGEST_PERIOD and length % period:
            period = length  # what looked like a loop was not one
        return (place - start + 1) % period == 0

    def _period(self, run: slice) -> int:
        ops, modules = self._origins.op[run].tolist(), map(self._module, self._origins.scope[run].tolist())
        return smallest_period([*zip(ops, modules, strict=True)], cut=True)

    def _is_claimed_later(self, place: int, claim: Claim) -> bool:
        """Whether the same statement goes on to make a node that is the assigned value itself."""
        stack, stacks = self._origins.stack.item(place), self._claims.stacks
        frames = stacks[stack]
        outer, statement = frames[claim.depth + 1 :], frames[claim.depth]
        for number in self._origins.stack[place + 1 : place + _LOOK_AHEAD].tolist():
            its_frames = stacks.get(number, ())
            at = len(its_frames) - len(outer) - 1
            if at < 0 or its_frames[at + 1 :] != outer or not _within(its_frames[at], statement, claim.lines):
                return False
            other = self._claims.of(number)
            if number != stack and other is not None and other.lines == claim.lines and other.depth == at:
                return not claim.exact or other.depth < claim.depth
        return self._goes_on and not claim.exact  # the statement may not be over: its last node decides


def _name_of_part(claim: Claim, path: KeyPath) -> str:
    """What a part of what a call gave is called: its own variable, or ``r.values``, ``r[0]`` of one that holds it."""
    holder = claim.holder(path)
    return claim.name(path) or (f"{holder}{as_taken(path[-1:])}" if holder else "")


def _runs(origins: Origins) -> Sequence[int]:
    """The places where a series made at one stack begins, and the end."""
    stacks = origins.stack
    return [0, *(np.flatnonzero(stacks[1:] != stacks[:-1]) + 1).tolist(), len(stacks)]


def _within(frame: Frame, statement: Frame, lines: tuple[int, int]) -> bool:
    same = frame.path == statement.path and frame.function == statement.function
    return same and lines[0] <= frame.line <= lines[1]
