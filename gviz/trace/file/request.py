"""What a thread of the program asks of the thread that writes the trace."""

from __future__ import annotations

import threading
from collections.abc import Callable

LONGEST_WAIT = 0.2


class Request:
    """Something a thread asks of the writer: to write what is there, or to end after the `last_words` of `thread`.

    Made of atoms: an exception from a signal handler leaves nothing locked that the writer or others need.
    """

    __slots__ = ("_lock", "done", "last_words", "thread")

    def __init__(self, last_words: Callable[[], None] | None = None, thread: int = 0) -> None:
        self.last_words = last_words
        self.thread = thread
        self.done = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def wait(self) -> None:
        """Wait for the writer, not for ever: a destructor that it happens to run may wait for this thread."""
        self._lock.acquire(timeout=LONGEST_WAIT)

    def finish(self) -> None:
        """Let the thread that waits go on."""
        self.done = True
        self._lock.release()
