"""What is to be carried out, one after the other: a command, or a typed line and everything that it leads to."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.plain_text import shown
from gviz.tui.language.command import Command, Reply, Said, Work
from gviz.tui.language.parser import spec_of
from gviz.tui.screens.carry_out import carry_out, say
from gviz.tui.screens.errand import Errand

if TYPE_CHECKING:
    from gviz.tui.screens.debugger import DebuggerScreen


class Orders:
    """Carries out on a screen; a long errand keeps what comes behind it waiting."""

    def __init__(self, screen: DebuggerScreen) -> None:
        self._screen = screen
        self._said: list[str] = []
        self.errand = Errand(screen, self._resume)

    def attempt(self, act: Callable[[], None]) -> None:
        """Do something, and show what was said on the way; last of all why it cannot be done."""
        self._said = []
        self._screen.reader.forget_line()
        self._attempt_more(act)

    def say(self, lines: tuple[str, ...]) -> None:
        """Say something when all is done, or waits for the program: in the place of what a line before has said.

        What the commands of a breakpoint say is shown together.
        """
        self._said = [*self._said, *lines] if self._screen.reader.at_stop else [*lines]

    def _attempt_more(self, act: Callable[[], None]) -> None:
        self._screen.say("")
        try:
            act()
        except GvizError as error:
            before = self._said if self._screen.reader.at_stop else []
            self._said = [*before, _refusal(error, self._screen.reader.refused(error))]
        if self._said and not self.errand.goes_on:
            say(self._screen, tuple(self._said))
            self._said = []

    def run(self, command: Command) -> None:
        """Carry out a command of the prompt or a key, and what waits behind it."""
        self.attempt(partial(self._run_on, command))

    def _run_on(self, command: Command) -> None:
        self._screen.perform(command)
        self.go_on()

    def run_line(self, text: str) -> None:
        """Carry out what was typed, and what it leads to."""
        self._screen.reader.typed(text)
        self.attempt(self.go_on)
        if self._screen.reader.sign == ">":
            self._screen.prompting.open(">")

    def go_on(self) -> None:
        """Carry out the lines that wait; raises GvizError at the first that cannot be."""
        while (command := self._screen.reader.next()) is not None:
            if isinstance(command, Said):
                self.say(command.lines)
            else:
                self._screen.perform(command)
            if self._screen.busy:
                return

    def perform(self, command: Command) -> None:
        """Carry out a command, or begin what has to be done before; raises GvizError where that cannot be done."""
        self.errand.cancel()
        self.begin(command.name, spec_of(command).run(self._screen.session, command))

    def begin(self, name: str, answer: Reply | Work) -> None:
        """Show an answer; what has to be done before ends what is being done, and begins. GvizError as in `perform`."""
        if isinstance(answer, Generator):
            self.errand.cancel()
            self._answer(self.errand.begin(name, answer))
        else:
            carry_out(self._screen, answer)

    def _answer(self, reply: Reply | None) -> None:
        if reply is not None:
            carry_out(self._screen, reply)

    def _resume(self, advance: Callable[[], Reply | None]) -> None:
        """Go on with an errand, and with what waits behind it if that was all."""
        self._attempt_more(partial(self._advanced, advance))

    def _advanced(self, advance: Callable[[], Reply | None]) -> None:
        self._answer(advance())
        if not self.errand.goes_on and self._screen.reader.waits:
            self.go_on()


def _refusal(error: GvizError, told: GvizError) -> str:
    """Why something cannot be done, in one line: with the line of a script, if it is `told` of."""
    at = f"; {told.why}" if told is not error and told.why else ""
    return shown(error.what + (f" ({error.hint})" if error.hint else "") + at)
