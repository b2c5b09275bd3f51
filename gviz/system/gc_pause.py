"""Work without a search for garbage: where much is made, and no cycle, that search takes up to a third of the time."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = 100
"""How many searches of what is newer come between two of everything, instead of ten, where nobody rests."""

_RESTS = 0.1
"""So many seconds of CPU time between two looks are little."""


@contextmanager
def uncollected(*, lasting: bool = False) -> Iterator[None]:
    """While this is entered nobody searches for garbage.

    What is made is `lasting` if it is there to stay, as modules are: afterwards it is searched as seldom as can be.
    """
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()
        if lasting and not gc.get_freeze_count():  # else the program has set something aside that is to stay there
            gc.freeze()
            gc.unfreeze()  # into the oldest generation


class Rest:
    """Searches for garbage while a person reads: a search of everything that is there takes longer than a repaint.

    Call `look` about every second. While little is done a search is made, and the first one sets aside, until `over`,
    what it leaves: all that an application is made of.
    """

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        self._may_set_aside = not gc.get_freeze_count()
        self._used = time.process_time()
        gc.set_threshold(*self._thresholds[:2], _SELDOM)

    def look(self) -> None:
        """Search if the program has rested since the last look, and made something before."""
        used = time.process_time()
        if used - self._used < _RESTS and gc.get_count()[2]:
            gc.collect()
            if self._may_set_aside and not gc.get_freeze_count():
                gc.freeze()
            used = time.process_time()
        self._used = used

    def over(self) -> None:
        """Search as before."""
        gc.set_threshold(*self._thresholds)
        if self._may_set_aside:
            gc.unfreeze()
