"""How boxes and lines look at one moment: all that the drawing needs to know beside the layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gviz.render.layout import Edge, Key

Run = tuple[str, str]
"""``(text, style name)``; an empty style name is ordinary text."""

Line = tuple[Run, ...]

EdgeState = Literal["freed", "pending", "untracked", "plain", "active", "gradient", "flowing"]
"""A line once the graph is released (`freed`), before its user exists (`pending`), outside autograd (`untracked`),
while its user is made (`active`), after a gradient came over it (`gradient`) and just when one comes (`flowing`)."""

EDGE_STATES: tuple[EdgeState, ...] = ("freed", "pending", "untracked", "plain", "active", "gradient", "flowing")
"""In order of importance: where several lines of a net share a cell, the last of these is shown."""

EDGE_STYLES = ("muted", "muted", "muted", "edge", "current", "gradient", "current")
"""The style of a line by its state."""


class Face(NamedTuple):
    """How a box looks: its title and a note about its state stand in the upper border, its rows below it.

    `role` is leaf, parameter, constant, op, root, chip or module; `states` are among current, receiving, running,
    pending, freed, error, backward (made by a backward pass). `stop` marks a breakpoint.
    """

    title: str
    rows: tuple[Line, ...] = ()
    role: str = "op"
    states: frozenset[str] = frozenset()
    note: str = ""
    stop: bool = False


@dataclass(frozen=True, slots=True)
class Appearance:
    """One moment of a graph: a face per box, and the lines that are not plain."""

    faces: Mapping[Key, Face] = field(default_factory=dict)
    edges: Mapping[Edge, EdgeState] = field(default_factory=dict)
    selected: frozenset[Key] = frozenset()
