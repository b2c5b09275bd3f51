"""PNG and PDF, as Graphviz paints them."""

from __future__ import annotations

from io import BytesIO
from struct import unpack

from gviz.render.graphviz.figure_detail import picture_scene
from gviz.render.graphviz.process import Picture, has_font
from gviz.render.graphviz.scene_drawing import drawn, resolution
from gviz.render.picture_request import ExportOptions
from gviz.trace.timeline import Timeline

MOST_PIXELS = 50_000_000
"""The most pixels of a picture that is read again: Pillow refuses very large ones."""


def png(timeline: Timeline, n: int, options: ExportOptions) -> bytes:
    """Return moment `n` as PNG. It is opaque and has its resolution, unless it is very large.

    Graphviz writes no resolution, so a figure of 85 mm would be imported four times as wide. It also leaves the last
    row or column partly transparent if a size is no whole number of pixels.
    """
    from PIL import Image

    painted = _painted(timeline, n, options, "png")
    width, height = unpack(">II", painted[16:24])
    if width * height > MOST_PIXELS:
        return painted
    image = Image.open(BytesIO(painted)).convert("RGBA")
    opaque = Image.new("RGB", image.size, options.colours.canvas)
    opaque.paste(image, mask=image)
    content, pixels = BytesIO(), resolution(options)
    opaque.save(content, "PNG", dpi=(pixels, pixels))
    return content.getvalue()


def pdf(timeline: Timeline, n: int, options: ExportOptions) -> bytes:
    """Return moment `n` as PDF."""
    return _painted(timeline, n, options, "pdf")


def _painted(timeline: Timeline, n: int, options: ExportOptions, picture: Picture) -> bytes:
    content = drawn(picture_scene(timeline, n, options), options, picture)
    if not has_font():
        options.note(f"this machine has no font, so the {picture} has no text; an svg is complete")
    return content
