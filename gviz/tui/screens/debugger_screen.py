"""The main screen: what keys, the prompt and the mouse do. They move the cursor, and the panels follow it.

`DebuggerScreen` shows a recording, `PausedProgramScreen` what a program has done that waits in ``gviz.breakpoint()``.
The screen over a program that ``gviz run`` controls is in ``live_screen.py``. `GraphReading` reads the graph of a large
iteration in the background.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType

from gviz.errors import GvizError
from gviz.explain.findings.gradient_values.nan_origin import last_alarm
from gviz.system.cooperative_work import LongWork, paced
from gviz.trace.timeline import Timeline
from gviz.tui.config import Config
from gviz.tui.cursor import SELECTIONS, Selection
from gviz.tui.glyphs import Glyphs
from gviz.tui.keymaps import Keys, first
from gviz.tui.language.command import Command
from gviz.tui.panel_choice import PANELS
from gviz.tui.screens.controller import Controller, apply_setting
from gviz.tui.screens.key_and_row_actions import BINDINGS, LOOKS, act_on_row, follow_keymap, toggle_line
from gviz.tui.screens.overlay_pages import PAGES
from gviz.tui.screens.panel_stack import Panels, compose_panels
from gviz.tui.screens.prompt_control import Prompts
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.session import Session
from gviz.tui.session_options import EXIT_ANSWERS, EXIT_COMMANDS, EXIT_QUESTION, ExitAction, SessionOptions
from gviz.tui.source_location import pause_text
from gviz.tui.stop_reason import END, ERROR, CursorStop, Reason, as_remark
from gviz.tui.widgets.graph_canvas import GraphCanvas
from gviz.tui.widgets.list_panels import ModuleTree
from gviz.tui.widgets.node_panel import NodePanel
from gviz.tui.widgets.panel_messages import LinePointed, NodePointed, OverviewPointed, Pressed, RowActed, Seek, Typed

RIGHT = 3
"""The right mouse button."""


DRAWN_ONCE = frozenset({"step", "reverse-step", "next", "reverse-next"})
"""The moves of keys that people hold down."""


def _no_repeats() -> int:
    return 0


class DebuggerScreen(SessionScreen):
    """Status, timeline, panels and keys over one recording."""

    BINDINGS: ClassVar[list[BindingType]] = BINDINGS
    AUTO_FOCUS = None
    exit_action: ExitAction = "continue"
    BLANK = True

    def __init__(
        self, timeline: Timeline, options: SessionOptions, glyphs: Glyphs, *, config: Config | None = None
    ) -> None:
        super().__init__(timeline, Session(options.cursor(timeline), glyphs, options.title), glyphs)
        self.key_repeats: Callable[[], int] = _no_repeats
        """Removes waiting keys that repeat the current one, and returns their number; set by the application."""
        self._opening = (*options.opening, *(["lesson"] if options.lesson else []))
        self._config = Config() if config is None else config
        self.session.configure(self._config)
        self.panels = Panels(self)
        self.prompts = Prompts(self, self.panels)
        self.controller = Controller(self, self.panels)
        self.graph_reading = GraphReading(self, self.panels)
        self.session.folds.reads_later = self.session.folds.chooses_views = True

    def compose(self) -> ComposeResult:
        """Yield all panels, always; `visible_panels` decides which of them are visible."""
        self.panels.classify(update=False)
        yield from compose_panels(self)

    def on_mount(self) -> None:
        """Show the starting position, and run the opening commands."""
        here = self.cursor.position
        pause = self.session.paused_stack
        why = as_remark("?: help · q: quit") if pause is None else Reason("held", pause_text(self.timeline, pause, 30))
        why = ERROR if here in self.timeline.failures else why
        self.show_stop(CursorStop(here, here, why))
        self.panels.fit()
        self.follow_keymap()
        apply_setting(self, "motion", self.session.settings.values["motion"])
        if self.opening_remark:
            self.show_remark(self.opening_remark)
        for text in self._opening:
            self.run_line(text)

    @property
    def opening_remark(self) -> str:
        """What the bottom row shows at first: what the recording does not have of the run."""
        return self.timeline.missing

    def follow_settings(self) -> None:
        """Let the panels follow what is set in the session."""
        super().follow_settings()
        self.panels.follow_contents()

    def show_stop(self, stop: CursorStop) -> None:
        """Let every panel follow the cursor; a large graph is read first."""
        super().show_stop(stop)
        self.graph_reading.begin()

    def on_resize(self) -> None:
        """Choose the panels for the new size."""
        self.panels.fit()

    # What the parts of the screen request from each other (see `SessionScreen`).

    @property
    def busy(self) -> bool:
        """Whether waiting lines must keep waiting, for the work of a command."""
        return self.controller.task.is_busy

    def show_result_of(self, act: Callable[[], None]) -> None:
        """Call `act`, then show its answers. If it raises GvizError, show the reason in the bottom row."""
        self.controller.show_result_of(act)

    def run_command(self, command: Command) -> None:
        """Run a command of the prompt or a key, then the waiting lines, and show the answers."""
        self.controller.run_command(command)

    def run_line(self, text: str) -> None:
        """Run a typed line, and the lines that follow from it, and show the answers."""
        self.controller.run_line(text)

    def run_one(self, command: Command) -> None:
        """Run one command: show its answer or, if it is slow, start its work. Raises GvizError if it fails."""
        self.controller.run_one(command)

    def pause(self) -> None:
        """Stop playing, and cancel the work of a command."""
        self.controller.pause()

    def open_prompt(self, sign: str, text: str = "", suggestion: str = "") -> None:
        """Open the prompt with a text, and with another after it that typing replaces."""
        self.prompts.open(sign, text, suggestion)

    def take_key(self, event: events.Key) -> None:
        """Stop a key that must not wait for the bindings, and run its action."""
        self.prompts.take_key(event)

    def follow_keymap(self) -> None:
        """Apply the keymap to the bindings, the bottom row and the prompt."""
        keys = self.session.keys
        follow_keymap(self, keys)
        self.prompts.follow(keys, self.openers(keys))

    def openers(self, keys: Keys) -> Mapping[str, Callable[[], None]]:
        """Return the keys that read more keys, with their actions, apart from those of the prompt: none."""
        return {}

    # Actions of keys, named in `gviz.tui.keymaps`.

    def action_travel(self, name: str) -> None:
        """Move in time by a command. For a key that is held down, repeat it as often as it was sent, then draw once."""
        self.pause()
        times = 1 + (self.key_repeats() if name in DRAWN_ONCE else 0)
        for _ in range(times):
            self.run_command(Command(name))

    def action_do(self, name: str, argument: str = "") -> None:
        """Run any other command."""
        self.run_command(Command(name, 1, argument))

    def action_ask(self, what: str) -> None:
        """Open the prompt for one of `PROMPTS`."""
        self.prompts.ask(what)

    def action_await_letter(self, purpose: str) -> None:
        """Let the next key name a bookmark."""
        self.prompts.await_letter(purpose)

    def action_open(self, page: str) -> None:
        """Open one of `PAGES` over the panels."""
        PAGES[page](self)

    def action_seek(self, position: int) -> None:
        """Go to an event; -1 is the last."""
        self.pause()
        self._move(lambda: self.cursor.seek(len(self.timeline) if position < 0 else position))

    def action_select(self, how: str, where: Any) -> None:
        """Select a node by one of `SELECTIONS`."""

        def act() -> None:
            select = self._in_other_box(how) or SELECTIONS[how]
            self.controller.answer_or_begin("search", select(self.cursor, where))

        self.show_result_of(act)

    def _in_other_box(self, how: str) -> Selection | None:
        """Return the selection of a node in another box of the graph, where a box may represent many nodes.

        It is None if nothing is collapsed, and for the next node while the tape shows all nodes.
        """
        node, here, folds = self.cursor.selected, self.cursor.position, self.session.folds
        shown = {panel for panel in ("graph", "tape") if self.query_one(f"#{panel}").display}
        if not node or "graph" not in shown or not folds.hides(self.timeline.iteration_at(here)):
            return None
        if how == "relative":
            return lambda cursor, kin: cursor.select_relative(folds.relative(node, kin, here), kin)
        if how == "neighbour" and "tape" not in shown:
            return lambda cursor, steps: cursor.select(folds.neighbour(node, steps, here) or node)
        return None

    def action_look(self, what: str) -> None:
        """Change what is shown by one of `LOOKS`."""
        LOOKS[what](self)

    def _move(self, move: Callable[[], CursorStop]) -> None:
        self.show_result_of(lambda: self.show_stop(move()))

    def action_play(self) -> None:
        """Play until a key or the end."""
        played = self.controller.player.is_playing
        self.pause()
        if not played:
            self.controller.player.play()

    def action_stop(self) -> None:
        """Stop playing or the work of a command; else copy the selected text, or show how to quit."""
        if self.controller.player.is_playing or self.controller.task.is_busy:
            self.pause()
        elif self.get_selected_text():
            self.action_copy_text()
        else:
            self.show_remark("Nothing is running. q: quit")

    def action_detail(self) -> None:
        """Show numbers in full, or short."""
        self.full = not self.full
        panel = first(self.session.keys, f"view.{PANELS.index('node') + 1}")
        hidden = "" if self.query_one(NodePanel).display or not panel else f" ({panel} shows it)"
        self.show_remark(f"The node panel shows numbers {'in full' if self.full else 'short'}{hidden}")

    async def action_suspend(self) -> None:
        """Stop the process, until the shell resumes it with ``fg``."""
        self.show_remark("in the background: fg comes back")
        await self.run_action("app.suspend_process")

    def action_view(self) -> None:
        """Show the next view: graph, tape, both."""
        self.panels.next_view()

    def action_panel(self, panel: str) -> None:
        """Bring a panel to the front and focus it."""
        self.panels.bring(panel)

    def action_zoom(self) -> None:
        """Show only the focused panel, or all again."""
        self.panels.zoom()

    def action_leave(self) -> None:
        """Undo one thing: the work of a command, else the remark, else the zoom."""
        if self.controller.task.cancel():
            return
        if self.remark:
            self.remark = ""
        else:
            self.panels.unzoom()

    # Messages from the terminal and the panels.

    def on_key(self, event: events.Key) -> None:
        """Handle keys that must not wait for the bindings."""
        self.prompts.take_key(event)

    def on_paste(self, event: events.Paste) -> None:
        """Put text that was pasted outside the prompt into it."""
        self.prompts.take_paste(event)

    def on_typed(self, message: Typed) -> None:
        """Run a typed command or search; the prompt has closed."""
        self.prompts.typed(message)

    def on_click(self, event: events.Click) -> None:
        """Open the menu at a right click, after the click has selected its node."""
        if event.button == RIGHT and not self.too_small:
            self.call_later(self.action_open, "menu")

    def on_seek(self, message: Seek) -> None:
        """Go to an event that was clicked, or the event of a number."""
        self.action_seek(message.position)

    def on_node_pointed(self, message: NodePointed) -> None:
        """Select a clicked node; a double click runs to its next event."""
        self._move(lambda: self.cursor.select(message.node))
        if message.run:
            self.action_travel("to")

    def on_overview_pointed(self, message: OverviewPointed) -> None:
        """Select what the overview shows there."""
        self.query_one(GraphCanvas).select_near(message.row)

    def on_pressed(self, message: Pressed) -> None:
        """Focus the panel in which a button went down, and select its node."""
        self.set_focus(message.panel, scroll_visible=False)
        if message.node:
            self._move(lambda: self.cursor.select(message.node))

    def on_line_pointed(self, message: LinePointed) -> None:
        """Toggle a breakpoint at a clicked line of the source."""
        toggle_line(self, message)

    def on_row_acted(self, message: RowActed) -> None:
        """Run a key or click on a row of a list."""
        self.show_result_of(lambda: act_on_row(self, message))


class PausedProgramScreen(DebuggerScreen):
    """The same screen over a program that waits for the debugger; leaving asks what the program does next."""

    def run_one(self, command: Command) -> None:
        """Run a command; at the end of the recording ``continue`` resumes the program, as in pdb."""
        at_end = self.cursor.position == len(self.timeline)
        if command.name in EXIT_COMMANDS:
            self._leave(EXIT_COMMANDS[command.name])
        elif command.name == "continue" and at_end:
            self._leave("continue")
        else:
            super().run_one(command)

    def show_stop(self, stop: CursorStop) -> None:
        """Let every panel follow the cursor."""
        super().show_stop(stop)
        if stop.reason is END and stop.notice:
            self.show_remark(f"{END.words}. c: resume the program · q: quit")

    def action_quit(self) -> None:
        """Ask what the program does next."""
        self.prompts.choose(EXIT_QUESTION, {key: partial(self._leave, how) for key, how in EXIT_ANSWERS.items()})

    def leave_at_once(self) -> None:
        """Stop the program without a question."""
        self._leave("stop")

    def openers(self, keys: Keys) -> dict[str, Callable[[], None]]:
        """Return the keys that read more keys, apart from the prompt's: to quit, because a question follows."""
        return dict.fromkeys(keys["act.quit"], self.action_quit)

    @property
    def opening_remark(self) -> str:
        """The alarm at which `gviz monitor` has paused the program, else what the recording does not have."""
        alarm = last_alarm(self.timeline)
        return f"{alarm} · e: why · c: resume the program" if alarm else super().opening_remark

    def _leave(self, action: ExitAction) -> None:
        self.exit_action = action
        self.app.exit()


