"""Reads exceptions without calling methods that their classes may override."""

from __future__ import annotations

import traceback
from types import CodeType, TracebackType
from typing import Any

from gviz.source import call_stack


def attributes(error: BaseException) -> dict[str, Any]:
    """Return the attributes of an exception, which can be set, too."""
    members: dict[str, Any] = BaseException.__dict__["__dict__"].__get__(error)
    return members


def traceback_of(error: BaseException) -> TracebackType | None:
    """Return the traceback of an exception."""
    traceback: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    return traceback


def message(error: BaseException) -> str:
    """Return the text of an exception, or a substitute if its ``__str__`` raises."""
    try:
        return str(error)
    except Exception as error:
        return f"its text could not be made ({type(error).__name__})"


def printed(error: BaseException) -> str:
    """Return the traceback as Python prints it, even if a ``__str__`` in it raises."""
    try:
        return "".join(traceback.format_exception(type(error), error, traceback_of(error)))
    except Exception:  # a text in it could not be created
        return "".join([*traceback.format_tb(traceback_of(error)), f"{type(error).__name__}: {message(error)}\n"])


def raised_at(trace: TracebackType | None) -> call_stack.StackKey:
    """Return the user's stack at the point where an exception was raised, innermost frame first."""
    places: list[tuple[CodeType, int]] = []
    outer = trace.tb_frame.f_back if trace is not None else None
    while trace is not None:
        places.insert(0, (trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    while outer is not None:
        places.append((outer.f_code, outer.f_lasti))
        outer = outer.f_back
    return call_stack.stack_of(places)
