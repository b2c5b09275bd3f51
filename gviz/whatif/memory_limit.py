"""How much memory what is tried may take: how large a result is, is known when it is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

_TAKEN = Path("/proc/self/statm")
ROOM = 1 << 30
"""In bytes: more than any script needs whose numbers a recording holds, and less than it hurts to fill in vain."""

_one_at_a_time = RLock()


@contextmanager
def bounded(room: int = ROOM) -> Iterator[None]:
    """Raise MemoryError for what would take more than `room` bytes beside what is taken now; on Linux alone.

    The limit is one of the process: of several threads one is bounded at a time, and the others wait.
    """
    try:
        import resource

        _TAKEN.stat()
    except (ImportError, OSError):
        yield
        return
    with _one_at_a_time:
        taken = int(_TAKEN.read_text().split()[0]) * resource.getpagesize()
        before = soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = taken + room
        resource.setrlimit(resource.RLIMIT_AS, (limit if soft == resource.RLIM_INFINITY else min(limit, soft), hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
