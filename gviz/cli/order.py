"""What the recording process is told to do; goes over as one command line argument."""

from __future__ import annotations

from typing import Literal

import msgspec

Engine = Literal["auto", "builtin", "torch"]


class Order(msgspec.Struct, frozen=True):
    """Where the trace goes, which engine ``import torch`` means, whether a module is run, what is kept of it."""

    trace: str
    engine: Engine = "auto"
    as_module: bool = False
    keep_source: bool = True
    limit: int = 0

    def text(self) -> str:
        """The order as one argument."""
        return msgspec.json.encode(self).decode()


def parse(text: str) -> Order:
    """An order from its argument."""
    return msgspec.json.decode(text, type=Order)
