"""A whole pass as an animated GIF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

from gviz.render.forms.series import LAST, pass_moments, pictures, scenes, seconds
from gviz.render.picture_request import ExportOptions
from gviz.render.theme import Theme
from gviz.trace.timeline import Timeline

PIXELS = 2400
"""The most pixels of the longer side, unless the user chooses a scale."""
SAMPLES = 12
"""How many pictures contribute colours to the palette, among them the first and the last."""
COLOURS = 256
"""The most colours of a GIF."""
NEAR = 8
"""The distance in red, green and blue below which Pillow may confuse two colours: it searches for both in one cell of
the colour space.
"""


def render(timeline: Timeline, n: int, options: ExportOptions) -> bytes:
    """Return the moments up to `n` as a GIF."""
    from PIL import Image

    moments = options.moments or pass_moments(timeline, n)
    drawn = pictures(scenes(timeline, moments, options), options, "png", pixels=PIXELS)
    images = [Image.open(BytesIO(one)).convert("RGB") for one in drawn]
    size = max(image.width for image in images), max(image.height for image in images)
    whole = [_on(Image.new("RGB", size, options.colours.canvas), image) for image in images]
    palette = Image.new("P", (1, 1))
    palette.putpalette(_palette(whole, Image.new("RGB", (size[0], size[1] * SAMPLES)), options.colours))
    fitted = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in whole]
    out = BytesIO()
    times = [*[round(1000 * seconds(len(fitted)))] * (len(fitted) - 1), round(1000 * LAST)]
    fitted[0].save(out, "GIF", save_all=True, append_images=fitted[1:], duration=times, loop=0, optimize=True)
    return out.getvalue()


def _palette(images: Sequence[Any], canvas: Any, theme: Theme) -> list[int]:
    """Return the palette of the GIF: all colours of the theme, and intermediate colours from samples of the images.

    The theme's colours are added unchanged, because a box of a single moment may be the only one with its colour.
    """
    for number in range(SAMPLES):
        canvas.paste(images[number * (len(images) - 1) // (SAMPLES - 1)], (0, number * images[0].height))
    own = [bytes.fromhex(colour[1:]) for colour in theme.colours]
    levels = canvas.quantize(COLOURS - len(own)).getpalette()
    between = zip(levels[::3], levels[1::3], levels[2::3], strict=True)
    return [level for colour in (*own, *(each for each in between if not _near(each, own))) for level in colour]


def _near(colour: Sequence[int], others: Iterable[Sequence[int]]) -> bool:
    """Return whether Pillow could confuse the colour with one of the others."""
    return any(all(abs(one - two) <= NEAR for one, two in zip(colour, other, strict=True)) for other in others)


def _on(canvas: Any, image: Any) -> Any:
    canvas.paste(image, (0, 0))
    return canvas
