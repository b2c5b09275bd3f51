"""The colours of pictures, one table per theme. Scenes name roles, states and styles; this file gives them colours.

Every text has a contrast of at least 4.5 with its background. Values are a yellowish green and gradients are blue, a
pair that people with every kind of colour blindness can distinguish. No state is shown by colour only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Paint:
    """The fill and the outline of a box."""

    fill: str
    border: str


Card = Literal["box", "record", "wire"]
"""The look of a node.

- box: one box.
- record: a circle for the operation, and a record of name, data and gradient.
- wire: a circle for the operation, and a wire with its value above and its gradient below.
"""

Direction = Literal["auto", "LR", "TB"]


@dataclass(frozen=True, slots=True)
class Form:
    """The choices of a style other than colours."""

    card: Card = "box"
    font: str = "Helvetica,Arial,sans-serif"
    size: int = 11
    direction: Direction = "auto"
    legend: bool = True
    caption: bool = True


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of one theme.

    `texts` are keyed by the style of a row, `paints` by the role or state of a box. `shades` go from the most negative
    number to the most positive.
    """

    name: str
    canvas: str
    edge: str
    texts: Mapping[str, str]
    paints: Mapping[str, Paint]
    shades: tuple[str, ...]
    form: Form = field(default_factory=Form)

    @property
    def colours(self) -> tuple[str, ...]:
        """Return every colour of the theme once."""
        paints = (colour for paint in self.paints.values() for colour in (paint.fill, paint.border))
        return tuple(dict.fromkeys((self.canvas, self.edge, *self.texts.values(), *paints, *self.shades)))


_LIGHT_SHADES = (
    "#8a2a6b", "#ab5f93", "#cc97bd", "#e8cfe1", "#f1f3f5", "#dbe8c4", "#b5cf8a", "#7d9e3f", "#3f5e00",
)  # fmt: skip

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
        "saved": "#7a4700",
    },
    paints={
        "leaf": Paint("#e3eefc", "#1a3fb0"),
        "parameter": Paint("#c9def9", "#1a3fb0"),
        "constant": Paint("#e4e7eb", "#6e7781"),
        "op": Paint("#f6f8fa", "#57606a"),
        "root": Paint("#d9f2c4", "#3f5e00"),
        "chip": Paint("#ffffff", "#1a3fb0"),
        "current": Paint("#ffee80", "#1f2328"),
        "receiving": Paint("#f3e6ff", "#8a2a6b"),
        "missing": Paint("#ffe8a3", "#8f5200"),
        "inplace": Paint("#fbeaf5", "#8a2a6b"),
        "freed": Paint("#ffffff", "#6e7781"),
        "saved": Paint("#ffe0b0", "#9a5b00"),
        "error": Paint("#ffd3ce", "#a30010"),
        "failed": Paint("#ffffff", "#a30010"),
        "module": Paint("#d8dee4", "#24292f"),
    },
    shades=_LIGHT_SHADES,
)

_DARK_SHADES = (
    "#f0a3d6", "#b8709f", "#84496f", "#4f2c43", "#1b1f24", "#2e3d14", "#547021", "#7ea33d", "#a5d65a",
)  # fmt: skip

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
        "saved": "#f0b45a",
    },
    paints={
        "leaf": Paint("#0f2440", "#5ba3f5"),
        "parameter": Paint("#133a6b", "#5ba3f5"),
        "constant": Paint("#30363d", "#8b949e"),
        "op": Paint("#23272e", "#8b949e"),
        "root": Paint("#2a3a08", "#a5d65a"),
        "chip": Paint("#121212", "#5ba3f5"),
        "current": Paint("#4a3d00", "#ffe24d"),
        "receiving": Paint("#352046", "#e07bbe"),
        "missing": Paint("#402b00", "#ffb020"),
        "inplace": Paint("#371b2e", "#e07bbe"),
        "freed": Paint("#121212", "#8b949e"),
        "saved": Paint("#46310b", "#e09b2d"),
        "error": Paint("#5a1015", "#ff8078"),
        "failed": Paint("#121212", "#ff8078"),
        "module": Paint("#363e47", "#f0f6fc"),
    },
    shades=_DARK_SHADES,
)


def stylesheet(scope: str, base: Theme, other: Theme) -> str:
    """Return CSS rules that turn a picture drawn in `base` into `other` where the viewer prefers dark.

    A rule selects elements by their colour in `base`. Every selector starts with `scope`, because several pictures may
    share one page.
    """
    rules = {f'> polygon[fill="{base.canvas}"]': f"fill:{other.canvas}"}
    for role, paint in base.paints.items():
        for place in (".node ", "> "):  # in a box, and in the legend
            rules[f'{place}[fill="{paint.fill}"]'] = f"fill:{other.paints[role].fill}"
            rules[f'{place}[stroke="{paint.border}"]'] = f"stroke:{other.paints[role].border}"
    for colour, there in zip(base.shades, other.shades, strict=True):
        rules[f'.node [fill="{colour}"]'] = f"fill:{there}"
        rules[f'text[fill="{colour}"]'] = f"fill:{there}"
    for style, colour in base.texts.items():
        rules[f'text[fill="{colour}"]'] = f"fill:{other.texts[style]}"
        rules[f'.edge [stroke="{colour}"]'] = f"stroke:{other.texts[style]}"
        rules[f'.edge polygon[fill="{colour}"]'] = f"fill:{other.texts[style]}"
    rules[f'.edge polygon[fill="{base.canvas}"]'] = f"fill:{other.canvas}"
    rules[f'.node [stroke="{base.edge}"]'] = f"stroke:{other.edge}"
    rules[f'.cluster [stroke="{base.edge}"]'] = f"stroke:{other.edge}"
    rules[f'.edge [stroke="{base.edge}"]'] = f"stroke:{other.edge}"
    rules[f'.edge polygon[fill="{base.edge}"]'] = f"fill:{other.edge}"
    lines = "\n".join(f"{scope} {selector}{{{rule}}}" for selector, rule in rules.items())
    return f"@media (prefers-color-scheme:dark){{\n{lines}\n}}"
