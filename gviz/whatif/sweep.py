"""One number changed many times: ``x = -3..3``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite

from gviz.errors import GvizError
from gviz.plain_text import clipped

_NUMBER = r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"(?P<what>[^=]+=)\s*(?P<low>{_NUMBER}?)\s*\.\.\s*(?P<high>{_NUMBER})\s*")


def swept(text: str, points: int) -> Iterator[tuple[float, str]]:
    """Each value of a range from end to end, and the change to it as text; nothing for a text that names no range.

    GvizError for a range without an extent, or with one that is not finite, and for fewer than its two ends.
    """
    match = _RANGE.fullmatch(text.replace("..", " .. "))
    if match is None:
        return
    if points < 2:
        raise GvizError(f"a range has two ends: {points} points do not show it", exit_code=2)
    low, high = float(match["low"]), float(match["high"])
    if not low < high or not isfinite(high - low):
        raise GvizError(f"{clipped(text, 40)} has no extent that can be counted", hint='write "x = -3..3"', exit_code=2)
    for point in range(points):
        x = low + (high - low) * point / (points - 1)
        yield x, f"{match['what']} {x!r}"
