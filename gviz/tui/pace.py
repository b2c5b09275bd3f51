"""How fast a running program goes, what it has written last, and so whether it may wait for an answer."""

from __future__ import annotations

import time
from collections import deque

QUIET_SECONDS = 0.5
"""A program that has done and written nothing for so long may wait for somebody."""
_RATE_SECONDS = 1.0


class Pace:
    """Follows one stretch of a program from stop to stop."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()
        self._written = (0.0, b"")

    def begin(self) -> None:
        """The program runs on from a stop."""
        self._counts.clear()

    def wrote(self, data: bytes) -> None:
        """The program wrote this to its terminal."""
        self._written = time.monotonic(), data

    def rate(self, count: int) -> float:
        """How many events a second, over about the last one, for who has heard of `count` by now."""
        now = time.monotonic()
        self._counts.append((now, count))
        while len(self._counts) > 2 and now - self._counts[1][0] > _RATE_SECONDS:
            self._counts.popleft()
        since, before = self._counts[0]
        return (count - before) / (now - since) if now > since else 0.0

    @property
    def is_quiet(self) -> bool:
        """Whether it has written nothing for a while."""
        return time.monotonic() - self._written[0] > QUIET_SECONDS

    @property
    def question(self) -> str:
        """The line that it has begun and not ended."""
        return self._written[1].decode("utf-8", "replace").rpartition("\n")[2].strip()
