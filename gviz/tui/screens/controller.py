"""Runs commands on the debugger's screen: the queue of commands, the background task, playing, and their answers.

A key makes one `Command`; a typed line, a script or a breakpoint makes several, which wait in the `Reader`. A command
answers at once, or with work that is slow. Such work runs in small pieces, so that the screen reacts and a key can
stop it. The waiting lines run when it is done.

    state     what happens                              what follows                                       next state
    idle      a command answers at once                 its answer is shown, the next line runs            idle
    idle      a command answers with work               0.1 s of the work; if that is all, as above        working
    idle      Space, ``play``                           a timer runs                                       playing
    working   the next piece of work is not the last    the remark shows the progress                      working
    working   the work is done                          its answer is shown, the next line runs            idle
    working   GvizError                                 the reason is shown, waiting lines are dropped     idle
    working   another command is performed              the task is cancelled; as from idle
    working   a key that moves in time, Esc, Ctrl+C     the task is cancelled, the position stays          idle
    playing   the timer                                 ``step``; at the end, the timer stops              playing
    playing   a key that moves in time, ``:``, Ctrl+C   the timer stops                                    idle

For example ``break y if value > 3``, then ``continue`` in a recording of a million events: `perform` gets work from
``continue``, which searches for 0.1 s and shows *looking for a stop: event 40,000 of 1,000,000; Ctrl+C stops*. Ctrl+C
cancels the work. Otherwise `show` gets the `Arrival`, and the ``commands`` of the breakpoint are the next lines.

Over a running program there is one more state, *running*, in `gviz.tui.live_session`: lines wait in it, too.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from functools import partial

from rich.cells import cell_len
from textual.app import SuspendNotSupported
from textual.timer import Timer

from gviz.errors import GvizError
from gviz.system.cooperative_work import paced
from gviz.tui.commands.compare import ComparisonLook
from gviz.tui.commands.inspection import wrapped_lines
from gviz.tui.language.command import Answer, Choice, Command, Confirm, FrontEnd, Look, Outside, Reply, Work
from gviz.tui.language.parser import Reader, spec_of
from gviz.tui.panel_arrangement import PANELS
from gviz.tui.screens import overlay_pages
from gviz.tui.screens.panel_stack import Panels
from gviz.tui.screens.screen_context import SessionScreen
from gviz.tui.stop_reason import Arrival
from gviz.tui.themes import colour_warning, named
from gviz.tui.widgets.node_panel import NodePanel
from gviz.values.plain_text import clipped, shown

AT_ONCE_SECONDS = 0.1
"""How long the screen may be blocked before a user notices."""

_PAUSE_SECONDS = 0.005

PLAY_SECONDS = 0.4
SPEEDS = {"1x": 1, "2x": 2, "4x": 4, "8x": 8}


class Controller:
    """Runs commands on a screen, one after the other."""

    def __init__(self, screen: SessionScreen, panels: Panels) -> None:
        self._screen, self._panels = screen, panels
        self.reader = Reader(screen.session.cursor.breakpoints)
        self.task = BackgroundTask(screen, self._resume)
        self.player = Player(screen)
        self._answers: list[str] = []

    # The queue.

    def attempt(self, act: Callable[[], None]) -> None:
        """Do something, then show its answers; show the reason last if it cannot be done."""
        self._answers = []
        self.reader.forget_line()
        self._attempt_more(act)

    def run(self, command: Command) -> None:
        """Run a command of the prompt or a key, then the waiting lines."""
        self.attempt(partial(self._run_all, command))

    def run_line(self, text: str) -> None:
        """Run a typed line, and the lines that follow from it."""
        self.reader.typed(text)
        self.attempt(self.run_waiting)
        if self.reader.sign == ">":
            self._screen.open_prompt(">")

    def run_waiting(self) -> None:
        """Run the waiting lines. Raises GvizError at the first that fails."""
        while (command := self.reader.next()) is not None:
            if isinstance(command, Answer):
                self._keep_answers(command.lines)
            else:
                self._screen.perform(command)
            if self._screen.busy:
                return

    def perform(self, command: Command) -> None:
        """Run one command, or begin the work before its answer. Raises GvizError if it fails."""
        self.task.cancel()
        self.begin(command.name, spec_of(command).run(self._screen.session, command))

    def begin(self, name: str, answer: Reply | Work) -> None:
        """Show an answer, or begin the work before it, which replaces that of another command.

        Raises GvizError as `perform` does.
        """
        if not isinstance(answer, Generator):
            self.show(answer)
            return
        self.task.cancel()
        reply = self.task.begin(name, answer)
        if reply is not None:
            self.show(reply)

    def pause(self) -> None:
        """Stop playing, and cancel the work of a command."""
        self.player.pause()
        self.task.cancel()

    def _run_all(self, command: Command) -> None:
        self._screen.perform(command)
        self.run_waiting()

    def _resume(self, advance: Callable[[], Reply | None]) -> None:
        """Continue the background task; when it is done, run the waiting lines."""

        def act() -> None:
            reply = advance()
            if reply is not None:
                self.show(reply)
            if not self.task.is_busy and self.reader.waits:
                self.run_waiting()

        self._attempt_more(act)

    def _attempt_more(self, act: Callable[[], None]) -> None:
        self._screen.show_remark("")
        try:
            act()
        except GvizError as error:
            before = self._answers if self.reader.at_stop else []
            self._answers = [*before, _refusal(error, self.reader.refused(error))]
        if self._answers and not self.task.is_busy:
            answers, self._answers = tuple(self._answers), []
            if len(answers) == 1 and cell_len(answers[0]) < self._screen.size.width:
                self._screen.show_remark(answers[0])
            else:
                overlay_pages.show_sheet(self._screen, "Answer", partial(wrapped_lines, answers))

    def _keep_answers(self, lines: tuple[str, ...]) -> None:
        """Keep answers until everything is done, or waits for the program. They replace those of the line before.

        The answers to the commands of a breakpoint are shown together.
        """
        self._answers = [*self._answers, *lines] if self.reader.at_stop else [*lines]

    # The answers to commands.

    def show(self, reply: Reply) -> None:
        """Show the answer to a command, and do what it requests. Raises GvizError if that fails."""
        screen = self._screen
        self.reader.take(reply)
        screen.follow_settings()
        match reply:
            case Arrival():
                screen.show_arrival(reply)
            case Answer(lines):
                self._keep_answers(lines)
            case Look():
                self._look(reply)
            case Confirm(lines, question):
                overlay_pages.ask(screen, question, lines)
            case Outside(run):
                _outside(screen, run)
            case FrontEnd("quit", at_once):
                screen.leave_at_once() if at_once else screen.action_quit()
            case FrontEnd("set", text):
                _set(screen, text)
            case FrontEnd("play", text):
                self._play(text)
            case FrontEnd("copy", text):
                screen.show_remark(_copied(screen, text))
            case FrontEnd("copy script", text):
                screen.show_remark(f"{_copied(screen, text)}; copy script FILE writes a file")

    def _look(self, look: Look) -> None:
        """Bring its panel to the front, or open a page."""
        screen = self._screen
        if look.panel == "inspector":
            screen.show_arrival(screen.cursor.select(screen.cursor.selected))
            overlay_pages.inspect(screen)
        elif look.panel in PANELS:
            screen.show_arrival(screen.cursor.select(screen.cursor.selected))
            self._panels.bring(look.panel)
            if look.at_end:
                screen.query_one(NodePanel).scroll_end(animate=False)
        elif isinstance(look, Choice):
            overlay_pages.choose(screen, look)
        elif isinstance(look, ComparisonLook):
            from gviz.tui.screens.comparison_screen import show_compared  # lazy: it imports all of gviz.compare

            show_compared(screen, look)
        else:
            overlay_pages.show_sheet(screen, look.title, look.lines)
        screen.show_frame()

    def _play(self, text: str) -> None:
        if text in ("", *SPEEDS):
            self.pause()
            self.player.play(SPEEDS.get(text, 0))
        elif text == "stop":
            self.pause()
        else:
            raise GvizError(f"play cannot be {clipped(text, 20)}", hint="play, play 2x, play stop", exit_code=2)


class BackgroundTask:
    """The work of at most one command, done in small pieces.

    `resume` calls the function that does the next piece, and shows its errors.
    """

    def __init__(self, screen: SessionScreen, resume: Callable[[Callable[[], Reply | None]], None]) -> None:
        self._screen, self._resume = screen, resume
        self._left: Work | None = None
        self._name = ""

    @property
    def is_busy(self) -> bool:
        """Whether there is work left."""
        return self._left is not None

    def begin(self, name: str, work: Work) -> Reply | None:
        """Work for a moment; return the answer, or None if work is left. Raises GvizError if there is no answer."""
        self._left, self._name = paced(work, AT_ONCE_SECONDS), name
        return self._advance()

    def cancel(self) -> bool:
        """Drop the work; return whether there was any."""
        dropped, self._left = self._left, None
        if dropped is not None:
            self._screen.show_remark(f"{self._name} was stopped; the position is unchanged")
        return dropped is not None

    def _yield_to_screen(self) -> None:
        if self._left is not None:
            self._resume(self._advance)

    def _advance(self) -> Reply | None:
        work, self._left = self._left, None
        if work is None:
            return None
        try:
            far = next(work)
        except StopIteration as end:
            reply: Reply = end.value
            return reply
        self._left = work
        self._screen.show_remark(f"{far}; Ctrl+C stops")
        # Not a timer of Textual: it never fires if its time is over before it is set, which happens on a busy machine.
        asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._screen.call_next, self._yield_to_screen)
        return None


class Player:
    """Steps while its timer runs; there is at most one timer."""

    def __init__(self, screen: SessionScreen) -> None:
        self._screen = screen
        self._timer: Timer | None = None

    @property
    def is_playing(self) -> bool:
        """Whether the timer runs."""
        return self._timer is not None

    def play(self, speed: int = 0) -> None:
        """Start stepping, `speed` times as fast as usual (0: the setting ``speed``)."""
        self.pause()
        speed = speed or int(self._screen.session.settings.values["speed"].removesuffix("x"))
        self._timer = self._screen.set_interval(PLAY_SECONDS / speed, self.play_on)

    def pause(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def play_on(self) -> None:
        """Step once; stop the timer at the end."""
        cursor = self._screen.session.cursor
        before = cursor.position
        self._screen.run_command(Command("step"))
        if cursor.position == before:
            self.pause()


def set_to(screen: SessionScreen, name: str, value: str) -> None:
    """Keep a setting and apply it.

    Raises GvizError for an unknown theme, and for a setting that can no longer change.
    """
    if name == "ascii":
        hint = "gviz --ascii, or GVIZ_ASCII=1"
        raise GvizError("the characters are chosen at the start", hint=hint, exit_code=2)
    if name == "theme":
        screen.app.theme = named(value, screen.app.available_themes)
    screen.session.settings.values[name] = value
    if name == "keymap":
        screen.follow_keymap()
    elif name == "motion":
        screen.app.animation_level = "full" if value == "on" else "none"


def _set(screen: SessionScreen, text: str) -> None:
    name, value = text.split(" ", 1)
    set_to(screen, name, value)
    remark = colour_warning(screen.app.current_theme) if name == "theme" else ""
    screen.show_remark(remark or f"{name} is {value}")


def _copied(screen: SessionScreen, text: str) -> str:
    """Copy to the clipboard, by the escape sequence that most terminals support; none of them confirms it."""
    screen.app.copy_to_clipboard(text)
    lines = text.count("\n")
    return f"sent to the terminal's clipboard: {f'{lines} lines' if lines > 1 else clipped(text, 40)}"


def _outside(screen: SessionScreen, run: Callable[[], str]) -> None:
    """Lend the terminal for a while. There Ctrl+C is for the other program: it would end the debugger's event loop."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with screen.app.suspend():
            message = _interruptible(run)
    except SuspendNotSupported:
        raise GvizError("this needs a terminal of its own", exit_code=2) from None
    finally:
        signal.signal(signal.SIGINT, before)
    screen.refresh()
    screen.show_remark(message)


def _interruptible(run: Callable[[], str]) -> str:
    waiting = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run()
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        signal.signal(signal.SIGINT, waiting)


def _refusal(error: GvizError, reported: GvizError) -> str:
    """Return why something failed, in one line; for a script, `reported` contains the line of the script."""
    at = f"; {reported.why}" if reported is not error and reported.why else ""
    return shown(error.what + (f" ({error.hint})" if error.hint else "") + at)
