"""Chooses the panels on the screen, by its size and by what the user asked for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from gviz.render.boxes.graph_options import Density

View = Literal["graph", "tape", "both"]
VIEWS: tuple[View, ...] = ("tape", "graph", "both")

TABS = ("source", "watch", "breaks", "output", "stack", "saved", "modules")
"""The panels that share the area below the main panel; one of them is in front."""

PANELS = (*TABS, "node", "tape", "graph")
"""Panels in the order of the digits: 1 to 9, then 0."""

SIDE_PANELS = ("side-watch", "side-output", "side-modules")
"""Panels that have an area of their own on large screens."""

SIDE_PANEL_OF = {"watch": "side-watch", "breaks": "side-watch", "output": "side-output", "modules": "side-modules"}
"""The panel with an area of its own that shows the contents of a tab; one shows both watches and breakpoints."""

SMALLEST = (40, 10)
WIDE, HUGE, TALL, LARGE = 110, 170, 32, 44
ROOMY = (60, 16)
"""The least columns and rows for boxes with a row for each number: a box is visible with its neighbours."""

TAB_ROWS = 8
"""Rows of the panel below the main one, as in app.tcss."""

LEAST_GRAPH_ROWS = 9
"""The least rows for a part of a graph: a box is visible with one of its neighbours."""


def size_class(width: int, height: int) -> str:
    """Return ``tiny``, ``single`` (one panel at a time), ``portrait`` (stacked), ``huge``, ``wide`` or ``narrow``."""
    if width < SMALLEST[0] or height < SMALLEST[1]:
        return "tiny"
    if width < 60 or height < 16:
        return "single"
    if width <= 84 and height >= 46:
        return "portrait"
    return "huge" if width >= HUGE else "wide" if width >= WIDE else "narrow"


@dataclass(frozen=True, slots=True)
class PanelChoice:
    """What the user asked for: a view, a tab (`tab_chosen`: by its digit), one panel only (`zoomed`).

    `modules` says whether the recording has module calls; otherwise their tree needs no area of its own. `watches` says
    whether there are watches or breakpoints; otherwise these take one line, and the modules get their area.
    """

    view: View
    tab: str
    tab_chosen: bool
    zoomed: str
    leading: str
    modules: bool = False
    watches: bool = True


def visible_panels(width: int, height: int, choice: PanelChoice) -> frozenset[str]:
    """Return the panels to show. On a low screen the graph fills the column, unless the user asks for a tab."""
    size = size_class(width, height)
    if size == "tiny":
        return frozenset({"small"})
    if choice.zoomed or size == "single":
        return frozenset({choice.zoomed or choice.leading})
    main = {"graph", "tape"} if choice.view == "both" else {choice.view}
    side = own_panels(width, height, modules=choice.modules, watches=choice.watches)
    if side:
        tab = choice.tab if widget_of(choice.tab, side) == choice.tab else TABS[0]
        return frozenset({"node", tab, *side, *main})
    crowded = "graph" in main and height < TALL and not choice.tab_chosen
    return frozenset({"node", *main} if crowded else {"node", choice.tab, *main})


def graph_area(width: int, height: int, view: View, nodes: int) -> tuple[int, int]:
    """Return the columns and rows inside the graph panel in a view, for a recording with `nodes` nodes."""
    side = {"huge": 60, "wide": 44, "narrow": 32}.get(size_class(width, height), 0)
    below = {"huge": 14, "wide": 9}.get(size_class(width, height), TAB_ROWS) if height >= TALL else 0
    body = height - 3 - has_event_row(width, height)
    tape = min(nodes + 3, (body - below) // 2) if view == "both" else 0
    return width - side - 2, body - below - tape - 2


def label_density(width: int, height: int) -> Density:
    """Return how much text the boxes of a graph contain. Only the panel's size decides, so no step changes it."""
    return "short" if width >= ROOMY[0] and height >= ROOMY[1] else "brief"


def has_event_row(width: int, height: int) -> bool:
    """Return whether the screen has a row for the description of the event."""
    return size_class(width, height) not in ("tiny", "single")


def own_panels(width: int, height: int, *, modules: bool, watches: bool = True) -> frozenset[str]:
    """Return the panels with an area of their own: watches, modules and, on large screens, the output.

    While there are no watches and breakpoints, the modules, if there are any, take their area.
    """
    if width < WIDE or height < TALL:
        return frozenset()
    large = width >= HUGE and height >= LARGE
    tree = {"side-modules"} if modules and (large or not watches) else set[str]()
    return frozenset({"side-watch", *tree, *(["side-output"] if large else [])})


def widget_of(panel: str, shown: Collection[str]) -> str:
    """Return the widget that shows a panel: the one with an area of its own if it is shown, else the tab."""
    own = SIDE_PANEL_OF.get(panel, panel)
    return own if own in shown else panel


def panel_title(panel: str, name: str) -> str:
    """Return the name of a panel after the digit that brings it to the front."""
    return f"{(PANELS.index(panel) + 1) % 10} {name}"


def next_view(view: View) -> View:
    """Return the view after this one, in the cycle tape, graph, both."""
    return VIEWS[(VIEWS.index(view) + 1) % len(VIEWS)]


def opening_view(width: int, height: int, *, fits_alone: bool, fits_above_tape: bool) -> View:
    """Return the first view: the graph, with the tape below it on a tall screen.

    If only one panel has room and the graph does not fit, it is the tape.
    """
    if height >= TALL:
        return "graph" if fits_alone and not fits_above_tape else "both"
    return "graph" if fits_alone or size_class(width, height) != "single" else "tape"
