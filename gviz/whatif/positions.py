"""Integers of the branch that are other ones than recorded: the program may have indexed with them."""

from __future__ import annotations

from collections.abc import Iterable

from gviz.values import Array

_PLACES = frozenset({"index", "start", "end"})
"""Attributes that are places in a tensor."""


class Positions:
    """Which recorded integers are other ones in the branch, by the node that made each."""

    def __init__(self) -> None:
        self._moved: dict[int, int] = {}

    def note(self, node: int, recorded: Array | None, now: Array) -> None:
        """Remember a single integer that is not what it was."""
        if recorded is None or recorded.size != 1 or now.size != 1 or recorded.dtype.kind not in "iu":
            return
        if now.item() != recorded.item():
            self._moved[recorded.item()] = node

    def source(self, attrs: Iterable[tuple[str, object]]) -> int:
        """The node out of which a place among these attributes may have been taken; 0 if there is none."""
        places = [value for name, value in attrs if name in _PLACES and isinstance(value, int)]
        return next((self._moved[place] for place in places if place in self._moved), 0)
