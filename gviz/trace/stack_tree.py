"""The call stacks of a recording, as a tree of frames with the outermost frames at its root.

A recursion 2,000 deep that computes twice at each level has 4,000 stacks of 1,000 frames on average. Each differs from
another one only in its innermost frames, so the tree has 6,000 places. Comparing the callers of two stacks is then one
comparison of integers:

    place 1        2        3        4
    main:9 ──── f:4 ──── f:4 ──── f:3        stack 1 = (f:3, f:4, f:4, main:9), ends at place 4
                           └───── f:5        stack 2 = (f:5, f:4, f:4, main:9), ends at place 5

Each place also has a jump to a place much further out. With these, any outer place is found in a logarithmic number of
steps (E. Myers, "An applicative random-access stack", 1983).

A file may be untrusted. Its stacks have at most `site.DEEPEST` frames, and each is built on an existing one. So there
are no cycles, and the cost of a file grows with its length.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping

from gviz.events import StackSeen
from gviz.source.call_stack import DEEPEST, Frame

Frames = tuple[Frame, ...]
"""A call stack, innermost frame first."""

_KEPT_FRAMES = 1 << 20
"""Complete stacks are cached until they have this many frames in total."""


class Stacks(Mapping[int, Frames]):
    """Stacks by number, each a tuple of frames (innermost first) that is built on access.

    A *place* is a number that identifies a frame together with all outer frames. Place 0 is outside of all frames.
    """

    def __init__(self) -> None:
        self._frames: list[Frame] = [Frame("", "", 0, 0, -1, -1)]
        self._callers, self._jumps, self._depths = array("Q", [0]), array("Q", [0]), array("Q", [0])
        self._called: dict[int, dict[Frame, int]] = {}
        self._same: dict[Frame, Frame] = {}
        self._ends: dict[int, int] = {}
        self._ending_at: dict[int, list[int]] = {}
        self._whole: dict[int, Frames] = {}
        self._room = _KEPT_FRAMES

    def add(self, event: StackSeen) -> None:
        """Add a stack. Raises ValueError if its number is known, its shared frames do not exist, or it is too deep."""
        number, base, shared = event.stack, event.base, event.shared
        place = self._ends.get(base, 0)
        if number in self._ends:
            raise ValueError(f"call stack {number} was introduced twice")
        if shared > self._depths[place]:
            raise ValueError(f"call stack {number} shares {shared} frames with {base}, which lacks them")
        if shared + len(event.frames) > DEEPEST:
            raise ValueError(f"call stack {number} has {shared + len(event.frames)} frames")
        place = self.around(place, shared)
        for frame in reversed(event.frames):
            place = self.called(place, frame) or self._grow(place, frame)
        self._ends[number] = place
        self._ending_at.setdefault(place, []).append(number)

    def __getitem__(self, stack: int) -> Frames:
        place = self._ends[stack]
        whole = self._whole.get(place)
        return self._read(place) if whole is None else whole

    def __iter__(self) -> Iterator[int]:
        return iter(self._ends)

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, stack: object) -> bool:
        return stack in self._ends

    def place(self, stack: int, depth: int = 0) -> int:
        """Return the place of the frame at this depth of a stack, 0 for the innermost frame. Place 0 if there
        is none.
        """
        end = self._ends.get(stack, 0)
        return self.around(end, max(self._depths[end] - depth, 0)) if depth else end

    def around(self, place: int, count: int) -> int:
        """Return the place with `count` frames that is around a place or equal to it. `count` is at most the place's
        own.
        """
        depths, jumps, callers = self._depths, self._jumps, self._callers
        while depths[place] > count:
            jump = jumps[place]
            place = jump if depths[jump] >= count else callers[place]
        return place

    def count(self, place: int) -> int:
        """Return the number of frames at a place: its own and the outer ones."""
        return self._depths[place]

    def frame(self, place: int) -> Frame:
        """Return the frame at a place; a frame without a path outside of all."""
        return self._frames[place]

    def caller(self, place: int) -> int:
        """Return the place of the calling frame."""
        return self._callers[place]

    def outward(self, place: int) -> Iterator[int]:
        """Yield a place and those around it, innermost first."""
        while place:
            yield place
            place = self._callers[place]

    def called(self, place: int, frame: Frame) -> int:
        """Return the place of a frame called from a place; 0 if there is none."""
        called = self._called.get(place)
        return called.get(frame, 0) if called is not None else 0

    def ends_at(self, place: int) -> bool:
        """Return whether a stack ends at this place, not only in frames called from it."""
        return bool(place) and place in self._ending_at

    def below(self, place: int) -> list[int]:
        """Return the numbers of the stacks that go through a place or end there."""
        stacks: list[int] = []
        places = [place]
        while places:
            at = places.pop()
            stacks += self._ending_at.get(at, ())
            places += self._called.get(at, {}).values()
        return sorted(stacks)

    def innermost(self) -> Iterator[Frame]:
        """Yield the innermost frames of all stacks, without repetition."""
        return iter({self._frames[place] for place in self._ending_at if place})

    def definitions(self) -> Iterator[StackSeen]:
        """Yield the events that define these stacks, in an order in which they can be added again."""
        homes: dict[int, int] = {0: 0}
        for number, end in sorted(self._ends.items()):
            own = []
            for place in self.outward(end):
                if place in homes:
                    break
                own.append(place)
            shared = self._depths[end] - len(own)
            base = homes[self.around(end, shared)]
            yield StackSeen(number, tuple([self._frames[place] for place in own]), base, shared)
            homes |= dict.fromkeys(own, number)

    def _grow(self, caller: int, frame: Frame) -> int:
        place, depths, jump = len(self._frames), self._depths, self._jumps[caller]
        further = self._jumps[jump]
        evenly = depths[caller] - depths[jump] == depths[jump] - depths[further]
        self._called.setdefault(caller, {})[frame] = place
        self._frames.append(self._same.setdefault(frame, frame))
        self._callers.append(caller)
        self._jumps.append(further if evenly else caller)
        depths.append(depths[caller] + 1)
        return place

    def _read(self, end: int) -> Frames:
        whole = tuple([self._frames[place] for place in self.outward(end)])
        self._room -= len(whole)
        if self._room < 0:
            self._whole.clear()
            self._room = _KEPT_FRAMES - len(whole)
        self._whole[end] = whole
        return whole
