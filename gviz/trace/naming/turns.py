"""Which of several variables takes a value that is made in turns: ``q, k, v = (f(x) for x in xs)``."""

from __future__ import annotations

from collections.abc import Callable

from gviz.site import Frame
from gviz.trace.naming.assignments import Claim, Claims
from gviz.trace.naming.calls import Call, Calls

_ITS_OWN = ("<genexpr>", "<listcomp>")
"""The functions in which parts of a statement run as frames of their own."""


class Turns:
    """The turns of a recording's statements that take apart what is made in turns.

    A statement that runs once makes as many results as it has variables, one after another: where it has made more or
    fewer, as where a turn gave back what it was given, nothing tells which is whose.
    """

    def __init__(self, claims: Claims, calls: Calls) -> None:
        self._claims, self._calls = claims, calls
        self._known: dict[int, int] = {}

    def of(self, at: int, claim: Claim, is_result: Callable[[int, Claim], bool]) -> int | None:
        """In which turn the result at a place in the order of threads was made, from 0; None where that is not told."""
        if at not in self._known:
            made = self._around(at, claim)
            results = [place for place in made.places if self._is_another(place, claim, is_result)]
            is_told = len(results) == claim.turns and not made.is_open
            self._known |= {place: turn if is_told else -1 for turn, place in enumerate(results)}
        turn = self._known.setdefault(at, -1)
        return turn if turn >= 0 else None

    def _is_another(self, place: int, claim: Claim, is_result: Callable[[int, Claim], bool]) -> bool:
        other = self._claims.of(self._calls.stacks.item(place))
        if other is None or (other.goal, other.lines) != (claim.goal, claim.lines):
            return False
        return is_result(place, other)

    def _around(self, at: int, claim: Claim) -> Call:
        """What was made without a break by the statement that made what is at a place."""
        stacks, stack = self._claims.stacks, self._calls.stacks.item(at)
        function = stacks.frame(stacks.place(stack, claim.depth)).function
        depth = claim.depth + (function.rpartition(".")[2] in _ITS_OWN)
        statement, outer = stacks.frame(stacks.place(stack, depth)), stacks.place(stack, depth + 1)
        outside = stacks.count(outer)

        def is_within(other: int) -> bool:
            at = stacks.count(stacks.place(other)) - outside - 1
            if at < 0 or stacks.place(other, at + 1) != outer:
                return False
            return within(stacks.frame(stacks.place(other, at)), statement, claim.lines)

        return self._calls.around(at, is_within)


def within(frame: Frame, statement: Frame, lines: tuple[int, int]) -> bool:
    """Whether a frame runs a part of the statement that stands on these lines."""
    same = frame.path == statement.path and frame.function == statement.function
    return same and lines[0] <= frame.line <= lines[1]
