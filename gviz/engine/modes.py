"""Whether autograd records, per thread (``no_grad``, ``inference_mode``), and the backward step of each thread."""

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
"""The number of recording threads, plus one once any has used inference mode.

At 0, tensors are made without a check.
"""
_has_inferred = False


class ThreadState(threading.local):
    """The engine's state for one thread.

    `run_quietly` calls a function of arrays without NumPy's warnings of 0/0 and overflow, which PyTorch does not have.
    It is twenty times as cheap as ``np.errstate``, but raises an error (`is_entered`) if it is already running, for
    example in a signal handler.

    `born` is called with every new tensor. `replayed_from` is the call stack of an operation that is run again from a
    static graph. While `is_building` a static graph, operations have no values. `scopes` are the current module calls,
    outermost first, and `modules` the modules called, with their paths. `running_step` is the running backward step, as
    (pass, node).
    """

    grad_enabled: bool = True
    inference: bool = False
    is_building: bool = False
    replayed_from: tuple[int, ...] | None = None
    born: Callable[[Any], None] | None = None
    running_step: tuple[int, int] = (0, 0)

    def __init__(self) -> None:
        self.scopes: list[int] = []
        self.modules: list[tuple[object, str]] = []
        with np.errstate(all="ignore"):
            self.run_quietly = copy_context().run

    def quietly(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function as `run_quietly` does, even if that is already running."""
        try:
            return self.run_quietly(function, *args)
        except RuntimeError as error:
            if not is_entered(error):
                raise
        with np.errstate(all="ignore"):
            return function(*args)


def is_entered(error: RuntimeError) -> bool:
    """Whether `ThreadState.run_quietly` raised this because it is already running; the function was not called then."""
    return str(error).startswith("cannot enter context")


thread = ThreadState()


def watch_new(born: Callable[[Any], None] | None, change: int) -> None:
    """Calls `born` with every tensor that this thread makes. `change` is added to the number of recording threads."""
    global marks_new
    thread.born = born
    marks_new += change


def _infer() -> None:
    global marks_new, _has_inferred
    _has_inferred = True
    marks_new += 1


def is_grad_enabled() -> bool:
    """Whether autograd records operations in this thread."""
    return thread.grad_enabled


def is_inference_mode_enabled() -> bool:
    """Whether new tensors in this thread are inference tensors."""
    return thread.inference


class _GradMode:
    """A grad mode as a context manager and decorator. For generator functions, the mode is kept between yields."""

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
    """Disables recording in the block; results do not require grad."""

    _enabled = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Supports use without parentheses: ``@no_grad``."""
        return super().__new__(cls) if function is None else cls()(function)


class enable_grad(_GradMode):
    """Enables recording in the block, inside ``no_grad``."""

    _enabled = True

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Supports use without parentheses: ``@enable_grad``."""
        return super().__new__(cls) if function is None else cls()(function)


class inference_mode(_GradMode):
    """Like `no_grad`, and recorded operations can never save tensors made in the block; ``mode=False`` ends it."""

    def __new__(cls, mode: Callable[..., Any] | bool = True) -> Any:
        """Supports use without parentheses: ``@inference_mode``."""
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
    """Turns recording on or off: permanently as a function, within the block as a context manager."""

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
