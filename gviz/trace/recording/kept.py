"""What of a program a recording keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from gviz import arguments
from gviz.errors import refuse_unknown
from gviz.trace.file.bounds import Bounds, bounds
from gviz.trace.file.ending import Until
from gviz.trace.recording.record import ALL, Window
from gviz.values import Keep


@dataclass(frozen=True, slots=True)
class Kept:
    """The options of a recording that are the same for every framework; GvizError for what one of them does not know.

    Arrays are kept whole up to `limit` bytes (None: 1024), larger ones as statistics; `keep` asks for less. `source`
    keeps the text of the program's files. Outside of `window` nothing is recorded. Of a long run only the `last`
    iterations (``3``) or marks (``"3 marks"``) are kept, and no more than `max_size` bytes (``"500M"``) of the newest.
    With `until` (``"nan"``, ``"inf"``) the recording ends with the first event that holds one. Only the owner may read
    the trace, unless it is to `share`: then the umask decides, as for other files.
    """

    limit: int | None = None
    keep: Keep = "whole"
    source: bool = True
    window: Window = ALL
    last: int | str | None = None
    max_size: int | str | None = None
    until: Until = ""
    share: bool = False

    def __post_init__(self) -> None:
        bounds(self.last, self.max_size)
        refuse_unknown("keep", self.keep, get_args(Keep))
        refuse_unknown("until", self.until, get_args(Until))
        if self.limit is not None:
            arguments.whole("limit", self.limit)
        arguments.flag("share", self.share)
        if not isinstance(self.window, Window):
            raise arguments.refused("window", self.window, "a gviz.trace.recording.record.Window")

    @property
    def bounds(self) -> Bounds:
        """How much of a long run that is."""
        return bounds(self.last, self.max_size)


EVERYTHING = Kept()
