"""Runs the commands of the debugger's screen: queues them, shows their answers, and steps automatically (``play``).

A key makes one `Command`; a typed line, a script or a breakpoint makes several, which wait in the `Reader`. A command
returns its answer, a `Reply`, at once. If it is slow, it returns a generator instead, its *work* (`Work`), which
computes the answer. The work runs in small pieces, so that the screen reacts and a key can stop it. The waiting lines
run when it has ended.

    state     what happens                              what follows                                       next state
    idle      a command returns its answer              the answer is shown, the next line runs            idle
    idle      work that ends within 0.1 s               the answer is shown, the next line runs            idle
    idle      work that takes longer                    the remark shows its progress                      working
    idle      Space, ``play``                           a timer starts                                     playing
    working   a piece of the work, not the last         the remark shows the progress                      working
    working   the work has ended                        its answer is shown, the next line runs            idle
    working   the work raises GvizError                 the reason is shown, waiting lines are dropped     idle
    working   another command runs                      the work is cancelled, then as in state idle       as from idle
    working   a key that moves in time, Esc, Ctrl+C     the work is cancelled, the position stays          idle
    playing   the timer                                 ``step``                                           playing
    playing   the timer, but ``step`` does not move     the timer stops                                    idle
    playing   a key that moves in time, ``:``, Ctrl+C   the timer stops                                    idle

The methods of `Controller` call each other in this order:

    run_command        for a key: `run_one`, then `run_waiting`
    run_line           for a typed line: puts it into the `Reader`, then `run_waiting`
    show_result_of     runs either of these; shows the answers at its end, or why it failed
    run_waiting        `run_one` for each waiting line, until there is work left
    run_one            one command: calls its function, then `answer_or_begin`
    answer_or_begin    an answer: `show`; work: `BackgroundTask.begin`, then `show` if it has ended within 0.1 s
    show               shows one answer, or keeps its lines for `show_result_of`
    _resume            called for each later piece of work: at the end `show`, then `run_waiting`

`run_one` is called through the screen, because `LiveScreen` and others have more to do for a command.

For example ``break y if value > 3``, then ``continue`` in a recording of a million events: `run_one` gets work from
``continue``, which searches for 0.1 s and shows *looking for a stop: event 40,000 of 1,000,000; Ctrl+C stops*. Ctrl+C
cancels the work. Otherwise `show` gets the `CursorStop`, and the ``commands`` of the breakpoint are the next lines.

While a live program is debugged there is one more state, *running* (see `gviz.tui.live_session`). Lines wait in that
state, too.
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
from gviz.tui.commands.compare import ComparisonView
from gviz.tui.commands.inspection import wrapped_lines
from gviz.tui.language.command import Answer, Choice, Command, Confirm, FrontEnd, Reply, TerminalTask, View, Work
from gviz.tui.language.parser import Reader, spec_of
from gviz.tui.panel_choice import PANELS
from gviz.tui.screens import overlay_pages
from gviz.tui.screens.panel_stack import Panels
from gviz.tui.screens.session_screen import SessionScreen
from gviz.tui.stop_reason import CursorStop
from gviz.tui.themes import colour_warning, named
from gviz.tui.widgets.node_panel import NodePanel
from gviz.values.plain_text import clipped, shown

AT_ONCE_SECONDS = 0.1
"""How long the screen may be blocked before a user notices."""

_PAUSE_SECONDS = 0.005

PLAY_SECONDS = 0.4
SPEEDS = {"1x": 1, "2x": 2, "4x": 4, "8x": 8}


class Controller:
    """Runs commands on a screen, one after the other. The head of this file shows which method calls which."""

    def __init__(self, screen: SessionScreen, panels: Panels) -> None:
        self._screen, self._panels = screen, panels
        self.reader = Reader(screen.session.cursor.breakpoints)
        self.task = BackgroundTask(screen, self._resume)
        self.player = Player(screen)
        self._answers: list[str] = []

    # The queue.

    def run_command(self, command: Command) -> None:
        """Run a command of the prompt or a key, then the waiting lines, and show the answers."""

        def act() -> None:
            self._screen.run_one(command)
            self.run_waiting()

        self.show_result_of(act)

    def run_line(self, text: str) -> None:
        """Run a typed line, and the lines that follow from it, and show the answers."""
        self.reader.typed(text)
        self.show_result_of(self.run_waiting)
        if self.reader.sign == ">":
            self._screen.open_prompt(">")

    def show_result_of(self, act: Callable[[], None]) -> None:
        """Call `act`, then show the answers that were kept meanwhile. If it raises GvizError, show the reason last."""
        self._answers = []
        self.reader.forget_line()
        self._continue_and_show(act)

    def _continue_and_show(self, act: Callable[[], None]) -> None:
        """Do as `show_result_of` does, but add to the answers kept before. While there is work left, they stay kept."""
        self._screen.show_remark("")
        try:
            act()
        except GvizError as error:
            earlier_answers = self._answers if self.reader.at_stop else []
            self._answers = [*earlier_answers, _refusal(error, self.reader.refused(error))]
        if self._answers and not self.task.is_busy:
            answers, self._answers = tuple(self._answers), []
            if len(answers) == 1 and cell_len(answers[0]) < self._screen.size.width:
                self._screen.show_remark(answers[0])
            else:
                overlay_pages.show_sheet(self._screen, "Answer", partial(wrapped_lines, answers))

    def run_waiting(self) -> None:
        """Run the waiting lines, until there is work left or the program runs. Raises GvizError if a line fails."""
        while (command := self.reader.next()) is not None:
            if isinstance(command, Answer):
                self._keep_answers(command.lines)
            else:
                self._screen.run_one(command)
            if self._screen.busy:
                return

    def run_one(self, command: Command) -> None:
        """Run one command: show its answer or, if it is slow, start its work. Raises GvizError if it fails."""
        self.task.cancel()
        self.answer_or_begin(command.name, spec_of(command).run(self._screen.session, command))

    def answer_or_begin(self, name: str, answer: Reply | Work) -> None:
        """Show an answer. If it still has to be computed, start that work; the work of another command is cancelled.

        Raises GvizError as `run_one` does.
        """
        if not isinstance(answer, Generator):
            self.show(answer)
            return
        self.task.cancel()
        reply = self.task.begin(name, answer)
        if reply is not None:
            self.show(reply)

    def _resume(self, advance: Callable[[], Reply | None]) -> None:
        """Run the next piece of the work; when it has ended, show its answer and run the waiting lines."""

        def act() -> None:
            reply = advance()
            if reply is not None:
                self.show(reply)
            if not self.task.is_busy and self.reader.waits:
                self.run_waiting()

        self._continue_and_show(act)

    def pause(self) -> None:
        """Stop playing, and cancel the work of a command."""
        self.player.pause()
        self.task.cancel()

    def _keep_answers(self, lines: tuple[str, ...]) -> None:
        """Keep answers to show them when all lines have run, or wait for work or for the program.

        They replace the answers to the previous line. Only the answers to the commands of a breakpoint are shown
        together.
        """
        self._answers = [*self._answers, *lines] if self.reader.at_stop else [*lines]

    # The answers to commands.

    def show(self, reply: Reply) -> None:
        """Show the answer to a command, or do what it requests. Raises GvizError if that fails.

        An `Answer` is only kept: `show_result_of` shows it together with the others.
        """
        screen = self._screen
        self.reader.take(reply)
        screen.follow_settings()
        match reply:
            case CursorStop():
                screen.show_stop(reply)
            case Answer(lines):
                self._keep_answers(lines)
            case View():
                self._show_view(reply)
            case Confirm(lines, question):
                overlay_pages.ask(screen, question, lines)
            case TerminalTask(run):
                _run_in_terminal(screen, run)
            case FrontEnd("quit", at_once):
                screen.leave_at_once() if at_once else screen.action_quit()
            case FrontEnd("set", text):
                _set_by_command(screen, text)
            case FrontEnd("play", text):
                self._play(text)
            case FrontEnd("copy", text):
                screen.show_remark(_copy_to_clipboard(screen, text))
            case FrontEnd("copy script", text):
                screen.show_remark(f"{_copy_to_clipboard(screen, text)}; copy script FILE writes a file")

    def _show_view(self, view: View) -> None:
        """Bring the panel of a view to the front, or open a page for it."""
        screen = self._screen
        if view.panel == "inspector":
            screen.show_stop(screen.cursor.stay())
            overlay_pages.inspect(screen)
        elif view.panel in PANELS:
            screen.show_stop(screen.cursor.stay())
            self._panels.bring(view.panel)
            if view.at_end:
                screen.query_one(NodePanel).scroll_end(animate=False)
        elif isinstance(view, Choice):
            overlay_pages.choose(screen, view)
        elif isinstance(view, ComparisonView):
            from gviz.tui.screens.comparison_screen import show_compared  # lazy: it imports all of gviz.compare

            show_compared(screen, view)
        else:
            overlay_pages.show_sheet(screen, view.title, view.lines)
        screen.show_frame()

    def _play(self, text: str) -> None:
        if text in ("", *SPEEDS):
            self.pause()
            self.player.play(SPEEDS.get(text, 0))
        elif text == "stop":
            self.pause()
        else:
            raise GvizError(f"play does not accept {clipped(text, 20)}", hint="play, play 2x, play stop", exit_code=2)


class BackgroundTask:
    """The work of at most one command, which runs in small pieces.

    Between two pieces the screen has its turn. `resume` gets the function that runs the next piece: it calls it, and
    shows the answer or the error.
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
        """Run the first piece; return the answer, or None if work is left. Raises GvizError if the work fails."""
        self._left, self._name = paced(work, AT_ONCE_SECONDS), name
        return self._advance()

    def cancel(self) -> bool:
        """Cancel the work; return whether there was any."""
        dropped, self._left = self._left, None
        if dropped is not None:
            self._screen.show_remark(f"{self._name} was stopped; the position is unchanged")
        return dropped is not None

    def _continue(self) -> None:
        if self._left is not None:
            self._resume(self._advance)

    def _advance(self) -> Reply | None:
        work, self._left = self._left, None
        if work is None:
            return None
        try:
            progress = next(work)
        except StopIteration as end:
            reply: Reply = end.value
            return reply
        self._left = work
        self._screen.show_remark(f"{progress}; Ctrl+C stops")
        # Not a timer of Textual: it never fires if its time is over before it is set, which happens on a busy machine.
        asyncio.get_running_loop().call_later(_PAUSE_SECONDS, self._screen.call_next, self._continue)
        return None


