"""Puts something in the place of what PyTorch or Python has, and puts that back."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any


def replace(home: Any, name: str, value: Any, leaving: ExitStack) -> None:
    """Put something in the place of what a module or class holds, until the recording ends."""
    before = vars(home)[name]
    setattr(home, name, value)

    def put_back() -> None:
        if vars(home).get(name) is value:
            setattr(home, name, before)

    leaving.callback(put_back)
