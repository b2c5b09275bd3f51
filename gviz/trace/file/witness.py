"""Notices that a program closed files that are not its own, before SQLite writes to what they have become."""

from __future__ import annotations

import os

from gviz.errors import GvizError


class Witness:
    """A file of gviz's own that is open as long as nobody else closes it."""

    def __init__(self) -> None:
        self._file = os.open(os.devnull, os.O_RDONLY)
        self._as_opened = os.fstat(self._file)

    @property
    def is_open(self) -> bool:
        """Whether it is still the file that was opened."""
        try:
            return os.path.samestat(os.fstat(self._file), self._as_opened)
        except OSError:
            return False

    def refuse_closed(self) -> None:
        """Raise GvizError if it was closed: SQLite would try for seconds, and then speak of locks."""
        if not self.is_open:
            raise GvizError("the program closed files that it had not opened, the trace among them (os.closerange?)")

    def close(self) -> None:
        """Close it."""
        os.close(self._file)
