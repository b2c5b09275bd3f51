"""Puts the elements of large values into chunks of a trace file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from hashlib import blake2b

from gviz.trace.file.format import CHUNK_BYTES, HASH_BYTES
from gviz.values import INLINE_BYTES, Value, statistics


class Chunks:
    """The chunks of a file that is being written, each piece once; `used` says that a value needed some.

    `named` are the chunks of the values since it was taken last, `added` their bytes that were not in the file before.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: set[bytes] = set()
        self.used = False
        self.named: set[bytes] = set()
        self.added = 0

    def take(self) -> tuple[frozenset[bytes], int]:
        """`named` and `added`, which begin anew."""
        taken = frozenset(self.named), self.added
        self.named, self.added = set(), 0
        return taken

    def drop(self, names: Iterable[bytes]) -> None:
        """Delete chunks of which no value speaks any more."""
        for name in names:
            self._connection.execute("DELETE FROM chunk WHERE hash = ?", (name,))
            self._known.discard(name)

    def put(self, value: Value) -> Value:
        """The value, if it is large with its elements in chunks."""
        array = value.array()
        if array is None or value.data is None or len(value.data) <= INLINE_BYTES:
            return value
        self.used = True
        hashes = [self._chunk(value.data[at : at + CHUNK_BYTES]) for at in range(0, len(value.data), CHUNK_BYTES)]
        return Value(value.dtype, value.shape, None, value.stats or statistics(array), b"".join(hashes))

    def _chunk(self, piece: bytes) -> bytes:
        name = blake2b(piece, digest_size=HASH_BYTES).digest()
        if name not in self._known:
            self._connection.execute("INSERT OR IGNORE INTO chunk VALUES (?, ?)", (name, piece))
            self._known.add(name)
            self.added += len(piece)
        self.named.add(name)
        return name
