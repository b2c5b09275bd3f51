"""What an explanation is made of: facts with their events, never a text that only a person can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gviz.explain.edit import Edit
from gviz.representation import Displayed
from gviz.source.site import Frame
from gviz.values.plain_text import file_line


@dataclass(frozen=True, slots=True)
class Number:
    """A number an explanation speaks of, and the event that made it (0: it was counted or divided from others)."""

    name: str
    value: float
    event: int = 0


@dataclass(frozen=True, slots=True)
class Finding(Displayed):
    """One fact: its kind (a word for programs), what it says, the event that shows it and the node it is about.

    `event` and `node` are 0 where there is none; `parts` are the facts it rests on; `fix` says what to write instead.
    `edit` is the fix as a change of the program, where it is one. `at` is the line to change, None if it is not known.
    `suspected` says that it may well be meant so.
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
        """The place in the program as ``demo.py:4``, empty if it is not known."""
        return file_line(self.at.path, self.at.line) if self.at is not None else ""

    def __str__(self) -> str:
        """The explanation as a person reads it, a line for each fact."""
        return "\n".join("  " * depth + text for depth, text, _ in lines(self))


MOST_LINES = 6
"""Lines of an answer unless all are asked for."""


def lines(finding: Finding, depth: int = 0) -> Iterator[tuple[int, str, int]]:
    """An explanation as rows: how deep, what, and the event to go to (0: none)."""
    yield depth, finding.text, finding.event
    for part in finding.parts:
        yield from lines(part, depth + 1)
    if finding.fix:
        yield depth + 1, f"try: {finding.fix}", 0


def brief(finding: Finding, rest: str = "with --all") -> list[tuple[int, str, int]]:
    """The first of the `lines`, how many are left out and how to see the `rest`, and what to try."""
    rows = list(lines(finding))
    if len(rows) <= MOST_LINES:
        return rows
    end = rows[-1:] if finding.fix else []
    kept = rows[: MOST_LINES - 1 - len(end)]
    left_out = len(rows) - len(kept) - len(end)
    return [*kept, (1, f"and {left_out} more lines {rest}", 0), *end]


def edit_of(finding: Finding) -> Edit | None:
    """The change of the program that the finding carries, or else the first of what it rests on."""
    return next((one.edit for one in whole(finding) if one.edit is not None), None)


def whole(finding: Finding) -> Iterator[Finding]:
    """The finding, and everything it rests on."""
    yield finding
    for part in finding.parts:
        yield from whole(part)


def events(finding: Finding) -> tuple[int, ...]:
    """The events an explanation rests on, in order of time."""
    seqs = {one.event for one in whole(finding)} | {number.event for one in whole(finding) for number in one.numbers}
    return tuple(sorted(seqs - {0}))


def nodes(finding: Finding) -> tuple[int, ...]:
    """The nodes an explanation speaks of, the one it is about first."""
    return tuple(dict.fromkeys(one.node for one in whole(finding) if one.node))
