"""Whether a picture can be read on a slide, and what to ask for where it cannot."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

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


class Way(NamedTuple):
    """An option as it is typed, and as it is asked for."""

    typed: str
    change: Options


SHOWING_LESS = Way("--labels min", {"labels": "min"}), Way("--depth 1", {"depth": 1})
WAYS = (
    *SHOWING_LESS,
    Way("--tensors line", {"tensors": "line"}),
    Way("--direction LR", {"direction": "LR"}),
    Way("--direction TB", {"direction": "TB"}),
    Way("--no-legend", {"legend": False}),
)
"""What may make a picture smaller, in the order in which it is tried."""
USUAL: Options = {"labels": "short", "depth": None, "tensors": None, "direction": "auto", "legend": True}
"""What an option is that was not given."""
PART = "--only or --node PLACE draws a part"


def hint(picture: Path, asked: Options, draw: Draw | None) -> str:
    """What helps where the text of a picture, drawn as `asked`, is too small on a slide: found by drawing it anew.

    Empty for one that fits, and for one of a kind that is scrolled. Without a `draw`, which takes too long for some,
    what shows less and was not asked for is named.
    """
    size = _size(picture, asked["scale"] or 1.0)
    if size is None or _height(size) >= LEAST:
        return ""
    too_small = f"{size[0]:.0f} x {size[1]:.0f} points: on a slide its text would be {_height(size):.0f} points high"
    helping = _less(asked) if draw is None else _higher(asked, _height(size), draw)
    return "; ".join([too_small, *helping, *_part(asked)])


def _part(asked: Options) -> Iterator[str]:
    """How to draw less of the graph than is drawn."""
    if not asked.get("node"):
        yield PART
    elif (radius := asked.get("radius", 0)) > 1:
        yield f"--radius {radius - 1} draws less around --node"


def _less(asked: Options) -> Iterator[str]:
    """What shows less, untried."""
    if left := [way.typed for way in SHOWING_LESS if _is_left(way, asked)]:
        yield f"{' and '.join(left)} show{'s' * (len(left) == 1)} less"


def _higher(asked: Options, high: float, draw: Draw) -> Iterator[str]:
    """What makes the text higher, and how high."""
    if found := _helping([way for way in WAYS if _is_left(way, asked)], high, draw):
        yield "higher with " + ", ".join(f"{typed} ({reached:.0f})" for typed, reached in found)


def _is_left(way: Way, asked: Options) -> bool:
    """Whether nobody has asked for this, or for something in its place."""
    return all(asked[name] == USUAL[name] for name in way.change)


def _helping(ways: list[Way], high: float, draw: Draw) -> list[tuple[str, float]]:
    """The options that make the text higher than it is, with how high, the best first; before it the best two together
    if that helps more."""
    ends, found = time.monotonic() + SECONDS, []
    for way in ways:
        if time.monotonic() > ends:
            break
        if (reached := _drawn(draw, way.change)) >= high + GAIN:
            found.append((way, reached))
    found.sort(key=lambda one: -one[1])
    told = [(way.typed, reached) for way, reached in found]
    if len(found) < 2:
        return told
    (one, best), (other, _) = found[:2]
    both = _drawn(draw, {**one.change, **other.change})
    return [(f"{one.typed} {other.typed}", both), *told] if both >= best + GAIN else told


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
