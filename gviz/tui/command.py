"""What a command is: one line of text that was read, how it is declared, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gviz.tui.lines import Line

if TYPE_CHECKING:
    from gviz.tui.cursor import Arrival
    from gviz.tui.session import Session


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its count (1 unless given) and the rest of the line."""

    name: str
    count: int = 1
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """Sentences: one goes to the bottom row of the screen, more to a page of their own."""

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
class Wish:
    """Something only a front end can do; line mode knows ``quit`` alone."""

    what: Literal["quit", "theme"]
    argument: str = ""


Run = Callable[["Session", Command], "Arrival | Said | Look | Wish"]


@dataclass(frozen=True, slots=True)
class Spec:
    """A command as it is declared: full name, short forms (which always win), what follows, what it does, who does it.

    `takes` is ``[N]`` for a count, in brackets where it may be left out, empty where nothing follows. An empty line
    does it again if it `repeats`.
    """

    name: str
    aliases: tuple[str, ...]
    takes: str
    help: str
    run: Run
    repeats: bool = False

    @property
    def counted(self) -> bool:
        """Whether a number may follow, and nothing else."""
        return self.takes == "[N]"

    def told(self) -> str:
        """What it does, with the formats of pictures where it names them."""
        if "{suffixes}" not in self.help:
            return self.help
        from gviz.render.exporters import all_suffixes  # Graphviz is only needed here

        return self.help.format(suffixes=all_suffixes())
