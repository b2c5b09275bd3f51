"""What has a number and stops the way through time: a breakpoint that was set, or a call in the program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeAlias

from gviz.query import expressions
from gviz.trace.stops import Hit, Hits
from gviz.trace.timeline import Timeline
from gviz.where.stop import AtFinding, Stop

if TYPE_CHECKING:
    from gviz.live.protocol import CallSite


def hits_of(timeline: Timeline, stop: Stop) -> Hits:
    """The moments at which a stop fits; GvizError for what is no expression, and for a kind of finding there is not."""
    if not isinstance(stop.at, AtFinding):
        return expressions.hits_of(timeline, stop)
    from gviz.tui.found import Found  # with every kind of finding: imported where one is asked for

    return Found(timeline, stop, stop.at.kind)


@dataclass(slots=True)
class Breakpoint:
    """One that was set here. It stops after the first `ignored` of the moments it fits.

    With a `message` it only says that. Where it stops, `commands` are carried out.
    """

    number: int
    stop: Stop
    hits: Hits
    once: bool = False
    message: str = ""
    enabled: bool = True
    ignored: int = 0
    commands: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that sets it."""
        return "log" if self.message else "tbreak" if self.once else "break"

    @property
    def words(self) -> str:
        """What it is, as it is listed."""
        message = f' "{self.message}"' if self.message else ""
        return f"{self.command} {self.stop.text}{message}" + f" (not the first {self.ignored})" * bool(self.ignored)

    def after(self, n: int) -> Iterator[Hit]:
        """The moments after `n` that count, in order."""
        if not self.ignored:
            return self.hits.after(n)
        return (hit for hit in islice(self.hits.after(0), self.ignored, None) if hit.n > n)

    def before(self, n: int) -> Iterator[Hit]:
        """The moments before `n` that count, the latest first."""
        first = next(islice(self.hits.after(0), self.ignored, None), None) if self.ignored else Hit(0)
        return iter(()) if first is None else (hit for hit in self.hits.before(n) if hit.n >= first.n)

    def stops_at(self, n: int) -> bool:
        """Whether moment `n` counts."""
        return next(self.after(n - 1), Hit(0)).n == n

    def untold(self, n: float = inf) -> int:
        """At how many of the moments by `n` that were looked at nobody can tell whether it stops."""
        return self.hits.untold(n)


@dataclass(slots=True)
class Call:
    """A call in the program that holds it, known from the first time it did: it can be switched off, and stays.

    The recording does not tell at which `moments` it held the program; who held it does.
    """

    number: int
    site: CallSite
    enabled: bool = True
    commands: tuple[str, ...] = ()
    moments: list[int] = field(default_factory=list)

    @property
    def words(self) -> str:
        """What it is, as it is listed: ``breakpoint() at train.py:12``."""
        return f"{self.site.call} at {PurePath(self.site.path).name}:{self.site.line}"

    def held(self, n: int) -> None:
        """It has held the program at moment `n`, the latest."""
        if n not in self.moments[-1:]:
            self.moments.append(n)

    def after(self, n: int) -> Iterator[Hit]:
        """The moments after `n` at which it held the program, in order."""
        return (Hit(moment) for moment in self.moments if moment > n)

    def before(self, n: int) -> Iterator[Hit]:
        """The moments before `n` at which it did, the latest first."""
        return (Hit(moment) for moment in reversed(self.moments) if moment < n)

    def stops_at(self, n: int) -> bool:
        """Whether it held the program at moment `n`."""
        return n in self.moments

    def untold(self, n: float = inf) -> int:
        """At how many moments nobody can tell whether it did: at none."""
        return 0


Listed: TypeAlias = Breakpoint | Call
"""What a number of the list may stand for."""
