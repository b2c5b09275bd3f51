"""Postprocessing of Graphviz's SVG: its size, and the same picture in fewer bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Literal

from gviz.render.theme import Form

CELL = 620
"""Points of a notebook cell's width next to a list of files. A wider picture has a scroll bar."""
USUAL, READABLE = 0.75, 0.7
"""The usual scale in a cell, at which the text is as large as the text around it, and the smallest readable scale."""

SIZE = re.compile(r'<svg width="([\d.]+)pt" height="([\d.]+)pt"')


def scaled(text: str, factor: float) -> str:
    """Return the SVG, drawn larger than its coordinates by a factor."""
    return SIZE.sub(lambda size: '<svg width="{:g}pt" height="{:g}pt"'.format(*times(size, factor)), text, count=1)


def times(size: re.Match[str], factor: float) -> tuple[float, float]:
    """Return the width and height of an SVG in points, multiplied by a factor."""
    return round(float(size[1]) * factor), round(float(size[2]) * factor)


def in_a_cell(drawn: Callable[[Literal["auto", "TB"]], str]) -> str:
    """Return a picture that is at most as wide as a cell if its text is readable then.

    If it is not, the picture from top to bottom is used if that is narrower.
    """
    text = drawn("auto")
    if _width(text) * READABLE > CELL:
        text = min(text, drawn("TB"), key=_width)
    width = _width(text)
    return scaled(text, min(USUAL, max(READABLE, CELL / width))) if width else text


def _width(text: str) -> float:
    """Return the width of an SVG in points; 0 if it is not stated."""
    size = SIZE.search(text)
    return float(size[1]) if size else 0.0


WRAPPED = re.compile(r'<title>[^<]*</title>\n<g id="a_[^"]*"><a xlink:title="([^"]*)">\n(.*?)</a>\n</g>\n', re.DOTALL)
"""Graphviz's form of a tooltip, around the element that has it."""

EMPTY_TEXT = re.compile(r"<text [^>]*>(?: |\u00a0|&#160;)*</text>\n")
COMMENT = re.compile(r"<!--.*?-->\n", re.DOTALL)
PLACES = re.compile(r' (?:points|x|y)="[^"]*"')
HUNDREDTHS = re.compile(r"-?\d+\.\d\d(?!\d)")
CURVE = re.compile(r' d="M([^"C]*)C([^"]*)"')
NUMBER = re.compile(r"-?[\d.]+")


def slim(text: str, form: Form) -> str:
    """Return the SVG without comments, empty texts and repeated attributes, with tooltips as titles.

    Coordinates are rounded to a tenth of a point. Those of a curve are distances from one another.
    """
    text = COMMENT.sub("", EMPTY_TEXT.sub("", text))
    text = PLACES.sub(lambda match: HUNDREDTHS.sub(_tenths, match[0]), text)
    text = CURVE.sub(_curve, text)
    text = WRAPPED.sub(lambda match: f"<title>{match[1]}</title>\n{match[2]}" if match[1].strip() else match[2], text)
    same = f' font-family="{form.font}"'
    text = text.replace(same, "").replace(' xml:space="preserve" text-anchor="start"', "").replace('.00"', '"')
    text = text.replace("&#45;", "-").replace(" &#160;", "  ").replace(f' font-size="{form.size}"', "")
    same += f' font-size="{form.size}"'
    return re.sub(r"(<g id=[^>]* class=\"graph\")", rf"\1{same}", text, count=1)


def _tenths(number: re.Match[str]) -> str:
    return _tenth(round(float(number[0]) * 10))


def _tenth(tenths: int) -> str:
    """Return a number of tenths in the shortest form that SVG reads."""
    whole, rest = divmod(abs(tenths), 10)
    return f"{'-' if tenths < 0 else ''}{whole or ('' if rest else '0')}{f'.{rest}' if rest else ''}"


def _curve(match: re.Match[str]) -> str:
    """Return a curve with its knots relative to the start of each piece, and its straight pieces as lines."""
    numbers = [round(float(number) * 10) for number in NUMBER.findall(f"{match[1]} {match[2]}")]
    knots = [*zip(numbers[::2], numbers[1::2], strict=True)]
    path, letter = f"M{_joined(knots[0])}", "M"
    for at in range(0, len(knots) - 3, 3):
        x, y = knots[at]
        steps = [(knot[0] - x, knot[1] - y) for knot in knots[at + 1 : at + 4]]
        before, letter = letter, _letter(steps)
        code = _joined({"h": steps[2][:1], "v": steps[2][1:], "l": steps[2]}.get(letter, chain.from_iterable(steps)))
        path += code if letter == before and code[0] == "-" else f" {code}" if letter == before else f"{letter}{code}"
    return f' d="{path}"'


def _letter(steps: list[tuple[int, int]]) -> str:
    """Return the path command of a piece: a horizontal, vertical or other line, or a curve."""
    near, far, end = steps
    if near != (0, 0) or far != end:
        return "c"
    return "h" if end[1] == 0 else "v" if end[0] == 0 else "l"


def _joined(numbers: Iterable[int]) -> str:
    """Return the numbers as text, with blanks between them unless a sign separates them."""
    return re.sub(" (?=-)", "", " ".join(map(_tenth, numbers)))
