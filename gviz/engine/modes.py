"""Whether autograd records, per thread: ``no_grad``, ``inference_mode``; and which backward step the thread is in."""

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
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])

marks_new = 0
"""How many threads record, and one more once any has inferred: at 0, making a tensor costs no look at the thread."""
_has_inferred = False


class ThreadState(threading.local):
    """What the engine knows about the running thread.

    `run_quietly` calls a function of arrays without numpy's warnings of 0/0 and overflow, which PyTorch does not have.
    It is twenty times as cheap as ``np.errstate``, but refuses (`is_entered`) where it is running already: in the
    handler of a signal that came meanwhile.

    `born` is called with every new tensor; `replayed_from` is the call stack of an operation that is run again
    from a static graph; while it `is_building` one, operations have no values. `scopes` are the module calls it is in,
    outermost first, `modules` the modules called, with their paths; `during` is the backward step it runs, as
    (pass, node).
    """

    grad_enabled: bool = True
    inference: bool = False
    is_building: bool = False
    replayed_from: tuple[int, ...] | None = None
    born: Callable[[Any], None] | None = None
    during: tuple[int, int] = (0, 0)

    def __init__(self) -> None:
        self.scopes: list[int] = []
        self.modules: list[tuple[object, str]] = []
        with np.errstate(all="ignore"):
            self.run_quietly = copy_context().run

    def quietly(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function as `run_quietly` does, also where that is running already."""
        try:
            return self.run_quietly(function, *args)
        except RuntimeError as error:
            if not is_entered(error):
                raise
        with np.errstate(all="ignore"):
            return function(*args)


def is_entered(error: RuntimeError) -> bool:
    """Whether `ThreadState.run_quietly` raised this because it is running already; it has then called nothing."""
    return str(error).startswith("cannot enter context")


thread = ThreadState()


def watch_new(born: Callable[[Any], None] | None, change: int) -> None:
    """Call `born` with every tensor that this thread makes; `change` is how many more threads record."""
    global marks_new
    thread.born = born
    marks_new += change


def _infer() -> None:
    global marks_new, _has_inferred
    _has_inferred = True
    marks_new += 1


def is_grad_enabled() -> bool:
    """Whether operations are being recorded for backward in this thread."""
    return thread.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Whether tensors made now in this thread are for inference only."""
    return thread.inference


class _GradMode:
    """A grad mode as context manager and as decorator (also of generator functions, mode kept between yields)."""

    _enabled: bool

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(thread.grad_enabled)
        thread.grad_enabled = self._enabled and not thread.inference

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


class inference_mode(_GradMode):
    """Like `no_grad`, but no recorded operation may ever save a tensor made inside; ``mode=False`` ends that."""

    def __new__(cls, mode: Callable[..., Any] | bool = True) -> Any:
        """Also usable without parentheses: ``@inference_mode``."""
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode
        self._was: list[bool] = []

    def __enter__(self) -> None:
        if self._mode and not _has_inferred:
            _infer()
        self._before.append(thread.grad_enabled)
        self._was.append(thread.inference)
        thread.grad_enabled, thread.inference = not self._mode, self._mode

    def __exit__(self, *exc: object) -> None:
        thread.grad_enabled, thread.inference = self._before.pop(), self._was.pop()

    def _fresh(self) -> inference_mode:
        fresh: inference_mode = type(self)(self._mode)
        return fresh


class set_grad_enabled(_GradMode):
    """Turn recording on or off: at once when called as a function, until the end as a context manager."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._enabled = bool(mode)
        self._at_call = thread.grad_enabled
        thread.grad_enabled = self._enabled and not thread.inference

    def __enter__(self) -> None:
        self._before.append(self._at_call)
        thread.grad_enabled = self._enabled and not thread.inference

    def __call__(self, function: F) -> F:
        thread.grad_enabled = self._at_call  # a decorator changes nothing until the function is called
        return super().__call__(function)

    def _fresh(self) -> _GradMode:
        return type(self)(self._enabled)
