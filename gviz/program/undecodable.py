"""What ``python`` says of a file that is no text: ``compile`` says it in other words, and of other places."""

from __future__ import annotations

import re

_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+")
_UNKNOWN = "unknown encoding: "


def as_python_says(error: SyntaxError, data: bytes, path: str) -> SyntaxError:
    """The error of compiling `data`, as reading it as a script would have raised it."""
    if error.msg.startswith(_UNKNOWN):
        return SyntaxError(f"encoding problem: {error.msg.removeprefix(_UNKNOWN)}")
    lines = data.split(b"\n")
    declared = any(_COOKIE.match(line) for line in lines[:2])
    for number, line in enumerate(lines, 1):
        try:
            line.decode("ascii" if declared else "utf-8")
        except UnicodeDecodeError as trouble:
            if declared:
                return error
            return SyntaxError(
                f"Non-UTF-8 code starting with '\\x{line[trouble.start]:02x}' in file {path} on line {number}, "
                "but no encoding declared; see https://peps.python.org/pep-0263/ for details"
            )
        if b"\0" in line:
            before = line.partition(b"\0")[0].decode(errors="replace") + "\n"
            return SyntaxError("source code cannot contain null bytes", (path, number, 0, before))
    return error
