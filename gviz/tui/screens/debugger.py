"""The main screen. One integer, the position, is the truth: keys move the cursor, everything else follows from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.reactive import reactive

from gviz.errors import GvizError
from gviz.trace.timeline import Timeline
from gviz.tui.commands.looking import wrapped_lines
from gviz.tui.config import Config
from gviz.tui.cursor import ENDS, LIVE_END, Arrival, Cursor
from gviz.tui.glyphs import Glyphs
from gviz.tui.language.command import Command, Said
from gviz.tui.language.parsing import spec_of
from gviz.tui.language.reading import Reader
from gviz.tui.lines import Line, line
from gviz.tui.screens.ahead import KeysAhead
from gviz.tui.screens.bindings import BINDINGS
from gviz.tui.screens.carry_out import carry_out, say
from gviz.tui.screens.composing import composed
from gviz.tui.screens.panels import Panels
from gviz.tui.screens.prompt_keys import PromptKeys
from gviz.tui.screens.searching import Search
from gviz.tui.screens.sheet import QuestionScreen
from gviz.tui.session import Session
from gviz.tui.themes import named


class DebuggerScreen(PromptKeys):
    """Status, timeline, panels and keys over one recording."""

    BINDINGS: ClassVar[list[BindingType]] = BINDINGS
    AUTO_FOCUS = None
    stop: reactive[Arrival] = reactive(Arrival(0, 0, ""), repaint=False)
    watched: reactive[tuple[str, ...]] = reactive((), repaint=False)
    length: reactive[int] = reactive(0, repaint=False)
    time: reactive[str] = reactive("REPLAY", repaint=False)

    def __init__(
        self,
        timeline: Timeline,
        title: str,
        position: int,
        glyphs: Glyphs,
        *,
        lesson: bool = False,
        opening: Sequence[str] = (),
        config: Config | None = None,
    ) -> None:
        super().__init__()
        self._opening = (*opening, *(["lesson"] if lesson else []))
        self.timeline = timeline
        self.session = Session(Cursor(timeline, position), glyphs, title)
        self._config = Config() if config is None else config
        self.session.own_keys = self._config.keys
        self.session.settings.values["keymap"] = self._config.keymap
        self.session.settings.values["motion"] = "on" if self._config.motion else "off"
        self.reader = Reader(self.session.cursor.breakpoints)
        self.program = title
        self.glyphs = glyphs
        self.ahead = KeysAhead()
        self.panels = Panels(self)
        self._search = Search(self)

    @property
    def cursor(self) -> Cursor:
        """Where the session stands."""
        return self.session.cursor

    def compose(self) -> ComposeResult:
        """All panels, always; which of them are seen is `arranged`."""
        self.panels.classify(update=False)
        yield from composed(self)

    def on_mount(self) -> None:
        """Stand at the starting position."""
        failed = self.cursor.position in self.timeline.failures
        self.show_arrival(Arrival(self.cursor.position, self.cursor.position, "error" if failed else "? for help"))
        self.call_after_refresh(self.panels.fit)
        self.follow_keymap()
        self.set_to("motion", self.session.settings.values["motion"])
        if self.timeline.dropped.events:
            self.say(self.timeline.dropped.words)
        for text in self._opening:
            self.run_line(text)

    def on_resize(self) -> None:
        """Another size may show other panels."""
        self.panels.fit()

    def run_command(self, command: Command) -> None:
        """Carry out a command of the prompt or a key; what cannot be done is said in the bottom row."""
        self._attempt(partial(self._carry_on, command))

    def _carry_on(self, command: Command) -> None:
        self.perform(command)
        self.go_on()

    def run_line(self, text: str) -> None:
        """Carry out what was typed, and what it leads to."""
        self.reader.typed(text)
        self._attempt(self.go_on)
        if self.reader.sign == ">":
            self.action_prompt(">")

    def go_on(self) -> None:
        """Carry out the lines that wait; raises GvizError at the first that cannot be."""
        while (command := self.reader.next()) is not None:
            if isinstance(command, Said):
                say(self, command.lines)
            else:
                self.perform(command)
            if self.busy:
                return

    @property
    def busy(self) -> bool:
        """Whether lines that wait have to wait on."""
        return self._search.goes_on

    def perform(self, command: Command) -> None:
        """Carry out a command, or begin what has to be done before; raises GvizError where that cannot be done."""
        self._search.cancel()
        if not spec_of(command).searches or not self._search.begin(command):
            carry_out(self, command)

    def found(self, command: Command) -> None:
        """Carry out a command, and what waits behind it, once the search is over."""
        self._attempt(partial(carry_out, self, command))
        self._attempt(self.go_on)

    def _pause(self) -> None:
        super()._pause()
        self._search.cancel()

    def action_stop(self) -> None:
        """Give up a search, stand still; else copy what is selected, or say how to leave."""
        if self._playing is not None or self._search.goes_on:
            self._pause()
        elif self.get_selected_text():
            self.action_copy_text()
        else:
            self.say("nothing runs that could be stopped; q leaves")

    def _attempt(self, act: Callable[[], None]) -> None:
        self.remark = ""
        try:
            act()
        except GvizError as error:
            self.reader.refused(error)
            say(self, (error.what + (f" ({error.hint})" if error.hint else ""),))

    def say(self, remark: str) -> None:
        """Say something in the bottom row until the next key."""
        self.remark = remark

    def follow_settings(self) -> None:
        """Let the panels know the breakpoints and what is watched."""
        self.breaks += 1
        self.watched = tuple(self.cursor.asker.watched)
        self.beside = self.session.beside
        self.wanted = self.session.folds.wanted(self.timeline.iteration_at(self.cursor.position))

    def show_frame(self) -> None:
        """Let the source follow ``up`` and ``down``, and all panels a node that was selected."""
        if self.selected != self.cursor.selected:
            self.selected = self.cursor.selected
        self.frame = self.session.frame_of(self.selected)

    def set_to(self, name: str, value: str) -> None:
        """Let a setting take effect; GvizError for a theme that there is not."""
        match name:
            case "theme":
                self.app.theme = named(value, self.app.available_themes)
            case "keymap":
                self.follow_keymap()
            case "motion":
                self.app.animation_level = "full" if value == "on" else "none"
            case "ascii":
                hint = "gviz --ascii, or GVIZ_ASCII=1"
                raise GvizError("the characters are chosen at the start", hint=hint, exit_code=2)

    def ask(self, question: str, lines: tuple[str, ...]) -> None:
        """Show some lines and a question; y goes on, any other key does not."""

        def draw(width: int) -> list[Line]:
            return [*wrapped_lines(lines, width), (), line((f"y: {question}   any other key: no", "key"))]

        self.app.push_screen(QuestionScreen(question, draw, self.glyphs), self._answered)

    def _answered(self, yes: bool | None) -> None:
        self.run_line("y" if yes else "n")

    def show_arrival(self, stop: Arrival) -> None:
        """Let every panel follow the cursor."""
        self.stop = stop
        if self.moment is None or self.moment.n != self.cursor.position:
            self.moment = self.timeline.at(self.cursor.position)
        self.show_frame()
        if stop.reason == LIVE_END or (stop.reason in ENDS and stop.position == stop.start):
            self.say(f"{stop.reason}: {ENDS[stop.reason]}")
        if stop.said:
            self.say(f"{stop.said[-1]}" + (f" (and {len(stop.said) - 1} before)" if len(stop.said) > 1 else ""))

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
        """Undo, one after the other: the search, the remark, the zoom."""
        if self._search.cancel():
            return
        if self.remark:
            self.remark = ""
        else:
            self.panels.unzoom()

    def action_quit(self) -> None:
        """Leave."""
        self.app.exit()
