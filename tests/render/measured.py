"""How wide the words of a picture are, by a font of this machine and not by what drew the picture."""

import re
import subprocess
from functools import cache
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"


@cache
def font(family, weight):
    """The font that stands for a family here, at 100 points."""
    from PIL import ImageFont

    try:
        found = subprocess.run(
            ["fc-match", "-f", "%{file}", f"{family}:{weight}"], capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        pytest.skip("no fc-match here to find a font with")
    return ImageFont.truetype(found.stdout, 100)


def length(text):
    """Points from the first to the last letter of a text element."""
    words = "".join(text.itertext())
    size = float(text.get("font-size"))
    return (
        font(text.get("font-family").partition(",")[0], text.get("font-weight", "normal")).getlength(words) * size / 100
    )


def inherited(root):
    """Give every text the font that it inherits, so that each can be measured alone."""
    for group in root.iter(f"{SVG}g"):
        if group.get("class") == "graph":
            for text in group.iter(f"{SVG}text"):
                for name in ("font-family", "font-size"):
                    if group.get(name) and not text.get(name):
                        text.set(name, group.get(name))
    return root


def span(text):
    """Left and right end of a text element."""
    x, wide = float(text.get("x")), length(text)
    left = {"middle": x - wide / 2, "end": x - wide}.get(text.get("text-anchor"), x)
    return left, left + wide


NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")


def knots(path):
    """All knots of a path of curves and lines, whose parts are told from where they begin."""
    found = []
    for letter, text in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        numbers = [*map(float, NUMBER.findall(text))]
        pairs = [*zip(numbers[::2], numbers[1::2], strict=False)]
        if letter in "hv":
            pairs = [(number, 0) if letter == "h" else (0, number) for number in numbers]
        size = {"c": 3}.get(letter, 1)
        for at in range(0, len(pairs), size):
            x, y = found[-1] if letter.islower() else (0, 0)
            found += [(x + dx, y + dy) for dx, dy in pairs[at : at + size]]
    return found


def area(group):
    """Left, top, right and bottom of what is drawn in a group, its words aside; None if nothing is."""
    points = []
    for element in group.iter():
        numbers = [*map(float, NUMBER.findall(element.get("points", "")))]
        points += zip(numbers[::2], numbers[1::2], strict=True)
        points += knots(element.get("d", ""))
        if element.tag == f"{SVG}ellipse":
            x, y, rx, ry = (float(element.get(name)) for name in ("cx", "cy", "rx", "ry"))
            points += [(x - rx, y - ry), (x + rx, y + ry)]
    if not points:
        return None
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def nodes(svg):
    """The groups of all boxes by id."""
    root = inherited(ElementTree.fromstring(svg.encode("utf-8")))
    return {group.get("id"): group for group in root.iter(f"{SVG}g") if (group.get("class") or "").startswith("node")}


def overlapping(areas, slack=0.5):
    """The pairs of names whose areas lie over one another."""
    return [
        (one, other)
        for number, (one, a) in enumerate(areas)
        for other, b in areas[:number]
        if a[0] < b[2] - slack and b[0] < a[2] - slack and a[1] < b[3] - slack and b[1] < a[3] - slack
    ]
