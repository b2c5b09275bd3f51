"""A whole pass as one animated SVG that needs no script.

Parts that never change are drawn once, other parts once for each of their looks. The style sheet shows and hides them.
Viewers who prefer reduced motion, and paper, see the last picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from gviz.render.forms.series import LAST, pass_moments, pictures, scenes, seconds
from gviz.render.forms.svg import headed, picture_id, style_element, words
from gviz.render.graphviz.svg_output import scaled, slim
from gviz.render.picture_request import ExportOptions
from gviz.render.scene import Scene
from gviz.trace.timeline import Timeline

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
Looks = dict[str, list[int]]
"""An element as text -> the numbers of the pictures that contain it."""


def render(timeline: Timeline, n: int, options: ExportOptions) -> str:
    """Return the moments up to `n` as an animated SVG."""
    moments = options.moments or pass_moments(timeline, n)
    seen = scenes(timeline, moments, options)
    prefix = picture_id(seen[-1])
    form = options.colours.form
    texts = (slim(one.decode("utf-8"), form) for one in pictures(seen, options, "svg", prefix))
    drawn = [ElementTree.fromstring(text.encode("utf-8")) for text in texts]
    return _played(drawn, seen[-1], options, prefix)


def _played(drawn: Sequence[ElementTree.Element], last: Scene, options: ExportOptions, prefix: str) -> str:
    parts, patterns = _parts(drawn), dict[tuple[int, ...], int]()
    body = "".join(_part(looks, len(drawn), patterns) for looks in parts.values())
    group = drawn[-1][0]
    root = {name: drawn[-1].attrib[name] for name in ("width", "height", "viewBox")}
    attributes = " ".join(f'{name}="{value}"' for name, value in root.items())
    same = " ".join(f'{name}="{group.get(name)}"' for name in ("font-family", "font-size", "transform"))
    svg = (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<svg {attributes} xmlns="{SVG}" xmlns:xlink="{XLINK}">'
        f'<g id="{prefix}" class="graph" {same}>{body}</g></svg>\n'
    )
    motion = f"<style>{''.join(_rules(patterns, len(drawn), prefix))}</style>"
    svg = scaled(svg, options.scale or 1.0)
    return headed(svg, words(last, prefix) + style_element(options, prefix, svg) + motion, prefix)


def _parts(drawn: Sequence[ElementTree.Element]) -> dict[str, Looks]:
    """Return the looks of each part of the picture, in the order of drawing."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    parts: dict[str, Looks] = {}
    for number, root in enumerate(drawn):
        unnamed = 0
        for element in root[0]:
            name = element.get("id", "")
            if element.tag == f"{{{SVG}}}title":
                continue
            if not name:
                name, unnamed = f"text {unnamed}", unnamed + 1
            parts.setdefault(name, {}).setdefault(_text(element), []).append(number)
    return parts


def _text(element: ElementTree.Element) -> str:
    element.tail = None
    text = ElementTree.tostring(element, encoding="unicode")
    return text.replace(f' xmlns="{SVG}"', "").replace(f' xmlns:xlink="{XLINK}"', "")


def _part(looks: Looks, count: int, patterns: dict[tuple[int, ...], int]) -> str:
    """Return the looks of one part. Only the last look has ids, because an id must be unique in a file."""
    written = []
    *earlier, last = looks.items()
    for text, numbers in [*((_nameless(text), numbers) for text, numbers in earlier), last]:
        if len(numbers) == count:
            return text
        pattern = patterns.setdefault(tuple(numbers), len(patterns))
        written.append(f'<g class="k{pattern}">{text}</g>')
    return "".join(written)


def _nameless(text: str) -> str:
    element = ElementTree.fromstring(f'<g xmlns="{SVG}" xmlns:xlink="{XLINK}">{text}</g>')[0]
    for part in element.iter():
        part.attrib.pop("id", None)
    return _text(element)


def _rules(patterns: dict[tuple[int, ...], int], count: int, prefix: str) -> Iterator[str]:
    whole = seconds(count) * (count - 1) + LAST
    for numbers, pattern in patterns.items():
        if numbers[-1] != count - 1:
            yield f"#{prefix} .k{pattern}{{visibility:hidden}}\n"
    yield "@media screen and (prefers-reduced-motion:no-preference){\n"
    for numbers, pattern in patterns.items():
        steps = "".join(_steps(numbers, count, whole))
        yield f"#{prefix} .k{pattern}{{animation:{prefix}-k{pattern} {whole:g}s step-end infinite}}\n"
        yield f"@keyframes {prefix}-k{pattern}{{{steps}}}\n"
    yield "}"


def _steps(numbers: Sequence[int], count: int, whole: float) -> Iterator[str]:
    """Yield the keyframes at which a look appears and disappears."""
    shown, before = set(numbers), None
    for number in range(count):
        if (number in shown) != before:
            before = number in shown
            yield f"{number * seconds(count) / whole:.4%}{{visibility:{'visible' if before else 'hidden'}}}"
