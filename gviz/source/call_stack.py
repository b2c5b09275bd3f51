"""The call stack of the user's program: cheap to capture, and resolved to exact lines and columns later.

A capture must cost well under a microsecond. So it only walks the frames and keeps pairs of a code object and an
instruction offset, `f_lasti`. (`f_lineno` would take longer the longer the function is.) A code object is kept as its
`id`, because its hash covers all its contents. Resolving turns a pair into line *and column*, with the position table
that every code object has (PEP 657).
"""

from __future__ import annotations

import dis
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate, chain, islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

import msgspec

F = TypeVar("F", bound=Callable[..., Any])
StackKey = tuple[int, ...]
"""``(id of code, offset, id of code, offset, ...)``, innermost frame first."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_PACKAGE = str(Path(__file__).parents[1]) + "/"
# the function by which PyTorch offers a call of a function written in Python to a listener, before it runs the function
_HANDS_ON = "handle_torch_function"
_SAMPLES = _PACKAGE + "samples/"  # the lessons are inside the package but are users' programs
_LEAVING = frozenset({"CALL", "WITH_EXCEPT_START"})
_HEADS = frozenset({"GET_ITER", "FOR_ITER", "BEFORE_WITH"}) | _LEAVING
"""Instructions in the head of a statement that may have a body. `_LEAVING` end a ``with`` block, or call a function."""
_ENTERS = dis.opmap.get("BEFORE_WITH", -1)
DEEPEST = 1 << 14
"""The most frames of a stack that are kept, the innermost ones: a deeper stack is a recursion."""
_LONGEST_NAME = 4096  # characters of a path or function name that are sent
_MOST_LETTERS = 100_000  # of all frames together
_codes: dict[int, CodeType] = {}  # every code object seen so far, kept alive so that its id is not reused
_resolved: dict[tuple[int, int], Frame] = {}
_hidden: dict[int, bool] = {}
_forwarding: set[CodeType] = set()
_hidden_prefixes: list[str] = [_PACKAGE, "<frozen "]
_recorders: tuple[str, ...] = ()


class Frame(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One frame of a user's call stack: which expression of which file was running.

    Lines count from 1. Columns count UTF-8 bytes from 0, as in CPython's position table; -1 if unknown.
    """

    path: str
    function: str
    line: int
    end_line: int
    column: int
    end_column: int


