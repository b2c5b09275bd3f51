"""Pauses the cyclic garbage collector during bulk allocation, where it takes up to a third of the time."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = 100
"""How many collections of younger objects precede a full collection, instead of ten, if there are no pauses."""

_RESTS = 0.1
"""Less CPU time than this, in seconds, between two calls of `look` counts as idle."""


@contextmanager
def uncollected(*, lasting: bool = False) -> Iterator[None]:
    """Pause the garbage collector in the block.

    With `lasting`, what is created stays, as modules do: afterwards it is in the oldest generation, collected least
    often.
    """
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()
        if lasting and not gc.get_freeze_count():  # otherwise the program has frozen objects that must stay frozen
            gc.freeze()
            gc.unfreeze()  # into the oldest generation


class Rest:
    """Runs the garbage collector while the user reads: a full collection takes longer than a repaint.

    Call `look` about every second. It collects while the program is idle. The first collection freezes what it leaves
    (the objects of the application) until `over` is called.
    """

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        self._may_freeze = not gc.get_freeze_count()
        self._used = time.process_time()
        gc.set_threshold(*self._thresholds[:2], _SELDOM)

    def look(self) -> None:
        """Collect if the program has been idle since the last call and created objects before."""
        used = time.process_time()
        if used - self._used < _RESTS and gc.get_count()[2]:
            gc.collect()
            if self._may_freeze and not gc.get_freeze_count():
                gc.freeze()
            used = time.process_time()
        self._used = used

    def over(self) -> None:
        """Restore the collector's previous settings."""
        gc.set_threshold(*self._thresholds)
        if self._may_freeze:
            gc.unfreeze()
