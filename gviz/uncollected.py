"""Work without a search for garbage: where much is made, and no cycle, that search takes up to a third of the time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
