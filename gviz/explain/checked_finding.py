"""One finding of a check: its level, and how many more of its kind have the same line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gviz.explain.finding import Finding

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
MOST_NAMED = 5


_NUMBER = re.compile(r"^#\d+ ")
"""The number of a node before its name: in later iterations a line makes nodes of the same name."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One finding of a check, its level, and how many more of its kind have the same line, and where."""

    finding: Finding
    level: Level
    more: int = 0
    others: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """Return the place, the level, the title, and the number of repetitions."""
        where = f"{self.finding.where}: " if self.finding.where else ""
        others = self.others
        if len(others) > MOST_NAMED:  # those of other iterations have the same name
            others = tuple(other for other in others if not self._names(_NUMBER.sub("", other)))
        named = ", ".join(others[:MOST_NAMED]) + (", …" if len(others) > MOST_NAMED else "")
        of = f": {named}" if named else ""
        more = f" (and {self.more} more on this line{of})" if self.more else ""
        return f"{where}{self.level}: {self.finding.text} [{self.finding.kind}]{more}"

    def _names(self, other: str) -> bool:
        """Return whether the title is about a node of that name: the same place in another iteration."""
        return re.search(rf"#\d+ {re.escape(other)}(?![\w.])", self.finding.text) is not None

    def __str__(self) -> str:
        """Return the heading, and the facts below."""
        _, *rest = str(self.finding).split("\n")
        return "\n".join([self.heading, *rest])
