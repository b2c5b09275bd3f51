"""The debugger over a running program, line by line: the same sentences, and the program's output after a bar."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from typing import TextIO

from gviz.errors import GvizError
from gviz.live.debugger_side import Ended, OutputWritten, Report
from gviz.tui import line_mode
from gviz.tui.commands.session_file import set_again
from gviz.tui.cursor import Cursor
from gviz.tui.glyphs import glyphs, wants_ascii
from gviz.tui.language.command import Command
from gviz.tui.language.command_input import echo_lines, input_lines
from gviz.tui.language.completion import completions
from gviz.tui.language.parser import Reader
from gviz.tui.live_session import PROGRAM_ACTS, QUIET_SECONDS, Live, act_on_program, code_of
from gviz.tui.session import Session
from gviz.tui.session_options import LiveSessionOptions
from gviz.tui.stop_reason import CursorStop
from gviz.values.plain_text import shown

SIZE = (80, 24)
HANG_UP_SECONDS = 0.2
ANSWERED_SECONDS = 2.0
"""How long to wait for a program that has read a line: it may want another one without a new question."""
_CONTINUE = Command("continue")
_ANSWERS = "type LINE gives one, type ^D the end of its input"


def debug(options: LiveSessionOptions, input: TextIO, output: TextIO) -> int:
    """Debug a program line by line: with the commands of its options, then with the lines of `input`.

    When the input ends, the program runs to its end. Returns its exit code, or 2 if that is 0 but a command from an
    option or a pipe was refused.
    """
    conversation = _Conversation(options, output)
    talk = partial(line_mode.converse, conversation.reader, conversation.answer, output=output)
    refused = talk(texts=echo_lines(options.opening, output)).refused
    conversation.begin()
    try:
        dialogue = talk(texts=echo_lines(options.commands, output))
        refused += dialogue.refused
        if dialogue.exit_command is None:
            dialogue = talk(texts=input_lines(input, output, conversation.reader, conversation.completions))
            refused += 0 if input.isatty() else dialogue.refused
        at_once = dialogue.exit_command is not None and bool(dialogue.exit_command.argument)
        conversation.leave(
            has_user=dialogue.exit_command is not None, ask=lambda: "s" if at_once else _ask_exit(input, output)
        )
    finally:
        conversation.live.program.stop()
    return code_of(conversation.live.program) or (2 if refused else 0)


def _ask_exit(input: TextIO, output: TextIO) -> str:
    """Return the user's choice of what the program does next; without a terminal it is stopped."""
    if not input.isatty():
        return "s"
    output.write("the program has not ended: stop it (s), or let it run without the debugger (k)? ")
    output.flush()
    return input.readline().strip()


