"""The state that every command works with, on the screen and line by line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.source.site import Frame
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.config import Config, Settings
from gviz.tui.cursor import Cursor
from gviz.tui.drawing.source import SourceMark
from gviz.tui.folds import Folds
from gviz.tui.glyphs import Glyphs
from gviz.tui.keymaps import Keys, keys_of
from gviz.tui.session_options import UNTITLED, Title
from gviz.tui.source_location import PausedStack, running_frame, source_place, stack_of

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView


@dataclass(frozen=True, slots=True)
class SourceListing:
    """The last source listing: some lines of a file, and the position at which they were listed."""

    mark: SourceMark
    lines: range
    seen_from: tuple[int, int, int]


@dataclass(slots=True)
class Session:
    """One debugger over one timeline: its position, what the user has set, and how it draws.

    `shown_once` contains the remarks that are shown only once.
    """

    cursor: Cursor
    glyphs: Glyphs
    title: Title = UNTITLED
    settings: Settings = field(default_factory=Settings)
    own_keys: Mapping[str, str] = field(default_factory=dict)
    _frame: tuple[int, int, PausedStack | None] = (0, 0, None)
    shown_once: set[str] = field(default_factory=set)
    listing: SourceListing | None = None
    folds: Folds = field(init=False)

    def __post_init__(self) -> None:
        self.folds = Folds(self.timeline)
        self.settings.values["ascii"] = "on" if self.glyphs.ascii else "off"

    def configure(self, config: Config) -> None:
        """Apply the user's configuration file."""
        self.own_keys = config.keys
        self.settings.values["keymap"] = config.keymap
        self.settings.values["motion"] = "on" if config.motion else "off"

    @property
    def timeline(self) -> Timeline:
        """The recording that the session shows."""
        return self.cursor.timeline

    @property
    def moment(self) -> Moment:
        """The moment at the position."""
        return self.timeline.at(self.cursor.position)

    @property
    def paused_stack(self) -> PausedStack | None:
        """The call stack of the program, if it was paused at this moment."""
        return self.cursor.paused_stacks.get(self.cursor.position)

    @property
    def stack(self) -> tuple[Frame, ...]:
        """The call stack that is shown, innermost frame first."""
        return stack_of(self.timeline, self.cursor.selected, self.paused_stack)

    @property
    def running(self) -> Frame | None:
        """The line that the program is at."""
        return running_frame(self.timeline, self.moment, self.paused_stack)

    @property
    def place(self) -> SourceMark | None:
        """The source location that is shown."""
        node = self.cursor.selected
        return source_place(self.timeline, self.moment, node, self.frame_of(node), self.paused_stack)

    @property
    def branch_view(self) -> BranchView | None:
        """The branch of a what-if that is shown next to the recording, if numbers were changed."""
        return self.cursor.asker.branch_view

    @property
    def keys(self) -> Keys:
        """The current keys."""
        return keys_of(self.settings.values["keymap"], self.own_keys)

    @property
    def subject(self) -> str:
        """The selected node as an expression: its name if that refers to it now, else its number."""
        node = self.cursor.selected
        if node not in self.timeline.nodes:
            return ""
        name = self.timeline.info(node).name
        return name if name and self._means(name) == node else f"#{node}"

    def _means(self, name: str) -> int:
        try:
            return self.cursor.asker.last(name, self.cursor.position)
        except GvizError:
            return 0

    def frame_of(self, node: int) -> int:
        """Return how many frames above the line that made this node the shown frame is."""
        of, depth, paused_stack = self._frame
        return depth if of == node and paused_stack is self.paused_stack else 0

    @property
    def seen_from(self) -> tuple[int, int, int]:
        """The moment, the selected node, and the frame that is shown of its call stack."""
        node = self.cursor.selected
        return self.cursor.position, node, self.frame_of(node)

    def look_from(self, frame: int) -> None:
        """Show the caller `frame` frames up, as long as the same node is selected at the same pause."""
        self._frame = self.cursor.selected, frame, self.paused_stack
