"""The state that every command works with, on the screen and line by line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.source.call_stack import Frame
from gviz.trace.timeline import Moment, Timeline
from gviz.tui.config import Config, Settings
from gviz.tui.cursor import Cursor
from gviz.tui.drawing.source import SourceMark
from gviz.tui.glyphs import Glyphs
from gviz.tui.graph_view import Folds
from gviz.tui.keymaps import Keys, keys_of
from gviz.tui.session_options import UNTITLED, Title
from gviz.tui.source_location import PausedStack, running_frame, source_place, stack_of

if TYPE_CHECKING:
    from gviz.rerun.branch import BranchView


@dataclass(frozen=True, slots=True)
class SourceListing:
    """The last source listing: some lines of a file, and the viewpoint of the session when they were listed."""

    mark: SourceMark
    lines: range
    viewpoint: tuple[int, int, int]


@dataclass(slots=True)
class Session:
    """One debugger over one timeline: its position, what the user has set, and how it draws.

    `own_keys` are the keys of the user's configuration file. `shown_once` has the remarks that must not be shown again.
    `is_running` is whether a program that the debugger controls runs at the moment.
    """

    cursor: Cursor
    glyphs: Glyphs
    title: Title = UNTITLED
    settings: Settings = field(default_factory=Settings)
    own_keys: Mapping[str, str] = field(default_factory=dict)
    _frame: tuple[int, int, PausedStack | None] = (0, 0, None)
    """The caller that is shown: its node, the number of frames up, and the pause of the program."""
    shown_once: set[str] = field(default_factory=set)
    listing: SourceListing | None = None
    is_running: bool = False
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
        """The timeline of the recording that the session shows."""
        return self.cursor.timeline

    @property
    def moment(self) -> Moment:
        """The moment at the position of the cursor."""
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
    def current_frame(self) -> Frame | None:
        """The frame of the line that the program is at."""
        return running_frame(self.timeline, self.moment, self.paused_stack)

    @property
    def source_mark(self) -> SourceMark | None:
        """The source location that is shown."""
        node = self.cursor.selected
        return source_place(self.timeline, self.moment, node, self.frame_of(node), self.paused_stack)

    @property
    def branch_view(self) -> BranchView | None:
        """If a what-if has changed numbers, the branch that is shown next to the recording."""
        return self.cursor.asker.branch_view

    @property
    def keys(self) -> Keys:
        """The current keys."""
        return keys_of(self.settings.values["keymap"], self.own_keys)

    @property
    def subject(self) -> str:
        """The selected node as an expression: its name if that refers to it at this moment, else a number: ``#4``."""
        node = self.cursor.selected
        if node not in self.timeline.nodes:
            return ""
        name = self.timeline.info(node).name
        return name if name and self._node_named(name) == node else f"#{node}"

    def _node_named(self, name: str) -> int:
        """Return the node that a name refers to at this moment; 0 if there is none."""
        try:
            return self.cursor.asker.last(name, self.cursor.position)
        except GvizError:
            return 0

    def frame_of(self, node: int) -> int:
        """Return how many frames the shown frame is above the line that created this node."""
        shown_node, depth, paused_stack = self._frame
        return depth if shown_node == node and paused_stack is self.paused_stack else 0

    @property
    def viewpoint(self) -> tuple[int, int, int]:
        """The position, the selected node, and which frame of its call stack is shown."""
        node = self.cursor.selected
        return self.cursor.position, node, self.frame_of(node)

    def show_caller(self, depth: int) -> None:
        """Show the caller `depth` frames up, as long as the same node is selected at the same pause."""
        self._frame = self.cursor.selected, depth, self.paused_stack
