"""Truth values and integers of the branch that are other ones than recorded: the program may have used them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gviz.trace.timeline import Timeline
from gviz.values import Array

_PLACES = frozenset({"index", "start", "end"})
"""Attributes that are places in a tensor."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A node by which the program may have chosen its way (``if s > 5``): what it was, and what it is in the branch."""

    node: int
    was: bool | int
    now: bool | int


class Decisions:
    """What single booleans and integers of the branch are, where that is not what was recorded."""

    def __init__(self) -> None:
        self._found: dict[int, Decision] = {}

    def note(self, node: int, recorded: Array | None, now: Array) -> None:
        """Remember a number that a program may decide by, if it is another one."""
        if recorded is None or recorded.size != 1 or now.size != 1 or recorded.dtype.kind not in "biu":
            return
        if now.item() != recorded.item():
            self._found[node] = Decision(node, recorded.item(), now.item())

    def source(self, attrs: Iterable[tuple[str, object]]) -> int:
        """The node out of which a place in a tensor among these attributes may have been taken; 0 if there is none."""
        places = [value for name, value in attrs if name in _PLACES and isinstance(value, int)]
        integers = {one.was: one.node for one in self._found.values() if not isinstance(one.was, bool)}
        return next((integers[place] for place in places if place in integers), 0)

    def unused(self, timeline: Timeline, nodes: Iterable[int]) -> Iterator[Decision]:
        """Those that no operation among `nodes` uses: they were computed for the program to read."""
        used = {source for node in nodes for source, _ in timeline.info(node).created.inputs}
        return (decision for node, decision in self._found.items() if node not in used)
