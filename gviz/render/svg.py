"""A scene as SVG: one file that follows the viewer's light or dark theme, and says in words what it shows."""

from __future__ import annotations

import hashlib
from html import escape

from gviz.render.picture import Drawn, drawn
from gviz.render.scene import Box, Scene
from gviz.render.theme import DARK, LIGHT, stylesheet, theme_named

DESCRIBED = 60
"""So many boxes are told in words to those who cannot see the picture."""


def svg(scene: Scene, theme: str, *, timeout: float) -> Drawn:
    """The SVG of a scene. With the theme ``auto`` it carries both, and the viewer's setting decides."""
    prefix = f"gviz-{hashlib.blake2s(repr(scene).encode('utf-8', 'replace'), digest_size=4).hexdigest()}"
    plain = drawn(scene, theme_named(theme), "svg", prefix=prefix, timeout=timeout)
    style = f"<style>{stylesheet(f'#{prefix}', LIGHT, DARK)}</style>" if theme == "auto" else ""
    text = _with_head(plain.data.decode("utf-8"), _words(scene, prefix) + style, prefix)
    return Drawn(text.encode("utf-8"), plain.note)


def _with_head(text: str, head: str, prefix: str) -> str:
    """Put elements first into the root of an SVG, and have it named by its title."""
    start = text.index("<svg")
    end = text.index(">", start)
    named = f' role="img" aria-labelledby="{prefix}-title {prefix}-desc"'
    return f"{text[:start]}{text[start:end]}{named}>\n{head}{text[end + 1 :]}"


def _words(scene: Scene, prefix: str) -> str:
    title = f"{scene.title}: computation graph at {scene.caption}"
    told = "; ".join(description(box) for box in scene.boxes[:DESCRIBED])
    more = len(scene.boxes) - DESCRIBED
    rest = f"; and {more} more boxes" if more > 0 else ""
    return (
        f'<title id="{prefix}-title">{escape(title)}</title>\n<desc id="{prefix}-desc">{escape(told + rest)}</desc>\n'
    )


def description(box: Box) -> str:
    """A box in words: ``b = Mul #4, running, value -18, grad 1``."""
    rows = (f"{row.label} {row.text}".strip() for row in box.rows)
    return ", ".join(filter(None, (box.title, box.status, *rows)))
