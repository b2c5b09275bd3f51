"""An exception as a trace keeps it, whatever its class makes of being looked at."""

from __future__ import annotations

import traceback
from types import CodeType, TracebackType
from typing import Any

from gviz.source import site


def attributes(error: BaseException) -> dict[str, Any]:
    """What was set on an exception, and can be."""
    found: dict[str, Any] = BaseException.__dict__["__dict__"].__get__(error)
    return found


def traceback_of(error: BaseException) -> TracebackType | None:
    """The frames that an exception went through."""
    found: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    return found


def message(error: BaseException) -> str:
    """The text of an exception, whatever its class makes of it."""
    try:
        return str(error)
    except Exception as trouble:
        return f"its text could not be made ({type(trouble).__name__})"


def printed(error: BaseException) -> str:
    """The traceback as Python prints it, whatever the classes in it make of their texts."""
    try:
        return "".join(traceback.format_exception(type(error), error, traceback_of(error)))
    except Exception:  # the text of it, or of its cause, could not be made
        return "".join([*traceback.format_tb(traceback_of(error)), f"{type(error).__name__}: {message(error)}\n"])


def raised_at(trace: TracebackType | None) -> site.StackKey:
    """The user's stack at the point where an exception was raised, innermost frame first."""
    places: list[tuple[CodeType, int]] = []
    outer = trace.tb_frame.f_back if trace is not None else None
    while trace is not None:
        places.insert(0, (trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    while outer is not None:
        places.append((outer.f_code, outer.f_lasti))
        outer = outer.f_back
    return site.stack_of(places)
