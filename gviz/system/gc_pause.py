"""When the cyclic garbage collector runs: not during bulk allocation, and seldom in full while a program is recorded.

There it takes up to a third of the time.
"""

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


_TIMES = 100
"""How many times as many collections of younger objects come before a full collection while a program is recorded."""


@contextmanager
def seldom_in_full() -> Iterator[None]:
    """Make full collections rarer in the block, in which a recording makes far more objects than the program.

    They come after a number of younger collections, and a recording of 200 steps of a recurrent net leads to a full
    one every four steps, of 300,000 objects of PyTorch's modules: a quarter of the time. Without the recording there
    is none. A program that sets the thresholds itself keeps what it has set. A block within another changes nothing.
    """
    global _seldom
    if _seldom:
        yield
        return
    before = gc.get_threshold()
    ours = (*before[:2], before[2] * _TIMES)
    gc.set_threshold(*ours)
    _seldom = True
    try:
        yield
    finally:
        _seldom = False
        if gc.get_threshold() == ours:
            gc.set_threshold(*before)


_seldom = False


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
