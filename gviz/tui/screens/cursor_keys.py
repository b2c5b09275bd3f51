"""The keys that move the cursor: through time, and from node to node."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen
from textual.timer import Timer

from gviz.trace.timeline import Timeline
from gviz.tui.cursor import Arrival, Cursor
from gviz.tui.language.command import Command
from gviz.tui.messages import NodePointed, Seek
from gviz.tui.session import Session

PLAY_SECONDS = 0.4


class CursorKeys(Screen[None]):
    """What a key does to the cursor; the screen below it says how that is shown."""

    timeline: Timeline
    session: Session
    _playing: Timer | None = None

    @property
    def cursor(self) -> Cursor:
        """Where the session stands."""
        raise NotImplementedError

    def run_command(self, command: Command) -> None:
        """Carry out a command."""
        raise NotImplementedError

    def _attempt(self, act: Callable[[], None]) -> None:
        raise NotImplementedError

    def show_arrival(self, stop: Arrival) -> None:
        """Let everything follow the cursor."""
        raise NotImplementedError

    def action_travel(self, name: str) -> None:
        """Move in time by a step of some size."""
        self._pause()
        self.run_command(Command(name))

    def action_travel_to(self, backward: bool) -> None:
        """To the next (previous) event of the selected node."""
        self._pause()
        self.run_command(Command("reverse-to" if backward else "to"))

    def action_seek(self, position: int) -> None:
        """To an event; -1 is the last."""
        self._pause()
        self._attempt(lambda: self.show_arrival(self.cursor.seek(len(self.timeline) if position < 0 else position)))

    def action_back(self) -> None:
        """To the position jumped from last."""
        self.run_command(Command("back"))

    def action_neighbour(self, steps: int) -> None:
        """Select the node below or above in the tape."""
        self._attempt(lambda: self.show_arrival(self.cursor.neighbour(steps)))

    def action_edge(self, which: int) -> None:
        """Select the first or last node of the tape."""
        if len(self.timeline.nodes):
            self._attempt(lambda: self.show_arrival(self.cursor.select(int(self.timeline.nodes[which]))))

    def action_relative(self, kin: str) -> None:
        """Select an input or a user of the node; pressed again at the same place, the next one."""
        self._attempt(lambda: self.show_arrival(self.cursor.relative(kin)))

    def action_again(self, backward: bool) -> None:
        """Repeat the search."""
        self._attempt(lambda: self.show_arrival(self.cursor.again(backward=backward)))

    def action_play(self) -> None:
        """Step by itself until a key or the end."""
        if self._playing is not None:
            self._pause()
        else:
            self.play()

    def play(self, speed: int = 0) -> None:
        """Step by itself, `speed` times as fast as usual (0: as it is set)."""
        self._pause()
        speed = speed or int(self.session.settings.values["speed"].removesuffix("x"))
        self._playing = self.set_interval(PLAY_SECONDS / speed, self._play_on)

    def action_stop_playing(self) -> None:
        """Stand still."""
        self._pause()

    def _play_on(self) -> None:
        before = self.cursor.position
        self.run_command(Command("step"))
        if self.cursor.position == before:
            self._pause()

    def _pause(self) -> None:
        if self._playing is not None:
            self._playing.stop()
            self._playing = None

    def on_seek(self, message: Seek) -> None:
        """Somebody pointed at an event."""
        self.action_seek(message.position)

    def on_node_pointed(self, message: NodePointed) -> None:
        """Somebody pointed at a node."""
        self._attempt(lambda: self.show_arrival(self.cursor.select(message.node)))
        if message.run:
            self.action_travel_to(False)
