"""A recording that ends before the program does: with the first nan, or the first infinity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from gviz.trace.file.event_table import Said
from gviz.trace.nonfinite import FirstBad, first_bad_place

Until = Literal["", "nan", "inf"]
"""What ends a recording, if anything."""


class Ending:
    """Looks for the last event: the first with a ``nan`` or an ``inf``. `on_end` is called once, when it has come."""

    def __init__(self, word: str, on_end: Callable[[], None]) -> None:
        self._word = word
        self._looking = FirstBad(word)
        self._on_end = on_end
        self._has_come = False

    def up_to_last(self, taken: Sequence[Said], told: dict[str, str]) -> Sequence[Said]:
        """What of this still belongs to the recording, of which is `told` then what has ended it."""
        if self._has_come:
            return ()
        place = first_bad_place([event for event, _, _ in taken], self._looking)
        if not place:
            return taken
        self._has_come = True
        self._on_end()
        told["until"] = self._word
        return taken[:place]
