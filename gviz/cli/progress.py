"""The progress line on stderr: duration, size and speed of a recording, or progress of other work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gviz.cli import streams
from gviz.errors import GvizError
from gviz.system.cooperative_work import LongWork, finished, paced

_COUNTED_EVERY_SECONDS = 1.0
SECONDS_BETWEEN_REPORTS = 0.1

T = TypeVar("T")


def with_progress(work: LongWork[T]) -> T:
    """Return the result of a cooperative task, with a progress line while it runs."""
    if not sys.stderr.isatty():
        return finished(work)
    result = finished(paced(work, SECONDS_BETWEEN_REPORTS), lambda far: streams.show_raw(f"\r{far}\x1b[K"))
    streams.show_raw("\r\x1b[K")
    return result


class Progress:
    """A progress line of a trace that another process writes.

    Events are counted once a second, and the file is opened only for that: a reader that kept it open would keep the
    program from leaving one file.
    """

    def __init__(self, trace: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._trace, self._clock = trace, clock
        self._started = self._counted = clock()
        self._events, self._rate = 0, 0.0

    def renew(self) -> None:
        """Redraw the line."""
        from gviz.trace.file.paths import trace_size
        from gviz.values.number_text import bytes_text, count_text, seconds_text

        now = self._clock()
        if now - self._counted >= _COUNTED_EVERY_SECONDS:
            self._count(now)
        parts = [seconds_text(now - self._started), bytes_text(trace_size(self._trace))]
        parts += [f"{self._events:,} events"] if self._events else []
        parts += [f"{count_text(round(self._rate))} a second"] if self._rate else []  # none while the program waits
        streams.show_raw(f"\rrecording: {', '.join(parts)}\x1b[K")

    def clear(self) -> None:
        """Clear the line."""
        streams.show_raw("\r\x1b[K")

    def _count(self, now: float) -> None:
        from gviz.trace.file.reader import open_trace

        try:
            with open_trace(self._trace) as log:
                dropped = log.dropped
                events = len(log) - dropped.again + dropped.events
        except GvizError:  # not begun yet, or damaged by the program, which is reported at its end
            return
        self._rate = (events - self._events) / (now - self._counted)
        self._events, self._counted = events, now
