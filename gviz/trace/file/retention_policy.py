"""How much of a run a trace keeps: its last parts, a number of bytes, or everything before the first nan.

A part is an iteration, or what follows a mark. Three bounds combine:

* `last` parts are always kept. Without the others, the rest is dropped.
* `older` (``--keep``) selects parts before them that are kept too. Without `last`, the last 3 are kept.
* `size` limits the file. While everything fits, it keeps every part that ``thinned`` would drop. When the file is full,
  ``thinned`` drops as many parts as needed, evenly over the age of the run. If that is not enough, the oldest parts go
  first, whatever selected them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gviz.errors import GvizError

Unit = Literal["iterations", "marks"]

Until = Literal["", "nan", "inf"]
"""The nonfinite number that ends a recording, if any."""

SMALLEST_SIZE = 1 << 20
SMALLEST_WITH_OLDER = 4 << 20
LAST_WITH_OLDER = 3
"""The last parts that are kept if only older ones are selected."""
DENSITY = 8
"""``thinned`` keeps the last 8 parts, every second of the last 16, every fourth of the last 32, and so on."""

_EVERY = re.compile(r"every ([1-9][0-9]{0,8})")
_LAST = re.compile(r"([0-9]{1,9})(?: ?(iteration|mark)s?)?")
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]+)?) ?([kmgt]?)(?:i?b)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Older:
    """Which parts before the last ones are kept: the first, those around a finding, every n-th (0: none), or more of
    the newer and fewer of the older ones.
    """

    first: bool = False
    findings: bool = False
    every: int = 0
    thinned: bool = False

    def keeps(self, number: int, age: int, density: int, *, has_finding: bool) -> bool:
        """Return whether a part is kept. `number` counts from 1, `age` is the number of parts after it.

        The part with number ``2**k * odd`` is one of ``density`` until the run is ``2**k`` times longer, so a part that
        was dropped is never needed again.
        """
        if (self.first and number == 1) or (self.findings and has_finding):
            return True
        if self.every and (number - 1) % self.every == 0:
            return True
        return self.thinned and age < density * (number & -number)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Keep the last `last` parts, each begun by an iteration or a mark, and some `older` ones, in a file of at most
    `size` bytes. 0: no limit.
    """

    last: int = 0
    unit: Unit = "iterations"
    size: int = 0
    older: Older | None = None

    def __bool__(self) -> bool:
        return bool(self.last or self.size or self.older)


UNBOUNDED = Bounds()


def bounds(last: int | str | None = None, max_size: int | str | None = None, older: str | None = None) -> Bounds:
    """Parse `last` (``3``, ``"3 marks"``), `max_size` (bytes, ``"500M"``) and `older` (``"first, every 100"``)."""
    count, unit = _last(last) if last is not None else (LAST_WITH_OLDER if older is not None else 0, "iterations")
    size = _size(max_size) if max_size is not None else 0
    if older is not None and 0 < size < SMALLEST_WITH_OLDER:
        raise GvizError(f"{max_size} is too small to keep older iterations in it", hint="at least 4M", exit_code=2)
    return Bounds(count, unit, size, _older(older) if older is not None else None)


def _older(text: str) -> Older:
    first, findings, thinned, every = False, False, False, 0
    for word in str(text).split(","):
        match " ".join(word.split()):
            case "first":
                first = True
            case "findings":
                findings = True
            case "thinned":
                thinned = True
            case other if match := _EVERY.fullmatch(other):
                every = int(match[1])
            case _:
                raise GvizError(
                    f"{word.strip()[:40]!r} does not describe which older iterations to keep",
                    hint="write some of these, with commas: first, findings, every 100, thinned",
                    exit_code=2,
                )
    return Older(first, findings, every, thinned)


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
