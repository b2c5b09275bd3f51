"""Findings, and those of a check: the facts of an explanation, with their events, so that programs can read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from gviz.explain.source_edit import Edit
from gviz.rich_representation import Displayed
from gviz.source.call_stack import Frame
from gviz.values.plain_text import file_line


@dataclass(frozen=True, slots=True)
class Number:
    """A number in an explanation, and the event that made it (0: it was counted, or computed from others)."""

    name: str
    value: float
    event: int = 0


@dataclass(frozen=True, slots=True)
class Finding(Displayed):
    """One fact: its kind (a word for programs), its text, the event that shows it, and its node.

    `event` and `node` are 0 if there is none. `parts` are the facts that support it. `fix` describes what to write
    instead, and `edit` is the fix as an edit of the program, if possible. `at` is the line to change, None if it is
    unknown. `suspected` means that it may be intended.
    """

    kind: str
    text: str
    event: int = 0
    node: int = 0
    parts: tuple[Finding, ...] = ()
    fix: str = ""
    at: Frame | None = None
    numbers: tuple[Number, ...] = ()
    suspected: bool = False
    edit: Edit | None = None

    @property
    def where(self) -> str:
        """The place in the program as ``demo.py:4``, empty if it is unknown."""
        return file_line(self.at.path, self.at.line) if self.at is not None else ""

    def __str__(self) -> str:
        """Return the explanation as text, one line for each fact."""
        return "\n".join("  " * depth + text for depth, text, _ in lines(self))


MOST_LINES = 6
"""Lines of an answer, unless all are requested."""


def lines(finding: Finding, depth: int = 0) -> Iterator[tuple[int, str, int]]:
    """Yield an explanation as rows: its depth, its text, and its event (0: none)."""
    yield depth, finding.text, finding.event
    for part in finding.parts:
        yield from lines(part, depth + 1)
    if finding.fix:
        yield depth + 1, f"try: {finding.fix}", 0


def brief(finding: Finding, rest: str = "with --all") -> list[tuple[int, str, int]]:
    """Return the first of the `lines`, how many are left out, how to see the `rest`, and the fix."""
    rows = list(lines(finding))
    if len(rows) <= MOST_LINES:
        return rows
    end = rows[-1:] if finding.fix else []
    kept = rows[: MOST_LINES - 1 - len(end)]
    left_out = len(rows) - len(kept) - len(end)
    return [*kept, (1, f"and {left_out} more lines {rest}", 0), *end]


def main_facts(finding: Finding) -> list[Finding]:
    """What a check shows of a finding between title and fix: its numbers, and a fact about a further place, if any."""
    first, *others = finding.parts or (None,)
    if first is None:
        return []
    places = {(one.at.path, one.at.line) for one in (finding, first) if one.at is not None}
    further = (one for one in others if one.at is not None and (one.at.path, one.at.line) not in places)
    return [first, *([one] if (one := next(further, None)) is not None else [])]


def short_lines(finding: Finding) -> list[tuple[int, str, int]]:
    """The title, the `main_facts` and the fix, as `lines`."""
    facts, fix = [(1, one.text, one.event) for one in main_facts(finding)], fix_of(finding)
    return [(0, finding.text, finding.event), *facts, *([(1, f"try: {fix}", 0)] if fix else [])]


def fix_of(finding: Finding) -> str:
    """Return the fix of a finding, or else the first one of its `main_facts`."""
    return finding.fix or next((one.fix for one in main_facts(finding) if one.fix), "")


def left_out(findings: Iterable[Finding]) -> int:
    """The number of `lines` that `short_lines` leave out."""
    return sum(len(list(lines(one))) - len(short_lines(one)) for one in findings)


def edit_of(finding: Finding) -> Edit | None:
    """Return the edit that the finding carries, or else the first edit among its parts."""
    return next((one.edit for one in whole(finding) if one.edit is not None), None)


def whole(finding: Finding) -> Iterator[Finding]:
    """Yield the finding and everything that supports it."""
    yield finding
    for part in finding.parts:
        yield from whole(part)


def events(finding: Finding) -> tuple[int, ...]:
    """Return the events of an explanation, in order of time."""
    seqs = {one.event for one in whole(finding)} | {number.event for one in whole(finding) for number in one.numbers}
    return tuple(sorted(seqs - {0}))


def nodes(finding: Finding) -> tuple[int, ...]:
    """Return the nodes of an explanation, beginning with the node that it is about."""
    return tuple(dict.fromkeys(one.node for one in whole(finding) if one.node))


# ----------------------------------------------------------------------------------------------------------------------
# One finding of a check: its level, and how many more of its kind have the same line.

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
