"""A scene as SVG: one file that follows the viewer's light or dark theme, with a description for screen readers."""

from __future__ import annotations

import hashlib
import re
from html import escape

from gviz.render.boxes.box_content import Box
from gviz.render.graphviz.figure_detail import picture_scene
from gviz.render.graphviz.scene_drawing import drawn
from gviz.render.graphviz.svg_output import SIZE, scaled, slim, times
from gviz.render.picture_request import ExportOptions
from gviz.render.scene import UNTITLED, Scene
from gviz.render.theme import stylesheet
from gviz.trace.timeline import Timeline

DESCRIBED = 60
"""The most boxes that are described in words for people who cannot see the picture."""


def render(timeline: Timeline, n: int, options: ExportOptions) -> str:
    """Return moment `n` as SVG. With the theme ``auto`` it contains both themes, and the viewer's setting decides."""
    scene = picture_scene(timeline, n, options)
    prefix = picture_id(scene)
    plain = slim(drawn(scene, options, "svg", prefix=prefix).decode("utf-8"), options.colours.form)
    if options.figure:  # which has its size, and is edited by hand
        return plain
    plain = scaled(plain, options.scale or 1.0)
    return headed(plain, words(scene, prefix) + style_element(options, prefix, plain), prefix)


COLOUR = re.compile(r'="(#[0-9a-f]{6})"')


def picture_id(scene: Scene) -> str:
    """Return an id that is unique among the pictures on a page."""
    return f"gviz-{hashlib.blake2s(repr(scene).encode('utf-8', 'replace'), digest_size=4).hexdigest()}"


def style_element(options: ExportOptions, prefix: str, text: str) -> str:
    """Return the rules for viewers who prefer dark, for the colours in `text`, if the theme is ``auto``."""
    if options.theme != "auto" or options.figure:
        return ""
    colours = set(COLOUR.findall(text))
    rules = stylesheet(f"#{prefix}", options.look.light, options.look.dark).split("\n")
    kept = "\n".join(rule for rule in rules if colours.issuperset(COLOUR.findall(rule)))
    return f"<style>{kept}</style>"


SMALLEST = 0.4
"""The smallest scale of a picture that is larger than its window: below it the text would be too small to read."""


def _fitting(text: str) -> str:
    """Return a rule that fits a picture into its window if it is not part of a page."""
    size = SIZE.search(text)
    if size is None:
        return ""
    width, height = times(size, SMALLEST)
    return f"<style>svg:root{{max-width:max(100%,{width:g}pt);max-height:max(100vh,{height:g}pt)}}</style>"


def headed(text: str, head: str, prefix: str) -> str:
    """Insert elements at the start of an SVG's root, label it with its title, and fit it into its window."""
    start = text.index("<svg")
    end = text.index(">", start)
    named = f' role="img" aria-labelledby="{prefix}-title {prefix}-desc"'
    return f"{text[:start]}{text[start:end]}{named}>\n{head}{_fitting(text)}{text[end + 1 :]}"


def words(scene: Scene, prefix: str) -> str:
    """Return a description of the picture for people who cannot see it."""
    what = UNTITLED if scene.title == UNTITLED else f"{UNTITLED} of {scene.title}"
    title = ", ".join(filter(None, (what, scene.caption)))
    texts = "; ".join(description(box) for box in scene.boxes[:DESCRIBED])
    more = len(scene.boxes) - DESCRIBED
    rest = f"; and {more} more boxes" if more > 0 else ""
    return (
        f'<title id="{prefix}-title">{escape(title)}</title>\n<desc id="{prefix}-desc">{escape(texts + rest)}</desc>\n'
    )


def description(box: Box) -> str:
    """Return a box in words: ``b = mul #4, running, value -18, grad 1``."""
    rows = (f"{row.label} {row.text}".strip() for row in box.rows)
    return ", ".join(filter(None, (box.title, box.status, *rows)))
