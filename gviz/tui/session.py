"""What every command works with, on the screen and line by line."""

from __future__ import annotations

from dataclasses import dataclass, field

from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.cursor import Cursor
from gviz.tui.folds import Folds
from gviz.tui.glyphs import Glyphs


@dataclass(slots=True)
class Session:
    """One debugger over one timeline: where it stands, what was set, and how it draws."""

    cursor: Cursor
    glyphs: Glyphs
    folds: Folds = field(init=False)

    def __post_init__(self) -> None:
        self.folds = Folds(self.timeline)

    @property
    def timeline(self) -> Timeline:
        """What is looked at."""
        return self.cursor.timeline

    @property
    def moment(self) -> Moment:
        """The moment it stands at."""
        return self.timeline.at(self.cursor.position)
