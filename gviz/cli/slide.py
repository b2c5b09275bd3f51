"""Whether a picture can be read on a slide, and what to ask for where it cannot."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

SLIDE = 960.0, 540.0
"""Points of a slide of 16:9."""
POINTS = 72 / 96
"""Points of a pixel."""
LEAST, TEXT = 7, 11
"""Points of text that can be read from afar, at least, and of that in a picture."""


def hint(picture: Path, scale: float) -> str:
    """What to ask for where the text of a picture, drawn so many times its size, is too small on a slide.

    Empty for one that fits, and for one of a kind that is scrolled.
    """
    measure = _MEASURES.get(picture.suffix)
    size = measure(picture.read_bytes()) if measure is not None else None
    if size is None:
        return ""
    width, height = (points / scale for points in size)
    text = TEXT * min(SLIDE[0] / width, SLIDE[1] / height)
    if text >= LEAST:
        return ""
    return (
        f"{width:.0f} x {height:.0f} points: on a slide its text would be {text:.0f} points high; "
        "--depth 1, --labels min, --direction LR, --only or --node PLACE --radius 1 show less"
    )


def _svg(data: bytes) -> tuple[float, float] | None:
    found = re.search(rb'<svg width="([\d.]+)pt" height="([\d.]+)pt"', data)
    return (float(found[1]), float(found[2])) if found else None


def _png(data: bytes) -> tuple[float, float]:
    width, height = struct.unpack(">II", data[16:24])
    return width * POINTS, height * POINTS


def _gif(data: bytes) -> tuple[float, float]:
    width, height = struct.unpack("<HH", data[6:10])
    return width * POINTS, height * POINTS


_MEASURES: dict[str, Callable[[bytes], tuple[float, float] | None]] = {".svg": _svg, ".png": _png, ".gif": _gif}
"""How large a picture is, by its suffix, in points."""