def source_lines(text: str) -> list[str]:
    """Return the lines of a program's text as Python counts them: a form feed, for example, does not end a line."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def hide(prefix: str) -> None:
    """Hide frames of files whose path starts with `prefix` (a framework's own code)."""
    _hidden_prefixes.append(prefix)
    is_hidden.cache_clear()
    _hidden.clear()  # last: another thread may classify by the old prefixes until here


def add_recorder(prefix: str) -> None:
    """Treat frames of files whose path starts with `prefix` as frames of a recorder."""
    global _recorders
    _recorders = (*_recorders, prefix)


def of_listening(codes: Sequence[CodeType]) -> set[int]:
    """Return the indices of those frames that exist only because a recording is active; `codes` begin at the outermost.

    These are the recorder's own frames, and the first of two frames of a framework function: the function offers the
    call to the recorder, which calls the function again.
    """
    ours = {place for place, code in enumerate(codes) if code.co_filename.startswith(_recorders)}
    places = set(ours)
    for place in ours:
        if place > 0 and codes[place - 1].co_name == _HANDS_ON:
            places.add(place - 1)
            called = next((code for code in codes[place:] if not code.co_filename.startswith(_recorders)), None)
            if place > 1 and codes[place - 2] is called:
                places.add(place - 2)
    return places


@cache
def is_hidden(path: str) -> bool:
    """Return whether frames of this file belong to gviz or a framework, not to the user's program."""
    return any(path.startswith(p) for p in _hidden_prefixes) and not path.startswith(_SAMPLES)


def stack(start: FrameType | None = None) -> StackKey:
    """Return the user's call stack as seen from the caller, or from another frame of its stack, innermost first."""
    frame: FrameType | None = start or sys._getframe(1)
    key: list[int] = []
    hidden = _hidden
    while frame is not None:
        code = frame.f_code
        number = id(code)
        skip = hidden.get(number)
        if skip is None:
            skip = _classify(code)
        if not skip:
            key.append(number)
            key.append(frame.f_lasti)
        frame = frame.f_back
    return tuple(key)


def trail(start: FrameType | None = None) -> StackKey:
    """Return the call stack including hidden frames, in 60% of the time; the same place always gives the same trail.

    It begins at the caller, or at another frame of its stack.

    Compare it only with trails whose `stack` was captured too: otherwise the ids of their code objects may be reused.
    """
    frame: FrameType | None = start or sys._getframe(1)
    key: list[int] = []
    while frame is not None:
        key.append(id(frame.f_code))
        key.append(frame.f_lasti)
        frame = frame.f_back
    return tuple(key)


def forwards(function: F) -> F:
    """Mark a function that only passes a call of the program on and returns its result."""
    _forwarding.add(function.__code__)
    return function


def called_by_the_program(folder: str, forwarding: tuple[str, ...] = (), called: str = "") -> bool:
    """Return whether the program itself made the current call, and not another function of a framework in `folder`.

    It did if all frames of the framework in between belong to functions marked by `forwards`. PyTorch's functions
    cannot be marked: they are recognized by their files (`forwarding`) or by one name (`called`).
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_hidden((code := frame.f_code).co_filename):
        if code.co_filename.startswith(folder) and not (
            code in _forwarding or code.co_filename.startswith(forwarding) or code.co_name == called
        ):
            return False
        frame = frame.f_back
    return frame is not None


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line of the user's program, skipping frames of gviz and frameworks."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and is_hidden(path := frame.f_code.co_filename):
        frame = frame.f_back
        level += not ("importlib" in path and "_bootstrap" in path)  # `warnings` does not count such frames either
    warnings.warn(text, category, stacklevel=level)


def stack_of(places: Iterable[tuple[CodeType, int]]) -> StackKey:
    """Return the stack of frames captured elsewhere, innermost first, given as code objects and offsets."""
    return tuple(chain.from_iterable((id(code), offset) for code, offset in places if not _classify(code)))


def codes(key: StackKey) -> list[CodeType]:
    """Return the code objects of a stack, innermost frame first."""
    return [_codes[number] for number in key[::2]]


def frames(key: StackKey) -> tuple[Frame, ...]:
    """Resolve a captured stack to lines and columns, innermost first."""
    return tuple([_resolved.get(place) or _resolve(*place) for place in zip(key[::2], key[1::2], strict=True)])


def user_frames(most: int = 200) -> tuple[Frame, ...]:
    """Return the current call stack of the user's program, innermost first, in a form that can be sent.

    At most `most` frames, and fewer if their names are extremely long.
    """
    recent = [*map(_in_letters, frames(stack()[: 2 * most]))]
    lengths = accumulate(len(frame.path) + len(frame.function) for frame in recent)
    return tuple(frame for frame, letters in zip(recent, lengths, strict=True) if letters <= _MOST_LETTERS)


def user_line() -> tuple[str, int]:
    """Return path and number of the innermost running line of the user's program, ``("", 0)`` if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_hidden(frame.f_code.co_filename):
        frame = frame.f_back
    return ("", 0) if frame is None else (_letters(frame.f_code.co_filename), frame.f_lineno)


def _letters(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()[:_LONGEST_NAME]


def _in_letters(frame: Frame) -> Frame:
    """Return a frame that can be sent: a path may contain bytes that are not valid text."""
    return msgspec.structs.replace(frame, path=_letters(frame.path), function=_letters(frame.function))


def _classify(code: CodeType) -> bool:
    """Remember a code object. Returns whether its frames are hidden."""
    _codes[id(code)] = code
    _hidden[id(code)] = hidden = is_hidden(code.co_filename)
    return hidden


def _resolve(number: int, offset: int) -> Frame:
    """Return the frame of a code object at an offset, and cache it: a recursion repeats it thousands of times."""
    frame = _resolved[number, offset] = _frame(_codes[number], offset)
    return frame


def _frame(code: CodeType, offset: int) -> Frame:
    line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None))
    if line != end_line and dis.opname[code.co_code[offset]] in _HEADS:
        line, end_line, column, end_column = _head(code, offset) or (line, end_line, column, end_column)
    if line is None:
        return Frame(code.co_filename, code.co_qualname, code.co_firstlineno, code.co_firstlineno, -1, -1)
    return Frame(
        code.co_filename,
        code.co_qualname,
        line,
        end_line if end_line is not None else line,
        column if column is not None else -1,
        end_column if end_column is not None else -1,
    )


def _head(code: CodeType, offset: int) -> dis.Positions | None:
    """Return the position of the expression that a ``for`` iterates over or a ``with`` enters, without the body.

    Up to 3.12, CPython reports the whole statement. None if the instruction before does not create the value.
    """
    opname = dis.opname[code.co_code[offset]]
    if opname in _LEAVING and _ENTERS not in code.co_code[::2]:
        return None
    before = [one for one in dis.get_instructions(code) if one.offset < offset and one.opname != "EXTENDED_ARG"]
    if opname in _LEAVING:
        whole = next(islice(code.co_positions(), offset // 2, None))
        entering = (at for at, one in enumerate(before) if one.opname == "BEFORE_WITH" and one.positions == whole)
        return before[at - 1].positions if (at := next(entering, 0)) else None
    if opname == "FOR_ITER" and (not before or before.pop().opname != "GET_ITER"):
        return None
    return before[-1].positions if before else None