class _Conversation:
    """The dialogue about one program, and about its later runs."""

    def __init__(self, options: LiveSessionOptions, output: TextIO) -> None:
        self._options = options
        self._output = output
        self.reader = Reader()
        self._start()

    def completions(self, text: str) -> list[str]:
        """Return the completions of a line."""
        return completions(self._session, text)

    def begin(self) -> None:
        """Start the program."""
        self._print(
            "n, s, f and c resume the program, n- and s- go back. An empty line repeats. help lists all commands."
        )
        self.live.begin(self._options.first)
        if self._options.first != "run" or self.live.cursor.breakpoints.listed:
            self._print_all(self._lines_until_pause(_CONTINUE))

    def answer(self, command: Command) -> Iterator[str]:
        """Yield the lines that a command answers; if it resumes the program, those until the program pauses again."""
        if command.name in PROGRAM_ACTS:
            yield from self._act(command)
            return
        if self.live.running:
            yield from self._answer_while_running(command)
        if self.live.resumes(command):
            self.live.run(command)
            yield from self._lines_until_pause(command)
        else:
            yield from line_mode.answers(self._session, self.reader, command)

    def _answer_while_running(self, command: Command) -> Iterator[str]:
        """Wait until the program pauses. If it waits for a line, answer any command that does not resume it."""
        if not self.live.program.waits_for_line:
            yield from self._lines_until_pause(_CONTINUE)
        elif self.live.resumes(command):
            raise GvizError("the program waits for a line", hint=_ANSWERS, exit_code=2)
        else:
            self.live.follow()
            yield f"the program waits for a line; still at event {self.live.cursor.position}."

    def _act(self, command: Command) -> Iterator[str]:
        act = act_on_program(self.live, command.name, command.argument)
        if act.message and not self.live.running:
            yield act.message
        if act.then == "wait" or self._may_wait:
            yield from self._lines_until_pause(command)
        elif act.then == "restart":
            yield from self.restart()

    def leave(self, *, has_user: bool, ask: Callable[[], str]) -> None:
        """Stop the program or leave it running, as the user chooses; without a user, run it to its end."""
        live = self.live
        if has_user:
            self._catch_up()
        if not live.alive:
            return
        if has_user and ask().startswith("k"):
            live.program.release()
        elif has_user:
            live.program.stop()
        else:
            self._without_user = True
            while live.alive:
                if not live.running:
                    live.run_to_end()
                self._print_all(self._lines_until_pause(_CONTINUE))

    def _catch_up(self) -> None:
        """Handle what the program has reported while a command was typed."""
        while not self._reports.empty():
            report = self._reports.get()
            if isinstance(report, OutputWritten):
                self._print_all(self._lines(report.data))
            self.live.take_report(report)

    def restart(self) -> Iterator[str]:
        """Run the program again with the same breakpoints, watches and settings."""
        before = self._session
        self.live.program.stop()
        self._start()
        set_again(before, self._session)
        self.live.begin(self._options.first)
        yield from self._lines_until_pause(_CONTINUE)

    def _start(self) -> None:
        self._reports: SimpleQueue[Report] = SimpleQueue()
        started = self._options.launch(self._reports.put, SIZE)
        self._session = Session(Cursor(started.timeline, 0), glyphs(ascii=wants_ascii()), self._options.title)
        self.live = Live(started.program, self._session)
        self.reader.breakpoints = self.live.cursor.breakpoints
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._printed: list[str] = []  # the pieces of an unfinished line, which may be of any length
        self._may_wait = False  # the program may wait for an answer, so a command is read
        self._without_user = False  # the input has ended: no user can answer the program

    def _print_all(self, texts: Iterator[str]) -> None:
        for text in texts:
            self._print(text)

    def _print(self, text: str) -> None:
        print(text, file=self._output)

    def _lines_until_pause(self, command: Command) -> Iterator[str]:
        """Yield lines until the program pauses, ends, or seems to wait for an answer."""
        answered, self._may_wait = self._may_wait and command.name == "type", False
        patience = HANG_UP_SECONDS if self._without_user else ANSWERED_SECONDS if answered else QUIET_SECONDS
        while True:
            try:
                report = self._reports.get(timeout=patience)
            except Empty:
                yield from self._handle_quiet(answered=answered)
                self._may_wait |= answered
                if self._may_wait:
                    return
                continue
            except KeyboardInterrupt:
                self.live.pause()
                continue
            if isinstance(report, OutputWritten):
                yield from self._lines(report.data)
            stop = self.live.take_report(report)
            if stop is not None:
                yield from self._stop_lines(command, stop, report)
                return

    def _handle_quiet(self, *, answered: bool) -> Iterator[str]:
        """Handle a quiet program. If it may wait for an answer, the next command can give it."""
        if self._without_user:
            self.live.program.hang_up()
        elif (known := self.live.program.waits_for_line) or (
            self._printed and (answered or not self.live.has_new_events())
        ):
            self._may_wait = True
            yield from self._unfinished()
            yield f"{'it waits for a line' if known else 'if it waits for an answer'}: {_ANSWERS}."
        elif self.live.pausing:
            self._may_wait = True
            yield "it pauses when its call returns; if it waits for an answer, type LINE gives one; kill ends it."

    def _stop_lines(self, command: Command, stop: CursorStop, report: Report) -> Iterator[str]:
        yield from self._unfinished()
        self.reader.take(stop)
        yield from line_mode.moved(self._session, command, stop)
        if isinstance(report, Ended):
            yield f"{report.words}."

    def _lines(self, data: bytes) -> Iterator[str]:
        self._printed += filter(None, [text := self._decoder.decode(data)])
        if "\n" in text:
            *lines, rest = "".join(self._printed).replace("\r\n", "\n").split("\n")
            self._printed = [rest] if rest else []
            yield from map(self._bar, lines)

    def _unfinished(self) -> Iterator[str]:
        """Yield the last line of the output, if it is unfinished."""
        if self._printed:
            yield self._bar("".join(self._printed))
            self._printed = []

    def _bar(self, text: str) -> str:
        return self._session.glyphs.text(f"| {shown(text)}")
