"""Imports without a search for garbage: modules are there to stay, and there is none among them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """What is made while this is entered is not searched for garbage then, and afterwards as seldom as can be."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()
        if not gc.get_freeze_count():  # else the program has set something aside, and wants it to stay there
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
