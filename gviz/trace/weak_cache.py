"""What an object keeps of its own methods, without keeping itself alive."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

P = ParamSpec("P")
R = TypeVar("R")


def weakly(method: Callable[P, R]) -> Callable[P, R]:
    """A bound method that does not hold its object; it is for that object alone, which must be there when it is called.

    Memory with a bound method in it, kept by the object itself, is a circle: only the collector would free a recording.
    """
    held = WeakMethod(method)

    def called(*arguments: P.args, **named: P.kwargs) -> R:
        method = held()
        if method is None:
            raise ReferenceError("the object of this method is gone")
        return method(*arguments, **named)

    return called
