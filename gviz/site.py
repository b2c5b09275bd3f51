"""Where in the user's program something happened: whole call stacks, caught cheaply, read exactly.

Catching must cost well under a microsecond, so it only walks frames and keeps ``(code object, instruction offset)``
pairs (`f_lineno` is linear in the length of a function, `f_lasti` is not). Reading turns a pair into line *and
column*, through the position table every code object carries (PEP 657).
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

import msgspec

StackKey = tuple[CodeType | int, ...]
"""``(code, offset, code, offset, ...)``, innermost frame first; hashable, compares by identity of the code."""

_PACKAGE = str(Path(__file__).parent) + "/"
_SAMPLES = _PACKAGE + "samples/"  # the lessons travel inside the package, and are users' programs all the same
_hidden: dict[str, bool] = {}
_hidden_prefixes: list[str] = [_PACKAGE, "<frozen "]


class Frame(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One frame of a user's call stack: which expression of which file was running.

    Lines count from 1. Columns count UTF-8 bytes from 0, as CPython's position table does; -1 where it does not know.
    """

    path: str
    function: str
    line: int
    end_line: int
    column: int
    end_column: int


def hide(prefix: str) -> None:
    """Leave out frames of files whose path starts with `prefix` (a framework's own code)."""
    _hidden_prefixes.append(prefix)
    _hidden.clear()


def is_hidden(path: str) -> bool:
    """Whether frames of this file belong to gviz or a framework, not to the user's program."""
    known = _hidden.get(path)
    if known is None:
        known = any(path.startswith(p) for p in _hidden_prefixes) and not path.startswith(_SAMPLES)
        _hidden[path] = known
    return known


def stack(depth: int = 1) -> StackKey:
    """The user's call stack as seen from `depth` frames above the caller, innermost first."""
    frame: FrameType | None = sys._getframe(depth)
    key: list[CodeType | int] = []
    hidden = _hidden
    while frame is not None:
        code = frame.f_code
        skip = hidden.get(code.co_filename)
        if skip is None:
            skip = is_hidden(code.co_filename)
        if not skip:
            key.append(code)
            key.append(frame.f_lasti)
        frame = frame.f_back
    return tuple(key)


def frames(key: StackKey) -> tuple[Frame, ...]:
    """A caught stack, resolved to lines and columns, innermost first."""
    return tuple(
        _frame(code, offset)
        for code, offset in zip(key[::2], key[1::2], strict=True)
        if isinstance(code, CodeType) and isinstance(offset, int)
    )


def _frame(code: CodeType, offset: int) -> Frame:
    line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None))
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
