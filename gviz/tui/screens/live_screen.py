"""The main screen over a program that is running, or can run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer

from gviz.live.debugger_side import Ended, Report
from gviz.tui.commands.session_file import set_again
from gviz.tui.config import Config
from gviz.tui.glyphs import Glyphs
from gviz.tui.keymaps import Keys, first
from gviz.tui.language.command import Command
from gviz.tui.language.parser import parse
from gviz.tui.live_session import PROGRAM_ACTS, Live, act_on_program
from gviz.tui.screens.debugger_screen import DebuggerScreen
from gviz.tui.screens.overlay_pages import SheetScreen
from gviz.tui.session_options import LiveSessionOptions, SessionOptions
from gviz.tui.stop_reason import CursorStop, as_remark
from gviz.tui.widgets.list_panels import OutputPanel
from gviz.tui.widgets.source_panel import SourcePane
from gviz.values.plain_text import clipped

TICK_SECONDS = 0.2
WAITING = "kept until the program pauses: "
"""The beginning of the remark while commands wait."""
_MOST_NAMED = 4
"""How many waiting commands are named."""


def room_for(nodes: int) -> int:
    """Return for how many nodes the panels get room when there are `nodes`: each change lays out the whole screen."""
    return nodes + max(4, nodes // 4)


class Reported(Message):
    """The program has sent a report."""


class LiveScreen(DebuggerScreen):
    """The debugger over a running program, whose recording grows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "pause_program", "Pause the program", show=False, priority=True, id="live.pause"),
    ]

    def __init__(
        self,
        options: LiveSessionOptions,
        glyphs: Glyphs,
        *,
        size: tuple[int, int] = (80, 24),
        config: Config | None = None,
    ) -> None:
        self._reports: SimpleQueue[Report] = SimpleQueue()
        self._listens = False
        self._opened_with = ""
        started = options.launch(self._report, size)
        opened = SessionOptions(options.title, 0, options.opening)
        super().__init__(started.timeline, opened, glyphs, config=config)
        self.live = Live(started.program, self.session)
        self._options = options
        self.restarts = False
        """Whether the user left to run the program again."""
        self._queue = deque(map(parse, options.commands))
        self._ticking: Timer | None = None
        self._asked_for_findings = False
        """Whether the findings were asked for since the program was resumed."""

    def on_mount(self, event: events.Mount | None = None) -> None:
        """Start the program, once its breakpoints are set."""
        if event is not None:
            event.prevent_default()  # Textual would call the method of the base class again
        self.query_one(SourcePane).script = self._options.script
        super().on_mount()
        self._opened_with = self.remark
        self._listens = True
        self.post_message(Reported())  # for earlier reports
        self.live.begin(self._options.first)
        self._start_ticking()

    def next_run(self, size: tuple[int, int]) -> LiveScreen:
        """Stop the program, and return the screen for its next run."""
        self.live.program.stop()
        anew = replace(self._options, opening=(), commands=())
        screen = LiveScreen(anew, self.glyphs, size=size, config=self._config)
        set_again(self.session, screen.session)
        return screen

    def on_unmount(self) -> None:
        """Stop the program, unless it was detached."""
        self.live.program.stop()

    def on_resize(self) -> None:
        """Give the program's terminal the size of this one."""
        self.live.program.resize(*self.app.size)

    @property
    def busy(self) -> bool:
        """Whether waiting lines must keep waiting, also because the program is running."""
        return self.live.running or super().busy

    def run_one(self, command: Command) -> None:
        """Run a command; one that resumes the program waits until the program pauses."""
        if command.name == "findings" and self.live.running:
            self._asked_for_findings = True
        if command.name in PROGRAM_ACTS:
            self._act(command)
        elif not self.live.resumes(command):
            super().run_one(command)
        elif self.live.running:
            self._queue.append(command)
            self.show_remark(self._waiting_text())
        else:
            self._resume_by(command)

    def _waiting_text(self) -> str:
        """Return the waiting commands: ``kept until the program pauses: next, next (Ctrl+C pauses it)``."""
        names = [f"{each.name} {each.argument}".rstrip() for each in self._queue]
        more = len(names) - _MOST_NAMED
        listed = ", ".join(clipped(name, 24) for name in names[:_MOST_NAMED]) + (
            f" and {more} more" if more > 0 else ""
        )
        return f"{WAITING}{listed} (Ctrl+C pauses it)"

    def _act(self, command: Command) -> None:
        then = act_on_program(self.live, command.name, command.argument).then
        if then == "restart":
            self._restart()
        elif then == "leave":
            self.app.exit()

    def on_reported(self, message: Reported) -> None:
        """Handle the reports: the program has paused or ended, or has written something."""
        while not self._reports.empty():
            self._take_report(self._reports.get())

    def _take_report(self, report: Report) -> None:
        stop = self.live.take_report(report)
        if stop is None:
            return
        self._tick(follow=False)
        if stop.reason.takes_precedence and self.remark == self._opened_with:
            self.remark = ""  # the remark that nothing matches its place yet
        if self.remark.startswith(WAITING):
            self.remark = ""
        if not self.length and not self.live.alive:
            self.moment = None  # event 0 looks different now: the program has ended
        if self.timeline.iterations:
            self.session.folds.choose_view_after_run(stop.start)
        self.follow_settings()
        self.show_stop(stop)
        self._show_first_hint(stop)
        self.controller.reader.take(stop)
        if isinstance(report, Ended):
            self.show_remark("; ".join((*([stop.notice] if stop.messages else []), report.words)))
            self._queue.clear()
        elif self.controller.reader.waits:
            self.show_result_of(self.controller.run_waiting)
        while self._queue and not self.live.running:
            self.run_command(self._queue.popleft())
        if not self.live.running:
            self._renew_findings()

    def _renew_findings(self) -> None:
        """Look again where a page still says that nothing has been found so far: the program has stopped now."""
        asked, self._asked_for_findings = self._asked_for_findings, False
        page = self.app.screen
        if asked and isinstance(page, SheetScreen):
            page.dismiss()
            self.run_command(Command("findings"))

    def _show_first_hint(self, stop: CursorStop) -> None:
        """Show once how to get to the model, if the program begins with its data: that may be far away."""
        if self.remark or stop.start or self.length != 1 or len(self.cursor.breakpoints.listed) or self._queue:
            return
        creations = [self.timeline.info(node).created for node in self.timeline.nodes]
        if creations and creations[0].kind == "constant":
            key = first(self.session.keys, "time.phase")
            self.show_remark(f"Data comes first. {key}: run to backward() · :until LINE: run to that line")

    def action_pause_program(self) -> None:
        """Pause the program."""
        waiting = self.controller.task.is_busy
        self.pause()
        self._queue.clear()
        if self.live.running:
            self.live.pause()
        elif waiting:
            return
        else:
            self.show_remark("The program is paused already. q: quit")

    def _restart(self) -> None:
        """Run the program again with the same breakpoints, watches and settings."""
        self.restarts = True
        self.app.exit()

    def action_quit(self) -> None:
        """Leave; if the program has not ended, first ask what it does next."""
        if self.live.alive:
            state, alone = (
                ("running", "leave it running") if self.live.running else ("paused", "let it run without gviz")
            )
            question = f"The program is {state}. s: stop it · k: {alone} · Esc: stay"
            self.prompts.choose(question, {"s": self._stop, "k": self._detach})
        else:
            self.app.exit()

    def _stop(self) -> None:
        self.live.program.stop()
        self.app.exit()

    def _detach(self) -> None:
        self.live.program.release()
        self.app.exit()

    def openers(self, keys: Keys) -> dict[str, Callable[[], None]]:
        """Return the keys that read more keys, apart from the prompt's: to quit, because a question follows."""
        return dict.fromkeys(keys["act.quit"], self.action_quit)

    def _report(self, report: Report) -> None:
        """Put a report into the queue. Called from the threads of the session."""
        self._reports.put(report)
        if self._listens:  # before that, the screen reads the queue when it is mounted
            self.post_message(Reported())

    def _resume_by(self, command: Command) -> None:
        self.live.run(command)
        self._start_ticking()

    def _start_ticking(self) -> None:
        if self._ticking is None:
            self._ticking = self.set_interval(TICK_SECONDS, self._tick)

    def _tick(self, *, follow: bool = True) -> None:
        """Show the progress of the program, without moving a box."""
        if self.live.running and follow:
            self.live.follow()
            if not self.length and not self.cursor.position and self.timeline.nodes:
                self._show_beginning()
            here = self.cursor.position
            self.stop = CursorStop(here, here, as_remark(self.live.progress()))
            for panel in self.query(OutputPanel):
                panel.moment = self.timeline.at(len(self.timeline))
        elif not self.live.running:
            self._grow()
            if self._ticking is not None:
                self._ticking.stop()
                self._ticking = None
        self.time = self.live.word

    def _show_beginning(self) -> None:
        """Show the first nodes of a program that runs from its start: it may not pause for a long time."""
        self._grow()
        self.cursor.seek(0)
        self.show_frame()

    def _grow(self) -> None:
        """Let the panels show everything that has been recorded."""
        nodes = len(self.timeline.nodes)
        self.length = len(self.timeline)
        if nodes > self.panels.room:
            self.panels.room = room_for(nodes)
            self.call_after_refresh(self.panels.fit)

    def show_stop(self, stop: CursorStop) -> None:
        """Let every panel follow the cursor."""
        super().show_stop(stop)
        self.time = self.live.word