# ----------------------------------------------------------------------------------------------------------------------
# Reads the graph of a large iteration in the background, while the other panels are visible and keys act.

_WORK_SECONDS = 0.1
_PAUSE_SECONDS = 0.005


class GraphReading:
    """Reads the graph of the cursor's iteration, unless `Folds` has it; then the panels follow."""

    def __init__(self, screen: SessionScreen, panels: Panels) -> None:
        self._screen, self._panels = screen, panels
        self._work: LongWork[None] | None = None
        self._iteration = -1
        self._progress_text = ""

    def begin(self) -> None:
        """Begin to read the iteration of the moment, and drop any other."""
        screen = self._screen
        if not screen.timeline.iterations:
            return
        iteration = screen.timeline.iteration_at(screen.cursor.position)
        if screen.session.folds.ready(iteration) or (self._work is not None and self._iteration == iteration.index):
            return
        waiting = self._work is not None
        self._iteration = iteration.index
        self._work = paced(screen.session.folds.read_graph(iteration), _WORK_SECONDS)
        if not waiting:
            self._soon()

    def _soon(self) -> None:
        asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._screen.call_next, self._yield_to_screen)

    def _yield_to_screen(self) -> None:
        screen = self._screen
        if self._work is None or not screen.is_running:
            return
        try:
            far = next(self._work)
        except StopIteration:
            self._work = None
            self._show_progress("")
            screen.show_result_of(self._show)
        except GvizError as error:
            self._work = None
            self._show_progress(error.what)
        else:
            self._show_progress(str(far))
            self._soon()

    def _show(self) -> None:
        """Let the panels show the graph, which has been read."""
        screen = self._screen
        screen.follow_settings()
        self._panels.fit()
        for tree in screen.query(ModuleTree):
            tree.draw_soon()

    def _show_progress(self, text: str) -> None:
        """Show the progress, unless there is another remark."""
        if self._screen.remark in ("", self._progress_text):
            self._screen.show_remark(text)
            self._progress_text = text
