"""How a scene is written in the language of Graphviz, whatever it shows."""

from __future__ import annotations

from dataclasses import dataclass

from gviz.render.graphviz.placing import Placing
from gviz.render.theme import LIGHT, Direction, Theme


@dataclass(frozen=True, slots=True)
class Manner:
    """In which theme, and which way the graph flows; every id begins with `prefix`.

    With a `placing` everything stands where that says, and a line that it does not know is not drawn.
    """

    theme: Theme = LIGHT
    prefix: str = "gviz"
    direction: Direction = "auto"
    placing: Placing | None = None


USUAL = Manner()
