"""Which panels are on the screen, by its size and what the user asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

View = Literal["graph", "tape", "both"]
VIEWS: tuple[View, ...] = ("tape", "graph", "both")

PANELS = ("source", "output", "node", "tape", "graph")
"""Panels in the order of the digits 1 to 5."""

LEAST = (40, 10)
WIDE, HUGE, TALL = 110, 170, 32
BELOW = 8
"""Rows of the panel below the main one, as in app.tcss."""


def size_class(width: int, height: int) -> str:
    """``tiny``, ``single`` (one panel at a time), ``portrait`` (panels stacked), ``huge``, ``wide`` or ``narrow``."""
    if width < LEAST[0] or height < LEAST[1]:
        return "tiny"
    if width < 60 or height < 16:
        return "single"
    if width <= 84 and height >= 46:
        return "portrait"
    return "huge" if width >= HUGE else "wide" if width >= WIDE else "narrow"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asked for: a view, the panel in front below it (`asked`: by its digit), one panel only."""

    view: View
    tab: str
    asked: bool
    zoomed: str
    leading: str


def arranged(width: int, height: int, wishes: Wishes) -> frozenset[str]:
    """The panels to show. On a low screen a graph has the whole column, unless the panel below was asked for."""
    size = size_class(width, height)
    if size == "tiny":
        return frozenset({"small"})
    if wishes.zoomed or size == "single":
        return frozenset({wishes.zoomed or wishes.leading})
    main = {"graph", "tape"} if wishes.view == "both" else {wishes.view}
    if has_side_output(width, height):
        return frozenset({"node", "source", "side-output", *main})
    crowded = "graph" in main and height < TALL and not wishes.asked
    return frozenset({"node", *main} if crowded else {"node", wishes.tab, *main})


def graph_area(width: int, height: int, view: View, nodes: int) -> tuple[int, int]:
    """The cells inside the graph panel in a view, of a recording with so many nodes."""
    side = {"huge": 60, "wide": 44, "narrow": 33}.get(size_class(width, height), 0)
    below = {"huge": 14, "wide": 9}.get(size_class(width, height), BELOW) if height >= TALL else 0
    body = height - 3 - says_what_happened(width, height)
    tape = min(nodes + 3, (body - below) // 2) if view == "both" else 0
    return width - side - 2, body - below - tape - 2


def says_what_happened(width: int, height: int) -> bool:
    """Whether a row has room for what the event was."""
    return size_class(width, height) not in ("tiny", "single")


def has_side_output(width: int, height: int) -> bool:
    """Whether the output has a panel of its own below the node."""
    return width >= WIDE and height >= TALL


def next_view(view: View) -> View:
    """The view after this one: tape, graph, both, and round."""
    return VIEWS[(VIEWS.index(view) + 1) % len(VIEWS)]


def opening_view(height: int, *, fits_alone: bool, fits_above_tape: bool) -> View:
    """A graph that fits opens on the graph, with the tape below where there is room; else the tape leads."""
    if height >= TALL:
        return "graph" if fits_alone and not fits_above_tape else "both"
    return "graph" if fits_alone else "tape"
