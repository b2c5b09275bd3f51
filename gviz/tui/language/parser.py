"""Parses the command language: `parse` turns one line into a `Command`; a `Reader` reads line after line.

The lines of a `Reader` are typed, come from scripts, or are commands of a breakpoint at its stop. A question and
``commands`` read lines, too.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from gviz.errors import GvizError
from gviz.tui.breakpoints import BreakpointEntry, Breakpoints
from gviz.tui.commands.command_table import BY_NAME, REPEATED, SPECS, find, reversed_spec, unknown_command
from gviz.tui.language.command import Answer, Command, Confirm, Reply, Script, Spec
from gviz.tui.stop_reason import CursorStop
from gviz.values.plain_text import clipped, shown

_CAPITALS = {
    alias.upper(): f"reverse-{spec.name}"
    for spec in SPECS
    for alias in spec.aliases
    if len(alias) == 1 and f"reverse-{spec.name}" in BY_NAME
}
"""The keys of the screen work as commands too: a capital runs backwards."""

_LINE = re.compile(r"([A-Za-z]++(?:-[A-Za-z]++)*+-?+(?![._\[])|[/@?=!])\s*(.*)", re.DOTALL)
"""A command and the rest; ``x.grad``, ``zero_grad`` and ``w[0]`` are no commands, whatever they begin with."""
_NUMBER = re.compile(r"[-+]?\d{1,12}$")
LARGEST_COUNT = 10**9


def parse(text: str) -> Command:
    """Parse one line. Raises GvizError that explains what was expected.

    ``12`` and ``@12`` mean ``goto 12``; a trailing minus (``n- 3``) or a capital (``N 3``) runs a time command
    backwards.
    """
    text = text.strip().removeprefix(":").strip()
    if re.fullmatch(r"\d+", text):
        return Command("goto", argument=text)
    match = _LINE.match(text)
    if match is None:
        raise unknown_command(text)
    word, rest = match.group(1), match.group(2).strip()
    spec = find(_CAPITALS.get(word) or ("goto" if word == "@" else word.lower()), rest)
    return _counted(spec, rest) if spec.counted else _checked(spec, rest)


def spec_of(command: Command) -> Spec:
    """Return the declaration of a parsed command."""
    return BY_NAME[command.name]


def _counted(spec: Spec, rest: str) -> Command:
    if not rest:
        return Command(spec.name)
    if not _NUMBER.match(rest):
        hint = f"until {clipped(rest, 40)} runs to a node" if spec.name == "continue" else ""
        raise GvizError(f"{spec.name} takes a count, not {clipped(repr(rest), 40)}", hint=hint, exit_code=2)
    count = max(-LARGEST_COUNT, min(int(rest), LARGEST_COUNT))
    return Command(reversed_spec(spec).name if count < 0 else spec.name, abs(count))


def _checked(spec: Spec, rest: str) -> Command:
    if spec.takes and not spec.takes.startswith("[") and not rest:
        raise GvizError(f"{spec.name} needs {spec.takes}", hint=spec.help_text(), exit_code=2)
    if not spec.takes and rest:
        raise GvizError(f"{spec.name} takes no argument", exit_code=2)
    word = spec.takes.strip("[]")
    if rest and word == word.lower() != rest:
        what = f"{spec.name} takes {word}, or nothing, not {clipped(rest, 30)}"
        raise GvizError(what, hint=spec.help_text(), exit_code=2)
    return Command(spec.name, argument=rest)


MOST = 10_000
"""How many lines one typed line may run, through scripts and the commands of breakpoints."""


@dataclass(slots=True)
class _CommandBlock:
    """The commands of a breakpoint, up to `end`."""

    breakpoint: BreakpointEntry
    lines: list[str]


class _Line(NamedTuple):
    """A waiting line; `origin` is its script or breakpoint, if it was not typed."""

    text: str
    origin: str = ""
    at_stop: bool = False


class Reader:
    """Turns lines into commands.

    An empty line repeats the last command that moves or shows something. ``commands`` reads the lines up to ``end``. A
    question reads its answer.
    """

    def __init__(self, breakpoints: Breakpoints | None = None) -> None:
        self.breakpoints = breakpoints
        self._last = Command("step")
        self._block: _CommandBlock | None = None
        self._question: Confirm | None = None
        self._waiting: deque[_Line] = deque()
        self._budget = MOST
        self._current = _Line("")

    @property
    def sign(self) -> str:
        """The prompt before a line that is not a command: ``y/n``, or ``>`` for the commands of a breakpoint."""
        return "y/n" if self._question is not None else ">" if self._block is not None else ""

    @property
    def waits(self) -> bool:
        """Whether there are lines to run."""
        return bool(self._waiting)

    @property
    def at_stop(self) -> bool:
        """Whether the last line belongs to the commands of a breakpoint at its stop."""
        return self._current.at_stop

    def typed(self, text: str) -> None:
        """Add a typed line; `next` returns its command."""
        self._budget = MOST
        self._waiting.appendleft(_Line(text))

    def forget_line(self) -> None:
        """Forget the last line: what runs until the next `next` belongs to no line."""
        self._current = _Line("")

    def next(self) -> Command | Answer | None:
        """Return the next command to run, a message to show instead, or None if nothing is waiting.

        Raises GvizError for a line that cannot be parsed; the lines after it are dropped.
        """
        if not self._waiting:
            return None
        self._current = self._waiting.popleft()
        self._budget -= 1
        if self._budget < 0:
            self._waiting.clear()
            raise GvizError(f"stopped after {MOST} commands", hint="the commands of a breakpoint may run in a loop")
        try:
            return self._read(self._current.text)
        except GvizError as error:
            raise self.refused(error) from None

    def take(self, reply: Reply) -> None:
        """Remember what follows from the answer to a command."""
        match reply:
            case Script(lines, origin):
                self._waiting.extendleft(_Line(line, origin) for line in reversed(lines))
            case Confirm():
                self._question = reply
            case CursorStop(then=lines, reason=reason):
                self._waiting.extendleft(_Line(line, reason.words, at_stop=True) for line in reversed(lines))

    def refused(self, error: GvizError) -> GvizError:
        """Drop the waiting lines, because a command failed. Return the error, with its line in a script."""
        left = len(self._waiting)
        self._waiting.clear()
        text, origin, _ = self._current
        self._current = _Line("")
        if not origin:
            return error
        omission = f", {left} line{'s' * (left != 1)} after it skipped" if left else ""
        why = "; ".join(filter(None, (error.why, f"at {clipped(shown(text.strip()), 40)} in {origin}{omission}")))
        return GvizError(error.what, why=why, hint=error.hint, exit_code=error.exit_code)

    def _read(self, text: str) -> Command | Answer:
        if self._question is not None:
            return self._answered(text.strip().lower())
        if self._block is not None:
            return self._collect(self._block, text.strip())
        command = parse(text) if text.strip() else self._last
        if command.name == "commands":
            return self._begin(command.argument)
        if command.name in REPEATED:
            self._last = Command(command.name) if spec_of(command).continues else command
        return command

    def _answered(self, answer: str) -> Answer:
        question, self._question = self._question, None
        if question is None or answer not in ("y", "yes"):
            return Answer(("nothing was changed.",))
        self.take(question.then)
        return Answer(())

    def _begin(self, text: str) -> Answer:
        """Begin ``commands [N]``, or run it in one line: ``commands N print x ;; continue``."""
        number, _, rest = text.partition(" ")
        if self.breakpoints is None or not self.breakpoints.listed:
            raise GvizError("there are no breakpoints yet", hint="break sets one", exit_code=2)
        chosen = self.breakpoints.by_number(number or ".")
        if rest.strip():
            return _set_commands(chosen, [line.strip() for line in rest.split(";;")])
        self._block = _CommandBlock(chosen, [])
        return Answer((f"commands of breakpoint {chosen.number}, one per line; end ends them.",))

    def _collect(self, block: _CommandBlock, text: str) -> Answer:
        if text != "end":
            block.lines.append(text)
            return Answer(())
        self._block = None
        return _set_commands(block.breakpoint, block.lines)


def _set_commands(chosen: BreakpointEntry, lines: list[str]) -> Answer:
    for line in filter(None, lines):
        parse(line)
    chosen.commands = tuple(filter(None, lines))
    count = len(chosen.commands)
    return Answer((f"breakpoint {chosen.number} runs {count} command{'' if count == 1 else 's'}.",))
