"""Whether autograd records, per thread: ``no_grad``, ``enable_grad``, ``set_grad_enabled``; and where the thread is."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "enable_grad",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])


class ThreadState(threading.local):
    """What the engine knows about the running thread.

    `quietly` calls a function of arrays in which numpy says nothing of 0/0 and the like, as PyTorch says nothing. It is
    twenty times as cheap as ``np.errstate``; what it calls must not come back to it.

    `scopes` are the module calls it is in, outermost first, `modules` the modules called, with their paths; `during` is
    the backward step it runs, as (pass, node).
    """

    grad_enabled: bool = True
    during: tuple[int, int] = (0, 0)

    def __init__(self) -> None:
        self.scopes: list[int] = []
        self.modules: list[tuple[object, str]] = []
        with np.errstate(all="ignore"):
            self.quietly = copy_context().run


thread = ThreadState()


def is_grad_enabled() -> bool:
    """Whether operations are being recorded for backward in this thread."""
    return thread.grad_enabled


class _GradMode:
    """A grad mode as context manager and as decorator (also of generator functions, mode kept between yields)."""

    _enabled: bool

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(thread.grad_enabled)
        thread.grad_enabled = self._enabled

    def __exit__(self, *exc: object) -> None:
        thread.grad_enabled = self._before.pop()

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)  # type: ignore[return-value]  # a wrapper of the same signature

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]

    def _fresh(self) -> _GradMode:
        return type(self)()

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                with self._fresh():
                    item = next(generator)
                while True:
                    try:
                        sent = yield item
                    except BaseException as error:
                        with self._fresh():
                            item = generator.throw(error)
                    else:
                        with self._fresh():
                            item = generator.send(sent)
            except StopIteration as stop:
                return stop.value

        return wrapper


class no_grad(_GradMode):
    """Operations inside are not recorded; their results do not require grad."""

    _enabled = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Also usable without parentheses: ``@no_grad``."""
        return super().__new__(cls) if function is None else cls()(function)


class enable_grad(_GradMode):
    """Operations inside are recorded again, within ``no_grad``."""

    _enabled = True

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Also usable without parentheses: ``@enable_grad``."""
        return super().__new__(cls) if function is None else cls()(function)


class set_grad_enabled(_GradMode):
    """Turn recording on or off: at once when called as a function, until the end as a context manager."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._enabled = bool(mode)
        self._at_call = thread.grad_enabled
        thread.grad_enabled = self._enabled

    def __enter__(self) -> None:
        self._before.append(self._at_call)
        thread.grad_enabled = self._enabled

    def __call__(self, function: F) -> F:
        thread.grad_enabled = self._at_call  # a decorator changes nothing until the function is called
        return super().__call__(function)

    def _fresh(self) -> _GradMode:
        return type(self)(self._enabled)
