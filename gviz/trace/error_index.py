"""The errors in a recording: failures of the program, errors it caught, and the first nan or infinity."""

from __future__ import annotations

from collections.abc import Iterator

from gviz import events as e
from gviz.system.cooperative_work import WorkProgress
from gviz.trace.codec import KIND_NUMBERS
from gviz.trace.event_log import EventLog, birth, expect
from gviz.trace.graph_state import Bad
from gviz.trace.index.reference_checks import References
from gviz.trace.index.search_index import Index
from gviz.trace.nan_and_inf import FirstBad, first_bad, first_nonfinite, first_place, masked_share

_DEEPEST = 100
"""The search follows infinities through at most this many operations, back to where they were written."""
_PART = 8192
"""The number of events whose values one step of the search checks."""


class ErrorIndex:
    """Finds the errors in a log that may grow. Checks each value once."""

    def __init__(self, log: EventLog, index: Index, events: References) -> None:
        self._log = log
        self._index = index
        self._events = events
        self._searched = 0 if index.first_bad is None else index.count  # the search for a nan has reached this event
        self._first_bad = index.first_bad or 0
        self._bad = FirstBad()
        self._masked: dict[int, float] = {}
        self._firsts: dict[Bad, tuple[int, int]] = {}  # the first event with one, and how far the search went

    def failures(self) -> tuple[int, ...]:
        """Return the events that report a failure of the program."""
        return tuple(self._index.lists["kind"].of_key(KIND_NUMBERS[e.Failed]).tolist())

    def errors(self) -> tuple[int, ...]:
        """Return the events that report an error: `failures`, and the ends of passes whose error the program caught."""
        failures, failed_passes = self.failures(), self._index.tables.failed_passes.seq.tolist()
        self._log.prefetch([*failed_passes, *failures])
        ended = [(seq, expect(self._events, seq, e.BackwardFinished).error) for seq in failed_passes]
        uncaught = set()
        for failure in failures:
            message = expect(self._events, failure, e.Failed).message
            uncaught.add(max((seq for seq, error in ended if seq < failure and error == message), default=0))
        return tuple(sorted([*(seq for seq, _ in ended if seq not in uncaught), *failures]))

    def first_bad(self) -> int:
        """Return the first event with a nan or an infinity that the program did not write on purpose, or 0.

        The first call checks all values.
        """
        for _ in self.looking_for_bad():
            pass
        return self._first_bad

    def looking_for_bad(self) -> Iterator[WorkProgress]:
        """Check the values that were not checked yet, in parts. Afterwards `first_bad` returns at once."""
        while not self._first_bad and self._searched < self._index.count:
            yield WorkProgress("looking for nan and inf: event", self._searched, self._index.count)
            end = min(self._searched + _PART, self._index.count)
            self._first_bad = first_bad(self._log, self._searched + 1, end + 1, self._bad)
            self._searched = end

    def is_masked(self, node: int) -> bool:
        """Return whether the program wrote the infinities of a new node on purpose, for example into a mask."""
        return self._masked_share(node, _DEEPEST) > 0

    def _masked_share(self, node: int, left: int) -> float:
        if node not in self._masked:
            born = self._index.lists["created"].last(node, self._index.count)
            if not born or not left:
                return 0.0
            created = birth(self._events, born, node)
            self._masked[node] = masked_share(created, lambda source: self._share_of_input(source, born, left - 1))
        return self._masked[node]

    def _share_of_input(self, node: int, user_born: int, left: int) -> float:
        """Return the share of an input that an operation took at its birth: the input may have been filled in place."""
        share, born = self._masked_share(node, left), self._index.lists["created"].last(node, user_born)
        if share or not born:
            return share
        storages = {output.storage for output in birth(self._events, born, node).outputs}
        writes = [self._index.lists["written"].last(storage, user_born - 1) for storage in sorted(storages - {0})]
        writers = (expect(self._events, seq, e.StorageWritten).node for seq in writes if seq > born)
        return max((self._masked_share(writer, left) for writer in writers if writer != node), default=0.0)

    def kind_of_first_bad(self) -> Bad:
        """Return whether `first_bad` holds a nan or only infinities. There must be a `first_bad`."""
        return "nan" if first_place([self._events.event(self.first_bad())], "nan") else "inf"

    def first(self, bad: Bad) -> int:
        """Return the first event that holds a nan (or an infinity), or 0.

        Starts at `first_bad`. Without one, it may be an infinity that the program wrote on purpose.
        """
        first_bad = self.first_bad()
        first_event, searched = self._firsts.get(bad, (0, first_bad - 1 if first_bad or bad == "nan" else 0))
        if not first_event and 0 <= searched < self._index.count:
            first_event = first_nonfinite(self._log, searched + 1, self._index.count + 1, bad)
            self._firsts[bad] = first_event, self._index.count
        return first_event
