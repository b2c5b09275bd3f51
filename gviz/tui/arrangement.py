"""Which panels are on the screen, by its size and what the user asked for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from gviz.render.boxes.graph_options import Density

View = Literal["graph", "tape", "both"]
VIEWS: tuple[View, ...] = ("tape", "graph", "both")

TABS = ("source", "watch", "breaks", "output", "stack", "saved", "modules")
"""The panels that share the place below the main panel; one of them is in front."""

PANELS = (*TABS, "node", "tape", "graph")
"""Panels in the order of the digits: 1 to 9, then 0."""

BESIDE = ("side-watch", "side-output", "side-modules")
"""Panels of their own where there is room."""

STANDS_IN = {"watch": "side-watch", "breaks": "side-watch", "output": "side-output", "modules": "side-modules"}
"""The panel of its own that shows the contents of a tab; one shows both watches and breakpoints."""

LEAST = (40, 10)
WIDE, HUGE, TALL, LARGE = 110, 170, 32, 44
ROOMY = (60, 16)
"""Columns and rows in which boxes with a row for each number can be seen with what they are connected to."""

BELOW = 8
"""Rows of the panel below the main one, as in app.tcss."""

SOME = 9
"""Rows of a part of a graph in which a box is seen with one that it is connected to."""


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
    """What the user asked for: a view, the panel in front below it (`asked`: by its digit), one panel only.

    Without `modules` the recording called none, and their tree needs no place of its own. Without `watches` nothing is
    watched and no breakpoint is set: these have one line, and the modules have their place.
    """

    view: View
    tab: str
    asked: bool
    zoomed: str
    leading: str
    modules: bool = False
    watches: bool = True


def arranged(width: int, height: int, wishes: Wishes) -> frozenset[str]:
    """The panels to show. On a low screen a graph has the whole column, unless the panel below is asked for."""
    size = size_class(width, height)
    if size == "tiny":
        return frozenset({"small"})
    if wishes.zoomed or size == "single":
        return frozenset({wishes.zoomed or wishes.leading})
    main = {"graph", "tape"} if wishes.view == "both" else {wishes.view}
    beside = own_panels(width, height, modules=wishes.modules, watches=wishes.watches)
    if beside:
        tab = wishes.tab if in_its_place(wishes.tab, beside) == wishes.tab else TABS[0]
        return frozenset({"node", tab, *beside, *main})
    crowded = "graph" in main and height < TALL and not wishes.asked
    return frozenset({"node", *main} if crowded else {"node", wishes.tab, *main})


def graph_area(width: int, height: int, view: View, nodes: int) -> tuple[int, int]:
    """The cells inside the graph panel in a view, of a recording with `nodes` nodes."""
    side = {"huge": 60, "wide": 44, "narrow": 32}.get(size_class(width, height), 0)
    below = {"huge": 14, "wide": 9}.get(size_class(width, height), BELOW) if height >= TALL else 0
    body = height - 3 - says_what_happened(width, height)
    tape = min(nodes + 3, (body - below) // 2) if view == "both" else 0
    return width - side - 2, body - below - tape - 2


def label_density(width: int, height: int) -> Density:
    """How much text the boxes of a graph have in a panel of this size; only the size decides, so no step changes it."""
    return "short" if width >= ROOMY[0] and height >= ROOMY[1] else "brief"


def says_what_happened(width: int, height: int) -> bool:
    """Whether a row has room for what the event was."""
    return size_class(width, height) not in ("tiny", "single")


def own_panels(width: int, height: int, *, modules: bool, watches: bool = True) -> frozenset[str]:
    """The panels that need not share their place: what is watched, the modules, on large screens the output.

    The modules, where there are any, have the place of watches and breakpoints while there are none.
    """
    if width < WIDE or height < TALL:
        return frozenset()
    large = width >= HUGE and height >= LARGE
    tree = {"side-modules"} if modules and (large or not watches) else set[str]()
    return frozenset({"side-watch", *tree, *(["side-output"] if large else [])})


def in_its_place(panel: str, shown: Collection[str]) -> str:
    """The widget that shows a panel: the one in a place of its own, if that is shown, else the tab."""
    own = STANDS_IN.get(panel, panel)
    return own if own in shown else panel


def numbered(panel: str, name: str) -> str:
    """The name of a panel after the digit that brings it to the front."""
    return f"{(PANELS.index(panel) + 1) % 10} {name}"


def next_view(view: View) -> View:
    """The view after this one: tape, graph, both, and round."""
    return VIEWS[(VIEWS.index(view) + 1) % len(VIEWS)]


def opening_view(width: int, height: int, *, fits_alone: bool, fits_above_tape: bool) -> View:
    """The view to begin with: the graph, with the tape below on a tall screen.

    The tape leads where only one panel has room and the graph does not fit.
    """
    if height >= TALL:
        return "graph" if fits_alone and not fits_above_tape else "both"
    return "graph" if fits_alone or size_class(width, height) != "single" else "tape"