class Player:
    """Steps automatically while its timer runs; there is at most one timer."""

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
        """Step once; stop the timer if the position did not change."""
        cursor = self._screen.session.cursor
        before = cursor.position
        self._screen.run_command(Command("step"))
        if cursor.position == before:
            self.pause()


def apply_setting(screen: SessionScreen, name: str, value: str) -> None:
    """Change a setting, and the screen with it.

    Raises GvizError for an unknown theme, and for ``ascii``, which cannot change while gviz runs.
    """
    if name == "ascii":
        hint = "gviz --ascii, or GVIZ_ASCII=1"
        raise GvizError("ascii can only be chosen when gviz starts", hint=hint, exit_code=2)
    if name == "theme":
        screen.app.theme = named(value, screen.app.available_themes)
    screen.session.settings.values[name] = value
    if name == "keymap":
        screen.follow_keymap()
    elif name == "motion":
        screen.app.animation_level = "full" if value == "on" else "none"


def _set_by_command(screen: SessionScreen, text: str) -> None:
    name, value = text.split(" ", 1)
    apply_setting(screen, name, value)
    remark = colour_warning(screen.app.current_theme) if name == "theme" else ""
    screen.show_remark(remark or f"{name} is {value}")


def _copy_to_clipboard(screen: SessionScreen, text: str) -> str:
    """Copy a text to the clipboard, and return a remark about it.

    This uses the escape sequence that most terminals support. No terminal confirms it, so the remark only says *sent*.
    """
    screen.app.copy_to_clipboard(text)
    lines = text.count("\n")
    return f"sent to the terminal's clipboard: {f'{lines} lines' if lines > 1 else clipped(text, 40)}"


def _run_in_terminal(screen: SessionScreen, run: Callable[[], str]) -> None:
    """Let `run` use the terminal until it returns, then show the message that it returns.

    Meanwhile Ctrl+C interrupts `run`. It must not reach the debugger, because it would end the debugger's event loop.
    """
    previous_handler = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with screen.app.suspend():
            message = _interruptible(run)
    except SuspendNotSupported:
        what = "this cannot be done here: the terminal cannot be lent to another program"
        raise GvizError(what, exit_code=2) from None
    finally:
        signal.signal(signal.SIGINT, previous_handler)
    screen.refresh()
    screen.show_remark(message)


def _interruptible(run: Callable[[], str]) -> str:
    outer_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run()
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        signal.signal(signal.SIGINT, outer_handler)


def _refusal(error: GvizError, reported: GvizError) -> str:
    """Return why something failed, in one line.

    `reported` is the same error, or for a line of a script another one, whose `why` names that line.
    """
    at = f"; {reported.why}" if reported is not error and reported.why else ""
    return shown(error.what + (f" ({error.hint})" if error.hint else "") + at)
