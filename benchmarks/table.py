"""One row of the table, and how rows are written."""

from __future__ import annotations

from dataclasses import dataclass

HEADINGS = ("what", "gviz", "the alternative", "ratio", "goal")


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison or one measurement; what does not apply is empty."""

    what: str
    gviz: str
    alternative: str = ""
    ratio: str = ""
    goal: str = ""


def missing(what: str, package: str, goal: str) -> Row:
    """The row of a comparison with a package that is not there."""
    return Row(what, "", f"{package}: not installed", "", goal)


def line(cells: tuple[str, ...]) -> str:
    """One line of the table."""
    what, gviz, alternative, ratio, goal = cells
    return f"{what:60}{gviz:>14}  {alternative:>26}  {ratio:>7}  {goal:>8}".rstrip()


def written(row: Row) -> str:
    """A row as a line."""
    return line((row.what, row.gviz, row.alternative, row.ratio, row.goal))


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
