"""The themes of the terminal debugger, and the semantic colours that all other Textual themes get, too."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from rich.console import Console
from textual.theme import BUILTIN_THEMES, Theme

from gviz.errors import GvizError, did_you_mean
from gviz.values.plain_text import clipped

_DARK = {
    "gviz-border": "#5A6270",
    "gviz-value": "#A5D65A", "gviz-grad": "#82B4FF", "gviz-sum": "#F0A3D6", "gviz-muted": "#A9B1BB",
    "gviz-error": "#FF8078", "gviz-now-background": "#4A3D00", "gviz-now": "#FFE24D", "gviz-mark": "#FFE24D",
    "gviz-brand": "#5BA3F5", "gviz-string": "#A5D65A", "gviz-keyword": "#F0A3D6", "gviz-number": "#E09B2D",
}  # fmt: skip
_LIGHT = {
    "gviz-border": "#8B949E",
    "gviz-value": "#3F5E00", "gviz-grad": "#1A3FB0", "gviz-sum": "#8A2A6B", "gviz-muted": "#57606A",
    "gviz-error": "#A30010", "gviz-now-background": "#FFEE80", "gviz-now": "#1F2328", "gviz-mark": "#8A5000",
    "gviz-brand": "#1A3FB0", "gviz-string": "#3F5E00", "gviz-keyword": "#8A2A6B", "gviz-number": "#8A5000",
}  # fmt: skip
_CONTRAST = {
    "gviz-border": "#FFFFFF",
    "gviz-value": "#C6FF00", "gviz-grad": "#8CC8FF", "gviz-sum": "#FFC0F0", "gviz-muted": "#FFFFFF",
    "gviz-error": "#FFB0A8", "gviz-now-background": "#FFFF00", "gviz-now": "#000000", "gviz-mark": "#FFFF00",
    "gviz-brand": "#FFFFFF", "gviz-string": "#C6FF00", "gviz-keyword": "#FFFFFF", "gviz-number": "#FFFFFF",
}  # fmt: skip
_ANSI = {
    "gviz-border": "ansi_default",
    "gviz-value": "ansi_green", "gviz-grad": "ansi_blue", "gviz-sum": "ansi_magenta", "gviz-muted": "ansi_default",
    "gviz-error": "ansi_red", "gviz-now-background": "ansi_default", "gviz-now": "ansi_default",
    "gviz-mark": "ansi_yellow", "gviz-brand": "ansi_cyan", "gviz-string": "ansi_green", "gviz-keyword": "ansi_magenta",
    "gviz-number": "ansi_cyan",
}  # fmt: skip

_CS231N = {**_DARK, "gviz-value": "#7CE38B", "gviz-grad": "#FF8F87", "gviz-error": "#FFD75E"}
"""Values are green and gradients red, as on the slides of the course; errors are yellow and have a mark."""

_GREY = {"gviz-border": "#8A8A8A", "gviz-muted": "#B5B5B5", "gviz-now-background": "#4A4A4A"}
_MONO = dict.fromkeys(_DARK, "#FFFFFF") | _GREY
"""Shades of grey: words, marks and lines carry all information, as in every theme."""

DEFAULT = "gviz-dark"

THEMES = (
    Theme(
        name="gviz-dark", primary="#5BA3F5", secondary="#A9B1BB", accent="#FFE24D", warning="#E09B2D", error="#FF8078",
        success="#A5D65A", foreground="#E6EDF3", background="#121212", surface="#1A1D21", panel="#23272E", dark=True,
        variables=_DARK,
    ),
    Theme(
        name="gviz-light", primary="#1A3FB0", secondary="#57606A", accent="#8A5000", warning="#8A5000", error="#A30010",
        success="#3F5E00", foreground="#1F2328", background="#FFFFFF", surface="#F6F8FA", panel="#E4E7EB", dark=False,
        variables=_LIGHT,
    ),
    Theme(
        name="gviz-contrast", primary="#FFFFFF", secondary="#FFFFFF", accent="#FFFF00", warning="#FFFF00",
        error="#FFB0A8", success="#C6FF00", foreground="#FFFFFF", background="#000000", surface="#000000",
        panel="#000000", dark=True, text_alpha=1.0, variables=_CONTRAST,
    ),
    Theme(
        name="gviz-cs231n", primary="#7CE38B", secondary="#A9B1BB", accent="#FFE24D", warning="#FFD75E",
        error="#FFD75E", success="#7CE38B", foreground="#E6EDF3", background="#121212", surface="#1A1D21",
        panel="#23272E", dark=True, variables=_CS231N,
    ),
    Theme(
        name="gviz-mono", primary="#FFFFFF", secondary="#B5B5B5", accent="#FFFFFF", warning="#FFFFFF",
        error="#FFFFFF", success="#FFFFFF", foreground="#E8E8E8", background="#101010", surface="#181818",
        panel="#242424", dark=True, variables=_MONO,
    ),
    Theme(
        name="gviz-ansi", primary="ansi_blue", secondary="ansi_cyan", accent="ansi_yellow", warning="ansi_yellow",
        error="ansi_red", success="ansi_green", foreground="ansi_default", background="ansi_default",
        surface="ansi_default", panel="ansi_default", boost="ansi_default", dark=True, ansi=True,
        variables={**BUILTIN_THEMES["ansi-dark"].variables, **_ANSI},
    ),
)  # fmt: skip


SHORT = {name.removeprefix("gviz-"): name for name in (theme.name for theme in THEMES)}
"""``light`` for ``gviz-light``."""

TEXTUAL = tuple(BUILTIN_THEMES)
"""The themes that Textual brings."""


def named(name: str, known: Iterable[str]) -> str:
    """Return the theme with a name, also without its ``gviz-``. Raises GvizError for an unknown name."""
    full = SHORT.get(name, name)
    if full not in known:
        hint = did_you_mean(full, known, ", ".join(SHORT))
        raise GvizError(f"there is no theme {clipped(name, 30)}", hint=hint, exit_code=2)
    return full


def semantic_colours(*, dark: bool, ansi: bool = False) -> Mapping[str, str]:
    """Return the colours of values, gradients and marks for a theme that does not define them."""
    return _ANSI if ansi else _DARK if dark else _LIGHT


def for_terminal(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the theme for a terminal with 16 colours; None for others. Other themes lose colours there."""
    known = Console(stderr=True, force_terminal=True, _environ=environ).color_system
    return "gviz-ansi" if known == "standard" else None


def colour_warning(theme: Theme, environ: Mapping[str, str] = os.environ) -> str:
    """Return a warning that a theme has more colours than the terminal, with the theme to use; empty if it has not."""
    needed = for_terminal(environ) if environ.get("TERM") else None
    if needed is None or theme.ansi or theme.name == "gviz-mono":
        return ""
    return f"this terminal has 16 colours: theme {needed.removeprefix('gviz-')} keeps values and gradients apart"


def starting_theme(theme_name: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return the first theme: without colours ``gviz-ansi``, else the `theme_name` one, else a light or dark one."""
    if environ.get("NO_COLOR"):
        return "gviz-ansi"
    if theme_name:
        return theme_name
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "gviz-light" if background in ("7", "15") else DEFAULT
