"""Whether a picture can be read on a slide, and what to ask for where it cannot."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SLIDE = 960.0, 540.0
"""Points of a slide of 16:9."""
POINTS = 72 / 96
"""Points of a pixel."""
LEAST, TEXT = 7, 11
"""Points of text that can be read from afar, at least, and of that in a picture."""
GAIN = 1.0
"""Points by which an option makes text higher that is worth naming."""
SECONDS = 4.0
"""So long it is tried what helps, of a picture that took no longer itself."""

Options = Mapping[str, Any]
Draw = Callable[[Options], Path]
"""Draws the same moment as an svg of its own size, with other options."""

WAYS: tuple[tuple[str, Options], ...] = (
    ("--labels min", {"labels": "min"}),
    ("--depth 1", {"depth": 1}),
    ("--tensors line", {"tensors": "line"}),
    ("--direction LR", {"direction": "LR"}),
    ("--direction TB", {"direction": "TB"}),
    ("--no-legend", {"legend": False}),
)
"""What may make a picture smaller, as it is typed; what shows less of it first."""
USUAL: Options = {"labels": "short", "depth": None, "tensors": None, "direction": "auto", "legend": True}
"""What an option is that was not given."""
PART = "--only or --node PLACE draws a part"


def hint(picture: Path, asked: Options, draw: Draw | None) -> str:
    """What helps where the text of a picture, drawn as `asked`, is too small on a slide: found by drawing it anew.

    Empty for one that fits, and for one of a kind that is scrolled. Without a `draw`, which takes too long for some,
    what was not asked for is named alone.
    """
    size = _size(picture, asked["scale"] or 1.0)
    if size is None or _height(size) >= LEAST:
        return ""
    too_small = f"{size[0]:.0f} x {size[1]:.0f} points: on a slide its text would be {_height(size):.0f} points high"
    open_ways = [(option, change) for option, change in WAYS if all(asked[name] == USUAL[name] for name in change)]
    if draw is None:
        less = (option for option, change in WAYS[:2] if (option, change) in open_ways)
        return f"{too_small}; {', '.join([*less, PART])}"
    found = _helping(open_ways, _height(size), draw)
    higher = ", ".join(f"{option} ({high:.0f})" for option, high in found)
    return "; ".join([too_small, *[f"higher with {higher}"] * bool(found), PART])


def _helping(ways: list[tuple[str, Options]], high: float, draw: Draw) -> list[tuple[str, float]]:
    """The options that make the text higher than it is, with how high, the best first; before it the best two together
    if that helps more."""
    ends, found = time.monotonic() + SECONDS, []
    for option, change in ways:
        if time.monotonic() > ends:
            break
        if (reached := _drawn(draw, change)) >= high + GAIN:
            found.append((reached, option, change))
    found.sort(key=lambda one: -one[0])
    told = [(option, reached) for reached, option, _ in found]
    if len(found) < 2:
        return told
    (best, option, change), (_, other, further) = found[:2]
    both = _drawn(draw, {**change, **further})
    return [(f"{option} {other}", both), *told] if both >= best + GAIN else told


def _drawn(draw: Draw, change: Options) -> float:
    """How high text is in a picture that is drawn with other options."""
    size = _size(draw(change), 1.0)
    return _height(size) if size is not None else 0.0


def _height(size: tuple[float, float]) -> float:
    """How high text is where a picture of so many points fills a slide."""
    return TEXT * min(SLIDE[0] / size[0], SLIDE[1] / size[1])


def _size(picture: Path, scale: float) -> tuple[float, float] | None:
    """Width and height in points, if it were not drawn so many times its size; None for a kind that has none."""
    measure = _MEASURES.get(picture.suffix)
    size = measure(picture.read_bytes()) if measure is not None else None
    return (size[0] / scale, size[1] / scale) if size is not None else None


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
