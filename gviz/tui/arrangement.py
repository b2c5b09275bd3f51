"""Which panels are on the screen, by its size and what the user asked for (UX.md 2.2)."""

from __future__ import annotations

from typing import Literal

View = Literal["graph", "tape", "both"]
VIEWS: tuple[View, ...] = ("tape", "graph", "both")

PANELS = ("source", "output", "node", "tape", "graph")
"""Panels in the order of the digits 1 to 5."""

LEAST = (40, 10)
WIDE, HUGE, TALL = 110, 170, 32


def size_class(width: int, height: int) -> str:
    """``tiny``, ``single`` (one panel at a time), ``portrait`` (panels stacked), ``huge``, ``wide`` or ``narrow``."""
    if width < LEAST[0] or height < LEAST[1]:
        return "tiny"
    if width < 60 or height < 16:
        return "single"
    if width <= 84 and height >= 46:
        return "portrait"
    return "huge" if width >= HUGE else "wide" if width >= WIDE else "narrow"


def arranged(width: int, height: int, view: View, tab: str, zoomed: str, leading: str) -> frozenset[str]:
    """The panels to show. `tab` is in front below, `zoomed` the only one wanted, `leading` that of a small screen."""
    size = size_class(width, height)
    if size == "tiny":
        return frozenset({"small"})
    if zoomed or size == "single":
        return frozenset({zoomed or leading})
    main = {"graph", "tape"} if view == "both" else {view}
    if has_side_output(width, height):
        return frozenset({"node", "source", "side-output", *main})
    crowded = view == "both" and height < TALL
    return frozenset({"node", *main} if crowded else {"node", tab, *main})


def has_side_output(width: int, height: int) -> bool:
    """Whether the output has a panel of its own below the node."""
    return width >= WIDE and height >= TALL


def next_view(view: View) -> View:
    """The view after this one: tape, graph, both, and round."""
    return VIEWS[(VIEWS.index(view) + 1) % len(VIEWS)]


def opening_view(height: int, *, fits: bool) -> View:
    """A graph that fits opens on the graph; on a tall screen the tape stands below it; else the tape leads."""
    if height >= TALL:
        return "both"
    return "graph" if fits else "tape"
