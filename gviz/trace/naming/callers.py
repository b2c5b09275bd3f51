"""What was called below each caller: the frames of all stacks as a tree, with the outermost ones at its root."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from gviz.site import Frame
from gviz.trace.log import EventLog

Frames = tuple[Frame, ...]
"""A call stack, innermost frame first."""


class Callers:
    """A tree that takes in new stacks as they come. A caller is a place in it: a frame, and all frames around that."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._places: dict[tuple[int, Frame], int] = {}
        self._ways: dict[int, list[int]] = {}
        self._below: list[list[int]] = [[]]

    def of(self, stack: int, depth: int) -> int:
        """The caller that a stack has at a depth, 0 for its innermost frame."""
        return self._known_ways()[stack][depth]

    def below(self, caller: int) -> Sequence[int]:
        """The stacks of what a caller made, itself or by what it called."""
        return self._below[caller]

    def around(self, stack: int, depth: int) -> Frames:
        """The frames of a stack from that depth on: those of the caller."""
        return self._log.stacks[stack][depth:]

    def _known_ways(self) -> Mapping[int, Sequence[int]]:
        stacks, ways = self._log.stacks, self._ways
        if len(ways) < len(stacks):
            for number, frames in islice(stacks.items(), len(ways), None):
                ways[number] = self._way(number, frames)
        return ways

    def _way(self, number: int, frames: Frames) -> list[int]:
        """The places of the frames, innermost first, each of which has the stack below it from now on."""
        place, way = 0, []
        for frame in reversed(frames):
            place = self._places.setdefault((place, frame), len(self._below))
            if place == len(self._below):
                self._below.append([])
            self._below[place].append(number)
            way.append(place)
        return way[::-1]
