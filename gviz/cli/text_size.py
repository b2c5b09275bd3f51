"""Whether the text of a picture is large enough for a slide or a figure, and which options make it larger."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gviz.errors import GvizError

SLIDE = 960.0, 540.0
"""Width and height in points at scale 1; None for a form without a size."""
POINTS = 72 / 96
"""Points per pixel."""
LEAST, TEXT = 7, 11
"""The least readable height of text on a slide, and the height of text in a picture, in points."""
GAIN, FIGURE_GAIN = 1.0, 0.5
"""The least gain in height that makes an option worth suggesting, in points: on a slide, and in a figure."""
SECONDS = 4.0
"""The time limit of trying options, for a picture that took no longer itself, in seconds."""

Options = Mapping[str, Any]
Draw = Callable[[Options], Path]
"""Draws the same moment as an SVG in its own size, with other options."""


class Remedy(NamedTuple):
    """An option as it is typed, and as the request has it."""

    typed: str
    change: Options


SHOWING_LESS = Remedy("--labels min", {"labels": "min"}), Remedy("--depth 1", {"depth": 1})
REMEDIES = (
    *SHOWING_LESS,
    Remedy("--tensors line", {"tensors": "line"}),
    Remedy("--direction LR", {"direction": "LR"}),
    Remedy("--direction TB", {"direction": "TB"}),
    Remedy("--no-legend", {"legend": False}),
)
"""Options that may make a picture smaller, in the order in which they are tried."""
USUAL: Options = {"labels": None, "depth": None, "tensors": None, "direction": "auto", "legend": True}
"""The value of an option that was not given."""
PART = "--only or --node PLACE draws a part"


def hint(picture: Path, options: Options, draw: Draw | None) -> str:
    """Return a suggestion for a picture whose text is too small on a slide, found by drawing it again.

    Empty if the text is large enough, or the form scrolls. Without a `draw`, which can take too long, it names
    options that show less and were not used.
    """
    size = _size(picture, options["scale"] or 1.0)
    if size is None or _height(size) >= LEAST:
        return ""
    too_small = f"{size[0]:.0f} x {size[1]:.0f} pt: on a slide the text would be about {_height(size):.0f} pt"
    if draw is None:
        return "; ".join([too_small, *_less(options), *_part(options)])
    return "; ".join([too_small + _larger(options, _height(size), draw), *_part(options)])


def figure_hint(least: float, options: Options, draw: Draw) -> str:
    """Return the options that make the text of a figure larger, found by drawing it again as an SVG.

    Empty if the text has the `least` height, or if no option makes it larger.
    """
    height = _height_or_zero(lambda change: _figure_height(draw(change)), {})
    if not height or height >= least - 0.05:
        return ""
    # a figure has no legend
    remedies = [remedy for remedy in REMEDIES if _is_left(remedy, options) and "legend" not in remedy.change]
    larger = _helping(remedies, height, lambda change: _figure_height(draw(change)), FIGURE_GAIN)
    suggestions = ", ".join(f"{reached:.1f} pt with {typed}" for typed, reached in larger)
    return f"the text of the figure would be larger: {suggestions}" if suggestions else ""


def _figure_height(picture: Path) -> float:
    """Return the height of text in a figure: it is scaled to the width of its place."""
    match = re.search(rb"scale\(([\d.]+)", picture.read_bytes())
    return TEXT * float(match[1]) if match else 0.0


def _part(options: Options) -> Iterator[str]:
    """Yield how to draw a part of the graph."""
    if not (options.get("node") or options.get("only")):
        yield PART
    elif not options.get("node"):
        yield "--node PLACE draws a part"
    elif (radius := options.get("radius", 0)) > 1:
        yield f"--radius {radius - 1} draws less around --node"


def _less(options: Options) -> Iterator[str]:
    """Yield options that show less, untried."""
    if left := [remedy.typed for remedy in SHOWING_LESS if _is_left(remedy, options)]:
        yield f"{' and '.join(left)} show{'s' * (len(left) == 1)} less"


def _larger(options: Options, height: float, draw: Draw) -> str:
    """Return the options that make the text larger, with the heights that they give, in parentheses; "" if none do."""
    larger = _helping([remedy for remedy in REMEDIES if _is_left(remedy, options)], height, partial(_drawn, draw), GAIN)
    return f" ({', '.join(f'{reached:.0f} pt with {typed}' for typed, reached in larger)})" if larger else ""


def _is_left(remedy: Remedy, options: Options) -> bool:
    """Return whether neither this option nor one in its place was used."""
    return all(options[name] == USUAL[name] for name in remedy.change)


def _helping(
    remedies: list[Remedy], high: float, height: Callable[[Options], float], gain: float
) -> list[tuple[str, float]]:
    """Return the options that make the text larger, with the height, the best first; the best pair comes before it if
    it helps more. `height` returns the height of text with other options.
    """
    ends, helpful = time.monotonic() + SECONDS, []
    for remedy in remedies:
        if time.monotonic() > ends:
            break
        if (reached := _height_or_zero(height, remedy.change)) >= high + gain:
            helpful.append((remedy, reached))
    helpful.sort(key=lambda one: -one[1])
    larger = [(remedy.typed, reached) for remedy, reached in helpful]
    if len(helpful) < 2:
        return larger
    (one, best), (other, _) = helpful[:2]
    both = _height_or_zero(height, {**one.change, **other.change})
    return [(f"{one.typed} {other.typed}", both), *larger] if both >= best + gain else larger


def _height_or_zero(height: Callable[[Options], float], change: Options) -> float:
    """Return the height of text with other options; 0 if no picture can be drawn with them, such as a figure that is
    refused because its text would be tiny.
    """
    try:
        return height(change)
    except GvizError:
        return 0.0


def _drawn(draw: Draw, change: Options) -> float:
    """Return the height of text in a picture drawn with other options."""
    size = _size(draw(change), 1.0)
    return _height(size) if size is not None else 0.0


def _height(size: tuple[float, float]) -> float:
    """Return the height of text in a picture drawn with other options."""
    return TEXT * min(SLIDE[0] / size[0], SLIDE[1] / size[1])


def _size(picture: Path, scale: float) -> tuple[float, float] | None:
    """Return width and height in points at scale 1; None for a form without a size."""
    measure = _MEASURES.get(picture.suffix)
    size = measure(picture.read_bytes()) if measure is not None else None
    return (size[0] / scale, size[1] / scale) if size is not None else None


def _svg(data: bytes) -> tuple[float, float] | None:
    match = re.search(rb'<svg width="([\d.]+)pt" height="([\d.]+)pt"', data)
    return (float(match[1]), float(match[2])) if match else None


def _png(data: bytes) -> tuple[float, float]:
    width, height = struct.unpack(">II", data[16:24])
    return width * POINTS, height * POINTS


def _gif(data: bytes) -> tuple[float, float]:
    width, height = struct.unpack("<HH", data[6:10])
    return width * POINTS, height * POINTS


_MEASURES: dict[str, Callable[[bytes], tuple[float, float] | None]] = {".svg": _svg, ".png": _png, ".gif": _gif}
"""Reads the size of a picture, by its suffix, in points."""
