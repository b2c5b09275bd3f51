"""``compare``: two iterations, or this recording and another, beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from gviz.compare.comparison import Comparison, compared
from gviz.compare.side import Side
from gviz.errors import GvizError
from gviz.render import comparison as text_of
from gviz.trace import load
from gviz.tui import lines
from gviz.tui.command import Look
from gviz.tui.lines import Line
from gviz.tui.session import Session

_HINT = 'write "compare 1,2" for two iterations, "compare other.gviz" for another recording'


def compare(session: Session, text: str) -> Look:
    """``compare [A,B]`` or ``compare FILE [A,B]``; without numbers this iteration and the one before (in FILE: it)."""
    timeline = session.timeline
    here = timeline.iteration_at(session.cursor.position).index + 1
    file, numbers = _parts(text)
    if file:
        other = load(Path(file).expanduser())
        first, second = numbers or (here, min(here, len(other.iterations)))
    else:
        other = timeline
        first, second = numbers or (max(here - 1, 1), here)
        if first == second:
            raise GvizError(f"both sides are iteration {first} of this recording", hint=_HINT, exit_code=2)
    comparison = compared(Side(timeline, first), Side(other, second))
    return Look("Compared", partial(_lines, comparison, session.title, Path(file).name or session.title))


def _parts(text: str) -> tuple[str, tuple[int, int] | None]:
    """The file and the two iterations that a text names."""
    *words, last = text.split() or [""]
    numbers = last.split(",")
    if len(numbers) == 2 and all(number.isdecimal() for number in numbers):
        return " ".join(words), (int(numbers[0]), int(numbers[1]))
    return text.strip(), None


def _lines(comparison: Comparison, a: str, b: str, width: int) -> Iterator[Line]:
    for sentence in text_of.summary(comparison):
        yield from lines.paragraphs(sentence, width)
    rows = list(text_of.rows(comparison, width))
    if rows:
        yield ()
        yield lines.cut(lines.line(text_of.heading(comparison, a, b, width)), width)
        yield from (lines.cut(lines.line(row), width) for row in rows)
