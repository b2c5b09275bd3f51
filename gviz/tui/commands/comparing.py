"""``compare``: two iterations, or this recording and another, beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.numbers import typed_count
from gviz.trace import load
from gviz.tui import lines
from gviz.tui.language.command import Look
from gviz.tui.lines import Line
from gviz.tui.session import Session

if TYPE_CHECKING:
    from gviz.compare.comparison import Comparison

_HINT = 'write "compare 1,2" for two iterations, "compare other.gviz" for another recording'


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Look):
    """Two sides to look at beside each other, with the `names` of their recordings.

    `here` says which of them are of this recording, the one to go to first.
    """

    comparison: Comparison
    names: tuple[str, str]
    here: tuple[int, ...]

    def place_of(self, at: int) -> tuple[int, int] | None:
        """Event and node of this recording that pair number `at` is about: where they first differ, else its making."""
        pair = self.comparison.pairs[at]
        sides = (self.comparison.a, self.comparison.b)
        for which in self.here:
            if node := pair[which]:
                events = [each.events[which] for each in self.comparison.differences if each.pair == pair]
                return next(filter(None, events), sides[which].infos[node].born), node
        return None


def compare(session: Session, text: str) -> Compared:
    """``compare [A,B]`` or ``compare FILE [A,B]``; without numbers this iteration and the one before (in FILE: it)."""
    from gviz.compare.comparison import compared
    from gviz.compare.side import Side

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
    own = session.title.brief
    names = own, Path(file).name or own
    rows = partial(_lines, comparison, *names)
    return Compared("Compared", rows, comparison=comparison, names=names, here=(0,) if file else (1, 0))


def _parts(text: str) -> tuple[str, tuple[int, int] | None]:
    """The file and the two iterations that a text names."""
    *words, last = text.split() or [""]
    first, _, second = last.partition(",")
    one, other = typed_count(first), typed_count(second)
    if one is not None and other is not None:
        return " ".join(words), (one, other)
    return text.strip(), None


def _lines(comparison: Comparison, a: str, b: str, width: int) -> Iterator[Line]:
    from gviz.render import comparison as text_of

    for sentence in text_of.summary(comparison):
        yield from lines.paragraphs(sentence, width)
    rows = list(text_of.rows(comparison, width))
    if rows:
        yield ()
        yield lines.cut(lines.line(text_of.heading(comparison, a, b, width)), width)
        yield from (lines.cut(lines.line(row), width) for row in rows)
