"""How much of a run a trace keeps: its last parts, a number of bytes, or everything before the first nan."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gviz.errors import GvizError

Unit = Literal["iterations", "marks"]

Until = Literal["", "nan", "inf"]
"""The nonfinite number that ends a recording, if any."""

SMALLEST_SIZE = 1 << 20
_LAST = re.compile(r"([0-9]{1,9})(?: ?(iteration|mark)s?)?")
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]+)?) ?([kmgt]?)(?:i?b)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Keep the last `last` parts, each begun by an iteration or a mark, in a file of at most `size` bytes. 0:
    no limit.
    """

    last: int = 0
    unit: Unit = "iterations"
    size: int = 0

    def __bool__(self) -> bool:
        return bool(self.last or self.size)


UNBOUNDED = Bounds()


def bounds(last: int | str | None = None, max_size: int | str | None = None) -> Bounds:
    """Parse `last` (``3``, ``"3 marks"``) and `max_size` (bytes, ``"500M"``)."""
    count, unit = _last(last) if last is not None else (0, "iterations")
    return Bounds(count, unit, _size(max_size) if max_size is not None else 0)


def _last(text: int | str) -> tuple[int, Unit]:
    match = _LAST.fullmatch(str(text).strip())
    if match is None or not int(match[1]):
        raise GvizError(
            f"{str(text)[:40]!r} does not describe what to keep",
            why="it is neither a number of iterations nor of marks",
            hint="write 3, or '3 marks'",
            exit_code=2,
        )
    return int(match[1]), "marks" if match[2] == "mark" else "iterations"


def _size(text: int | str) -> int:
    match = _SIZE.fullmatch(str(text).strip())
    if match is None:
        raise GvizError(f"{str(text)[:40]!r} is no size", hint="write a number of bytes, or 500M or 2G", exit_code=2)
    size = int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))
    if size < SMALLEST_SIZE:
        raise GvizError(f"a trace of {text} would hold next to nothing", hint="at least 1M", exit_code=2)
    return size
