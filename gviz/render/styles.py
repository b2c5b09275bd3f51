"""The styles of pictures by name: gviz's own style, and the styles of well-known tools and lectures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from gviz.errors import GvizError
from gviz.render.boxes.graph_options import Options
from gviz.render.theme import DARK, LIGHT, Form, Paint, Theme

ThemeName = Literal["auto", "light", "dark"]
THEME_NAMES: tuple[ThemeName, ...] = get_args(ThemeName)
"""``auto`` stores both themes in one SVG, and the viewer chooses. For other formats it means light."""


@dataclass(frozen=True, slots=True)
class PictureStyle:
    """How a scene is drawn: its themes, and the options of the scene that it changes."""

    name: str
    light: Theme
    dark: Theme
    words: Mapping[str, Any] = field(default_factory=dict)

    def theme(self, name: str) -> Theme:
        """Return the theme of that name (``auto`` begins as light). Raises `GvizError` for an unknown one."""
        if name not in THEME_NAMES:
            raise GvizError(f"no theme is called {name!r}", hint=f"themes: {', '.join(THEME_NAMES)}", exit_code=2)
        return self.dark if name == "dark" else self.light

    def options(self, options: Options) -> Options:
        """Return the options with the changes of this style."""
        return replace(options, **self.words)


def _painted(base: Theme, canvas: str, edge: str, texts: str, form: Form, **paints: str) -> Theme:
    """Return a theme with ``fill border`` for each role and one colour for all text. Shades are those of `base`."""
    pairs = {role: Paint(*pair.split()) for role, pair in paints.items()}
    plain = pairs["op"]
    return replace(
        base,
        canvas=canvas,
        edge=edge,
        texts=dict.fromkeys(base.texts, texts),
        paints={role: pairs.get(role, plain) for role in base.paints},
        form=form,
    )


def _texts(theme: Theme, **texts: str) -> Theme:
    return replace(theme, texts={**theme.texts, **texts})


_TORCHVIZ = Form(font="monospace", size=10, direction="TB")
TORCHVIZ = PictureStyle(
    "torchviz",
    _texts(
        _painted(
            LIGHT, "#ffffff", "#000000", "#1a1a1a", _TORCHVIZ,
            leaf="#add8e6 #000000", parameter="#add8e6 #000000", constant="#e8e8e8 #000000", op="#d3d3d3 #000000",
            root="#caff70 #000000", chip="#ffffff #000000", current="#ffff66 #000000", inplace="#e6cfe0 #000000",
            freed="#ffffff #000000", saved="#ffb733 #000000", error="#ffb3ab #000000", module="#8fbc8f #000000",
        ),
        value="#233500", grad="#102a80", sum="#5c0f45", bad="#7a000c", saved="#4d2c00", muted="#333333",
    ),
    _texts(
        _painted(
            DARK, "#121212", "#c9d1d9", "#f0f6fc", _TORCHVIZ,
            leaf="#16394a #e6edf3", parameter="#16394a #e6edf3", constant="#262626 #e6edf3", op="#333333 #e6edf3",
            root="#2f4a0f #e6edf3", chip="#121212 #e6edf3", current="#4a4400 #e6edf3", inplace="#3d2136 #e6edf3",
            freed="#121212 #e6edf3", saved="#4f3300 #e6edf3", error="#5a1015 #e6edf3", module="#23402b #e6edf3",
        ),
        value="#b9e86f", grad="#a9ccff", sum="#f5b8e0", bad="#ffaca6", saved="#ffcc80", muted="#c9d1d9",
    ),
    {"titles": "backward"},
)  # fmt: skip

_MICROGRAD = Form(card="record", direction="LR")
MICROGRAD = PictureStyle(
    "micrograd",
    _texts(
        _painted(
            LIGHT, "#ffffff", "#444444", "#000000", _MICROGRAD,
            op="#ffffff #000000", current="#ffee80 #1f2328", error="#ffd3ce #a30010", freed="#ffffff #000000",
        ),
        bad="#a30010",
    ),
    _texts(
        _painted(
            DARK, "#121212", "#a9b1bb", "#f0f6fc", _MICROGRAD,
            op="#121212 #f0f6fc", current="#4a3d00 #ffe24d", error="#5a1015 #ff8078", freed="#121212 #f0f6fc",
        ),
        bad="#ff8a83",
    ),
    {"titles": "name", "decimals": 4, "density": "short", "tensors": "line"},
)  # fmt: skip

_CS231N = replace(_MICROGRAD, card="wire", font="Times,serif", size=13)
CS231N = PictureStyle(
    "cs231n",
    _texts(replace(MICROGRAD.light, form=_CS231N), value="#006400", grad="#b00000", sum="#b00000", muted="#555555"),
    _texts(replace(MICROGRAD.dark, form=_CS231N), value="#7ee07e", grad="#ff8a80", sum="#ff8a80", muted="#a9b1bb"),
    {"titles": "name", "decimals": 2, "density": "short", "tensors": "line"},
)

_GREYS = ("#ffffff", "#f2f2f2", "#e0e0e0", "#cccccc", "#b3b3b3", "#999999", "#737373", "#4d4d4d", "#000000")
MONO = PictureStyle(
    "mono",
    replace(_painted(LIGHT, "#ffffff", "#000000", "#000000", Form(), op="#ffffff #000000"), shades=_GREYS),
    replace(_painted(DARK, "#000000", "#ffffff", "#ffffff", Form(), op="#000000 #ffffff"), shades=_GREYS[::-1]),
)

GVIZ = PictureStyle("gviz", LIGHT, DARK)

STYLES: dict[str, PictureStyle] = {style.name: style for style in (GVIZ, TORCHVIZ, MICROGRAD, CS231N, MONO)}


def style_named(name: str) -> PictureStyle:
    """Return the style of that name. Raises `GvizError` for a name that is not in `STYLES`."""
    if name not in STYLES:
        raise GvizError(f"no style is called {name!r}", hint=f"styles: {', '.join(STYLES)}", exit_code=2)
    return STYLES[name]
