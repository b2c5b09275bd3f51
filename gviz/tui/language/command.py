"""A command: one parsed line of text, the declaration of a command, and the kinds of its answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from gviz.system.cooperative_work import LongWork
from gviz.tui.styled_lines import Line

if TYPE_CHECKING:
    from gviz.live.protocol import Mode
    from gviz.tui.session import Session
    from gviz.tui.stop_reason import CursorStop


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its count (1 by default) and the rest of the line."""

    name: str
    count: int = 1
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Sentences: the screen shows a single one in the bottom row, several on a page of their own."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class View:
    """A view to show: `lines` returns its lines for a width.

    If it has a `panel`, the screen brings that panel to the front instead, scrolled to its end if `at_end`.
    """

    title: str
    lines: Callable[[int], Iterable[Line]]
    panel: str = ""
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class Jump:
    """A row to choose: its text, and its event and node (node 0: the one that acts in the event).

    `question` is the argument of ``explain`` that asks about the row, empty for the usual question about a node. A row
    with an `explanation` needs no question. `cause` is the node to select where the row is explained, 0 for none.
    """

    text: str
    event: int
    node: int = 0
    question: str = ""
    explanation: View | None = None
    cause: int = 0


@dataclass(frozen=True, slots=True)
class Choice(View):
    """Rows from which the user may choose one to go to; line mode only shows them."""

    places: tuple[Jump, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """Lines to run next; they come from `origin`."""

    lines: tuple[str, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class Confirm:
    """A question after some lines: `then` runs only if the answer is yes."""

    lines: tuple[str, ...]
    question: str
    then: Script


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A request that only a front end can carry out."""

    what: Literal["quit", "set", "play", "copy", "copy script"]
    argument: str = ""


@dataclass(frozen=True, slots=True)
class TerminalTask:
    """A task that uses the terminal itself, such as an editor. `run` returns the message to show when it has ended."""

    run: Callable[[], str]


Reply: TypeAlias = "CursorStop | Answer | View | Script | Confirm | FrontEnd | TerminalTask"
Work: TypeAlias = "LongWork[Reply]"
Run: TypeAlias = "Callable[[Session, Command], Reply | Work]"


def work(answer: Reply | Work) -> Work:
    """Return the work that computes an answer; for an answer that is ready, work that ends at once."""
    return (yield from answer) if isinstance(answer, Generator) else answer


@dataclass(frozen=True, slots=True)
class Spec:
    """The declaration of a command: its name, short forms (which take precedence), arguments, help and function.

    `takes` is ``[N]`` for a count, in brackets if optional, empty if nothing may follow; lower-case words are literal.
    With `continues`, an empty line continues the command (``list``), without its argument. At the live end the command
    resumes the paused program in the mode `runs`, or in `runs_bare` if it has no argument and that mode differs.
    """

    name: str
    aliases: tuple[str, ...]
    takes: str
    help: str
    run: Run
    continues: bool = False
    runs: Mode | None = None
    runs_bare: Mode | None = None

    @property
    def counted(self) -> bool:
        """Whether its only argument is a count."""
        return self.takes == "[N]"

    def help_text(self) -> str:
        """Return `help` with the formats of pictures filled in."""
        if "{suffixes}" not in self.help:
            return self.help
        from gviz.render.file_formats import all_suffixes  # Graphviz is only needed here

        return self.help.format(suffixes=all_suffixes())
