"""The main screen: what keys, the prompt and the mouse do. They move the cursor, and everything follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Size

from gviz.explain.names import frame_text
from gviz.trace.timeline import Timeline
from gviz.tui.arrangement import LEAST
from gviz.tui.arrival import ERROR, Arrival, Reason, saying
from gviz.tui.beginning import Beginning
from gviz.tui.config import Config
from gviz.tui.cursor import SELECTIONS
from gviz.tui.glyphs import Glyphs
from gviz.tui.keymaps import Keys
from gviz.tui.language.command import Command
from gviz.tui.language.parser import Reader
from gviz.tui.leaving import Leaving
from gviz.tui.screens import row_acts
from gviz.tui.screens.bindings import BINDINGS, follow_keymap
from gviz.tui.screens.carry_out import set_to
from gviz.tui.screens.composing import composed
from gviz.tui.screens.followed import FollowedScreen
from gviz.tui.screens.orders import Orders
from gviz.tui.screens.pages import PAGES
from gviz.tui.screens.panels import Panels
from gviz.tui.screens.playing import Player
from gviz.tui.screens.preparing import Preparation
from gviz.tui.screens.prompting import Prompting
from gviz.tui.screens.toggling import toggle_line
from gviz.tui.screens.views import LOOKS
from gviz.tui.session import Session
from gviz.tui.widgets.lists import ModuleTree
from gviz.tui.widgets.messages import LinePointed, NodePointed, Pressed, RowActed, Seek, Typed

RIGHT = 3
"""The right mouse button."""


class DebuggerScreen(FollowedScreen):
    """Status, timeline, panels and keys over one recording."""

    BINDINGS: ClassVar[list[BindingType]] = BINDINGS
    AUTO_FOCUS = None
    leaving: Leaving = "go on"
    BLANK = True

    def __init__(
        self, timeline: Timeline, beginning: Beginning, glyphs: Glyphs, *, config: Config | None = None
    ) -> None:
        super().__init__(timeline, Session(beginning.cursor(timeline), glyphs, beginning.title))
        self._opening = (*beginning.opening, *(["lesson"] if beginning.lesson else []))
        self._config = Config() if config is None else config
        self.session.configure(self._config)
        self.reader = Reader(self.session.cursor.breakpoints)
        self.glyphs = glyphs
        self.panels = Panels(self)
        self.prompting = Prompting(self)
        self.player = Player(self)
        self.orders = Orders(self)
        self.preparation = Preparation(self)
        self.session.folds.prepares = True

    @property
    def room(self) -> Size:
        """The part of the terminal that the debugger has for itself."""
        return self.app.size

    @property
    def least(self) -> Size:
        """The smallest terminal, as wide as this one or wider, in which there is room for a panel."""
        return Size(*LEAST)

    @property
    def headroom(self) -> int:
        """Rows at the top that no text is laid over."""
        return 0

    @property
    def offers_keys(self) -> bool:
        """Whether the bottom row names the most needed keys."""
        return True

    def compose(self) -> ComposeResult:
        """All panels, always; which of them are seen is `arranged`."""
        self.panels.classify(update=False)
        yield from composed(self)

    def on_mount(self) -> None:
        """Stand at the starting position."""
        here = self.cursor.position
        stood = self.session.stood
        why = saying("? for help") if stood is None else Reason("held", f"at {frame_text(stood.frames[0], 30)}")
        why = ERROR if here in self.timeline.failures else why
        self.show_arrival(Arrival(here, here, why))
        self.panels.fit()
        self.follow_keymap()
        set_to(self, "motion", self.session.settings.values["motion"])
        if self.timeline.dropped.events:
            self.say(self.timeline.dropped.words)
        for text in self._opening:
            self.run_line(text)

    def show_arrival(self, stop: Arrival) -> None:
        """Let every panel follow the cursor; a large graph is read first."""
        super().show_arrival(stop)
        self.preparation.begin()

    def show_prepared(self) -> None:
        """Let the panels know that the graph of the iteration has been read."""
        self.follow_settings()
        self.panels.fit()
        for tree in self.query(ModuleTree):
            tree.draw_soon()

    def on_resize(self) -> None:
        """Another size may show other panels."""
        self.panels.fit()

    def run_command(self, command: Command) -> None:
        """Carry out a command of the prompt or a key."""
        self.orders.run(command)

    def run_line(self, text: str) -> None:
        """Carry out what was typed, and what it leads to."""
        self.orders.run_line(text)

    @property
    def busy(self) -> bool:
        """Whether lines that wait have to wait on."""
        return self.orders.errand.goes_on

    def perform(self, command: Command) -> None:
        """Carry out a command, or begin what has to be done before; raises GvizError where that cannot be done."""
        self.orders.perform(command)

    def pause(self) -> None:
        """Stand still, and give up an errand."""
        self.player.pause()
        self.orders.errand.cancel()

    def follow_keymap(self) -> None:
        """Let keys, bottom row and prompt be those of the keymap."""
        keys = self.session.keys
        follow_keymap(self, keys)
        self.prompting.follow(keys, self.openers(keys))

    def openers(self, keys: Keys) -> Mapping[str, Callable[[], None]]:
        """What asks for more keys, by its key, beside the prompt: nothing."""
        return {}

    def action_travel(self, name: str) -> None:
        """Move in time by a command."""
        self.pause()
        self.run_command(Command(name))

    def action_do(self, name: str, argument: str = "") -> None:
        """Carry out any other command."""
        self.run_command(Command(name, 1, argument))

    def action_ask(self, what: str) -> None:
        """Open the prompt for one of `PROMPTS`."""
        self.prompting.ask(what)

    def action_await_letter(self, purpose: str) -> None:
        """Let the next key name a bookmark."""
        self.prompting.await_letter(purpose)

    def action_open(self, page: str) -> None:
        """Lay one of `PAGES` over the panels."""
        PAGES[page](self)

    def action_seek(self, position: int) -> None:
        """To an event; -1 is the last."""
        self.pause()
        self._move(lambda: self.cursor.seek(len(self.timeline) if position < 0 else position))

    def action_select(self, how: str, where: Any) -> None:
        """Select a node by one of `SELECTIONS`."""
        self.orders.attempt(lambda: self.orders.begin("search", SELECTIONS[how](self.cursor, where)))

    def action_look(self, what: str) -> None:
        """Change what is looked at by one of `LOOKS`."""
        LOOKS[what](self)

    def _move(self, move: Callable[[], Arrival]) -> None:
        self.orders.attempt(lambda: self.show_arrival(move()))

    def action_play(self) -> None:
        """Step by itself until a key or the end."""
        played = self.player.plays
        self.pause()
        if not played:
            self.player.play()

    def action_stop(self) -> None:
        """Give up an errand, stand still; else copy what is selected, or say how to leave."""
        if self.player.plays or self.orders.errand.goes_on:
            self.pause()
        elif self.get_selected_text():
            self.action_copy_text()
        else:
            self.say("nothing runs that could be stopped; q leaves")

    def action_detail(self) -> None:
        """Numbers in full, or short."""
        self.full = not self.full

    async def action_suspend(self) -> None:
        """Stop, until the shell says fg."""
        self.say("in the background: fg comes back")
        await self.run_action("app.suspend_process")

    def action_view(self) -> None:
        """Graph, tape, both."""
        self.panels.next_view()

    def action_panel(self, panel: str) -> None:
        """Bring a panel to the front and focus it."""
        self.panels.bring(panel)

    def action_zoom(self) -> None:
        """The focused panel alone, and back."""
        self.panels.zoom()

    def action_leave(self) -> None:
        """Undo, one after the other: the errand, the remark, the zoom."""
        if self.orders.errand.cancel():
            return
        if self.remark:
            self.remark = ""
        else:
            self.panels.unzoom()

    def action_quit(self) -> None:
        """Leave."""
        self.app.exit()

    def leave_at_once(self) -> None:
        """Leave without a question."""
        self.app.exit()

    def on_key(self, event: events.Key) -> None:
        """Take keys that must not wait for the bindings."""
        self.prompting.take_key(event)

    def on_paste(self, event: events.Paste) -> None:
        """Put the first line of what is pasted over the panels into the prompt: nothing of it acts before Enter."""
        text = next((row.strip() for row in event.text.splitlines() if row.strip()), "").removeprefix(":")
        if text:
            self.prompting.open(":", text)

    def on_typed(self, message: Typed) -> None:
        """A command or a search was typed, or the prompt was left."""
        self.prompting.typed(message)

    def on_click(self, event: events.Click) -> None:
        """The right button opens the menu, after the click has selected what it points at."""
        if event.button == RIGHT and not self.panels.too_small:
            self.call_later(self.action_open, "menu")

    def on_seek(self, message: Seek) -> None:
        """Somebody pointed at an event."""
        self.action_seek(message.position)

    def on_node_pointed(self, message: NodePointed) -> None:
        """Somebody pointed at a node."""
        self._move(lambda: self.cursor.select(message.node))
        if message.run:
            self.action_travel("to")

    def on_pressed(self, message: Pressed) -> None:
        """A button went down in a panel of nodes."""
        self.set_focus(message.panel, scroll_visible=False)
        if message.node:
            self._move(lambda: self.cursor.select(message.node))

    def on_line_pointed(self, message: LinePointed) -> None:
        """Somebody pointed at a line."""
        toggle_line(self, message)

    def on_row_acted(self, message: RowActed) -> None:
        """Somebody wants something of a row of a list."""
        self.orders.attempt(lambda: row_acts.act(self, message))
