"""The base of all events: counts, and outputs of nodes."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

Attr = Any
"""A non-tensor argument: None, bool, int, float, str, or tuples of those (lists after reading them from a file)."""

COUNTS = 1 << 32
"""All counts stay below this."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=COUNTS)]
"""A count, or the number of something counted. Events read from a file are checked against its bounds."""

Edge = tuple[Count, Count]
"""``(node, output_nr)``: one output of one node."""


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base class of all events; never instantiated."""
