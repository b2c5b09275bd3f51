"""What a command is: one line of text that was read, how it is declared, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from gviz.system.cooperative import Driven
from gviz.tui.lines import Line

if TYPE_CHECKING:
    from gviz.live.protocol import Mode
    from gviz.tui.session import Session
    from gviz.tui.stop_reason import Arrival


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its count (1 unless given) and the rest of the line."""

    name: str
    count: int = 1
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Sentences: a single one goes to the bottom row of the screen, several to a page of their own."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """Something to look at: the `lines` of a width.

    On the screen `panel`, where it has one, comes to the front instead, scrolled to its end where that was asked for.
    """

    title: str
    lines: Callable[[int], Iterable[Line]]
    panel: str = ""
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A row to choose: its text, and the event and node that it leads to (node 0: the one that acts there)."""

    text: str
    event: int
    node: int = 0


@dataclass(frozen=True, slots=True)
class Choice(Look):
    """Rows of which the user may choose one to go to; line by line they are only shown."""

    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    """Lines to carry out next; they come from `origin`."""

    lines: tuple[str, ...]
    origin: str


@dataclass(frozen=True, slots=True)
class Confirm:
    """A question after some lines: only if the answer is yes `then` is carried out."""

    lines: tuple[str, ...]
    question: str
    then: Script


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """Something that only a front end can do."""

    what: Literal["quit", "set", "play", "copy", "copy script"]
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Outside:
    """Something that has the terminal for itself while it runs; what there is to say afterwards is its answer."""

    run: Callable[[], str]


Reply: TypeAlias = "Arrival | Answer | Look | Script | Confirm | FrontEnd | Outside"
Work: TypeAlias = "Driven[Reply]"
Run: TypeAlias = "Callable[[Session, Command], Reply | Work]"


def work(answer: Reply | Work) -> Work:
    """What is left to do for the answer of a command: nothing, unless it is given a little at a time."""
    return (yield from answer) if isinstance(answer, Generator) else answer


@dataclass(frozen=True, slots=True)
class Spec:
    """A command as it is declared: full name, short forms (which always win), what follows, what it does, the function.

    `takes` is ``[N]`` for a count, in brackets where it is optional, empty where nothing follows; small letters are
    literal. With `goes_on` an empty line continues it (``list``), without what followed. At the live end it lets a held
    program run on in the mode `runs`, or `runs_bare` where nothing follows and that differs.
    """

    name: str
    aliases: tuple[str, ...]
    takes: str
    help: str
    run: Run
    goes_on: bool = False
    runs: Mode | None = None
    runs_bare: Mode | None = None

    @property
    def counted(self) -> bool:
        """Whether a number may follow, and nothing else."""
        return self.takes == "[N]"

    def help_text(self) -> str:
        """The text of `help`, with the formats of pictures filled in."""
        if "{suffixes}" not in self.help:
            return self.help
        from gviz.render.file_formats import all_suffixes  # Graphviz is only needed here

        return self.help.format(suffixes=all_suffixes())
