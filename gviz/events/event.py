"""What all events are made of: numbers that count, edges, and what an event can change."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

Attr = Any
"""A non-tensor argument: None, bool, int, float, str, or tuples of those (lists once read back from a file)."""

COUNTS = 1 << 32
"""What is counted stays below this."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=COUNTS)]
"""A number that counts something, or names what was counted; events that come from a file are held to its bounds."""

Edge = tuple[Count, Count]
"""``(node, output_nr)``: one output of one node."""

Change = Literal["life", "value", "requires_grad", "grad", "incoming", "progress", "saved"]
"""What an event can change of nodes: whether they are there, what they hold, whether they take part, their ``.grad``, a
gradient on its way, how far a pass is, their saved tensors."""


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of the vocabulary; never instantiated."""

    changes: ClassVar[tuple[Change, ...]] = ()
