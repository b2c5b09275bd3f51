"""What an explanation is made of: facts with their events, never a text that only a person can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact: its kind (a word for programs), what it says, the event that shows it and the node it is about.

    `event` and `node` are 0 where there is none; `parts` are the facts it rests on; `fix` says what to write instead.
    """

    kind: str
    text: str
    event: int = 0
    node: int = 0
    parts: tuple[Finding, ...] = ()
    fix: str = ""


def lines(finding: Finding, depth: int = 0) -> Iterator[tuple[int, str, int]]:
    """An explanation as rows: how deep, what, and the event to go to (0: none)."""
    yield depth, finding.text, finding.event
    for part in finding.parts:
        yield from lines(part, depth + 1)
    if finding.fix:
        yield depth + 1, f"try: {finding.fix}", 0
