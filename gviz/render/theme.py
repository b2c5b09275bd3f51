"""The colours of the pictures, one table per theme. Scenes speak of roles, states and styles; this file of colours.

Every text has a contrast of at least 4.5 on every fill it stands on. Values are a yellowish green and gradients blue, a
pair that people with every kind of colour blindness can tell apart. No state is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gviz.errors import GvizError


@dataclass(frozen=True, slots=True)
class Paint:
    """How the area and the outline of a box look."""

    fill: str
    border: str


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of one theme: `texts` by the style of a row, `paints` by the role or state of a box."""

    name: str
    canvas: str
    edge: str
    texts: Mapping[str, str]
    paints: Mapping[str, Paint]


LIGHT = Theme(
    name="light",
    canvas="#ffffff",
    edge="#6e7781",
    texts={
        "title": "#1f2328",
        "text": "#1f2328",
        "muted": "#57606a",
        "value": "#3f5e00",
        "grad": "#1a3fb0",
        "sum": "#8a2a6b",
        "bad": "#a30010",
    },
    paints={
        "leaf": Paint("#e3eefc", "#1a3fb0"),
        "parameter": Paint("#c9def9", "#1a3fb0"),
        "constant": Paint("#e4e7eb", "#6e7781"),
        "op": Paint("#f6f8fa", "#57606a"),
        "root": Paint("#d9f2c4", "#3f5e00"),
        "chip": Paint("#ffffff", "#1a3fb0"),
        "module": Paint("#eaeef2", "#24292f"),
        "current": Paint("#ffee80", "#1f2328"),
        "inplace": Paint("#fbeaf5", "#8a2a6b"),
        "freed": Paint("#ffffff", "#6e7781"),
        "error": Paint("#ffd3ce", "#a30010"),
    },
)

DARK = Theme(
    name="dark",
    canvas="#121212",
    edge="#8b949e",
    texts={
        "title": "#e6edf3",
        "text": "#e6edf3",
        "muted": "#a9b1bb",
        "value": "#a5d65a",
        "grad": "#82b4ff",
        "sum": "#f0a3d6",
        "bad": "#ff8a83",
    },
    paints={
        "leaf": Paint("#0f2440", "#5ba3f5"),
        "parameter": Paint("#133a6b", "#5ba3f5"),
        "constant": Paint("#30363d", "#8b949e"),
        "op": Paint("#23272e", "#8b949e"),
        "root": Paint("#2a3a08", "#a5d65a"),
        "chip": Paint("#121212", "#5ba3f5"),
        "module": Paint("#2d333b", "#f0f6fc"),
        "current": Paint("#4a3d00", "#ffe24d"),
        "inplace": Paint("#371b2e", "#e07bbe"),
        "freed": Paint("#121212", "#8b949e"),
        "error": Paint("#5a1015", "#ff8078"),
    },
)

THEMES = {"light": LIGHT, "dark": DARK}
NAMES = ("auto", "light", "dark")
"""``auto`` carries both themes in one SVG and lets the viewer choose; elsewhere it means light."""


def theme_named(name: str) -> Theme:
    """The theme of that name (``auto`` begins as light); raises `GvizError` for a name that is not in `NAMES`."""
    if name not in NAMES:
        raise GvizError(f"no theme is called {name!r}", hint=f"themes: {', '.join(NAMES)}", exit_code=2)
    return THEMES.get(name, LIGHT)


def stylesheet(scope: str, base: Theme, other: Theme) -> str:
    """Rules that turn a picture drawn in `base` into `other` where the viewer prefers dark.

    A rule finds its elements by the colour they were drawn in. Every selector starts with `scope`, because several
    pictures may share one page.
    """
    rules = {f'> polygon[fill="{base.canvas}"]': f"fill:{other.canvas}"}
    for role, paint in base.paints.items():
        rules[f'.node [fill="{paint.fill}"]'] = f"fill:{other.paints[role].fill}"
        rules[f'.node [stroke="{paint.border}"]'] = f"stroke:{other.paints[role].border}"
    for style, colour in base.texts.items():
        rules[f'text[fill="{colour}"]'] = f"fill:{other.texts[style]}"
        rules[f'.edge [stroke="{colour}"]'] = f"stroke:{other.texts[style]}"
        rules[f'.edge polygon[fill="{colour}"]'] = f"fill:{other.texts[style]}"
    rules[f'.edge [stroke="{base.edge}"]'] = f"stroke:{other.edge}"
    rules[f'.edge polygon[fill="{base.edge}"]'] = f"fill:{other.edge}"
    lines = "\n".join(f"{scope} {selector}{{{rule}}}" for selector, rule in rules.items())
    return f"@media (prefers-color-scheme:dark){{\n{lines}\n}}"
