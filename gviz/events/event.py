"""The base of all events: counts, edges, and what an event can change."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

Attr = Any
"""A non-tensor argument: None, bool, int, float, str, or tuples of those (lists after reading them from a file)."""

COUNTS = 1 << 32
"""All counts stay below this."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=COUNTS)]
"""A count, or the number of something counted. Events read from a file are checked against its bounds."""

Edge = tuple[Count, Count]
"""``(node, output_nr)``: one output of one node."""

Change = Literal["life", "value", "requires_grad", "grad", "incoming", "progress", "saved"]
"""What an event can change about nodes: their existence, value, ``requires_grad``, ``.grad``, incoming gradient,
progress in a pass, or saved tensors.
"""


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base class of all events; never instantiated."""

    changes: ClassVar[tuple[Change, ...]] = ()
