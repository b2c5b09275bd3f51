"""Whether anybody wants to see graph nodes as they are made: anomaly mode, hooks of saved tensors.

Operations test `watchers` once; with nobody there that is all it costs.
"""

from __future__ import annotations

from threading import Lock

watchers = 0
"""How many there are, in all threads."""

_lock = Lock()


def add(number: int) -> None:
    """Count so many watchers more, or fewer."""
    global watchers
    with _lock:
        watchers += number
