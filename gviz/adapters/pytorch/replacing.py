"""Puts something in the place of what PyTorch or Python has, and puts that back."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from gviz.adapters.pytorch.private import in_scripts


def replace(home: Any, name: str, value: Any, leaving: ExitStack) -> None:
    """Put something in the place of what a module or class holds, until the recording ends.

    Where that is an operation to ``torch.jit.script``, so is what takes its place.
    """
    before = vars(home)[name]
    setattr(home, name, value)
    if id(before) in in_scripts:
        in_scripts[id(value)] = in_scripts[id(before)]
        leaving.callback(in_scripts.pop, id(value), None)

    def put_back() -> None:
        if vars(home).get(name) is value:
            setattr(home, name, before)

    leaving.callback(put_back)
