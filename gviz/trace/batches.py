"""The batches of a trace file, found by the events in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from gviz.trace.batch import MOST_EVENTS, Batch
from gviz.trace.checks import LARGEST_NUMBER
from gviz.trace.connection import Connection, damaged

_KEPT_BATCHES = 80


class Batches:
    """The first `count` events of a file, batch by batch; remembers the last ones it read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._firsts: list[int] = []
        self._kept: dict[int, Batch] = {}
        self.count = 0

    def refresh(self) -> int:
        """Notice what was written meanwhile, and give the new number of events."""
        sql = "SELECT first, last FROM batch WHERE first > ?1 OR ?1 = 0 ORDER BY first"
        for first, last in self._connection.rows(sql, (self.count,)):
            if first != self.count + 1 or not isinstance(last, int) or not first <= last < first + MOST_EVENTS:
                raise damaged(self._connection.path, f"after event {self.count} some are missing")
            if last >= LARGEST_NUMBER:
                raise damaged(self._connection.path, f"it cannot hold {last} events")
            self._firsts.append(first)
            self.count = last
        return self.count

    def of(self, seq: int) -> Batch:
        """The batch that holds event `seq`."""
        return self._batch(bisect_right(self._firsts, seq) - 1)

    def between(self, start: int, stop: int) -> Iterator[Batch]:
        """The batches that hold the events ``start <= seq < stop``."""
        places = range(max(bisect_right(self._firsts, start) - 1, 0), bisect_right(self._firsts, stop - 1))
        return map(self._batch, places)

    def _batch(self, place: int) -> Batch:
        batch = self._kept.get(place)
        if batch is None:
            if len(self._kept) >= _KEPT_BATCHES:
                self._kept.clear()
            batch = self._kept[place] = self._read(place)
        return batch

    def _read(self, place: int) -> Batch:
        first = self._firsts[place]
        last = self._firsts[place + 1] - 1 if place + 1 < len(self._firsts) else self.count
        rows = self._connection.rows("SELECT events, bodies FROM batch WHERE first = ?", (first,))
        if not rows:
            raise damaged(self._connection.path, f"event {first} is missing")
        try:
            return Batch.of(first, last, *rows[0])
        except (ValueError, RecursionError) as trouble:
            raise damaged(self._connection.path, f"events {first} to {last} cannot be read: {trouble}") from trouble
