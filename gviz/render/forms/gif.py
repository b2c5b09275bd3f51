"""All of a pass as a GIF that plays."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from gviz.render.forms.series import pass_moments, pictures, scenes
from gviz.render.request import ExportOptions
from gviz.trace.timeline import Timeline

MILLISECONDS, LAST = 800, 3000
"""How long each picture stays, and the last one."""
PIXELS = 2400
"""The longer side of the picture is at most so long, unless it is asked for in another size."""
SAMPLES = 12
"""So many pictures are looked at for their colours."""


def render(timeline: Timeline, n: int, options: ExportOptions) -> bytes:
    """The moments up to `n` as a GIF."""
    from PIL import Image

    moments = options.moments or pass_moments(timeline, n)
    drawn = pictures(scenes(timeline, moments, options), options, "png", pixels=PIXELS)
    images = [Image.open(BytesIO(one)).convert("RGB") for one in drawn]
    size = max(image.width for image in images), max(image.height for image in images)
    whole = [_on(Image.new("RGB", size, options.colours.canvas), image) for image in images]
    palette = _all_colours(whole, Image.new("RGB", (size[0], size[1] * SAMPLES))).quantize(256)
    fitted = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in whole]
    out = BytesIO()
    times = [*[MILLISECONDS] * (len(fitted) - 1), LAST]
    fitted[0].save(out, "GIF", save_all=True, append_images=fitted[1:], duration=times, loop=0, optimize=True)
    return out.getvalue()


def _all_colours(images: list[Any], canvas: Any) -> Any:
    """A picture with the colours of some of the images, because a moving picture has one palette."""
    for number in range(SAMPLES):
        canvas.paste(images[number * len(images) // SAMPLES], (0, number * images[0].height))
    return canvas


def _on(canvas: Any, image: Any) -> Any:
    canvas.paste(image, (0, 0))
    return canvas
