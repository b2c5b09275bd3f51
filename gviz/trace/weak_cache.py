"""Lets an object store its own bound methods without a reference cycle."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar
from weakref import WeakMethod

P = ParamSpec("P")
R = TypeVar("R")


def weak_method(method: Callable[P, R]) -> Callable[P, R]:
    """Return a bound method that holds its object weakly. The object must be alive when it is called.

    A cache of a bound method, stored in the object itself, is a reference cycle: only the garbage collector would free
    a recording.
    """
    reference = WeakMethod(method)

    def called(*arguments: P.args, **named: P.kwargs) -> R:
        method = reference()
        if method is None:
            raise ReferenceError("the object of this method is gone")
        return method(*arguments, **named)

    return called
