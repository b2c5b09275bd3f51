"""``compare``: two iterations, or this recording and another, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.trace import load
from gviz.tui import styled_lines
from gviz.tui.commands._paths import path_of
from gviz.tui.language.command import View
from gviz.tui.session import Session
from gviz.tui.styled_lines import Line
from gviz.values.number_text import typed_count

if TYPE_CHECKING:
    from gviz.compare.ranks import RankDifferences
    from gviz.compare.recording_comparison import Comparison

_HINT = 'write "compare 1,2" for two iterations, "compare 2" for this one and 2, "compare other.gviz" for another one'


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView(View):
    """Two recordings or iterations to show side by side, with the `names` of the recordings.

    `here` contains the sides that belong to this recording, the preferred one first.
    """

    comparison: Comparison
    names: tuple[str, str]
    here: tuple[int, ...]
    summary: tuple[str, ...] = ()
    """The lines at the top, if they differ from the usual summary."""
    expected: frozenset[int] = frozenset()
    """Indices of the differences that are expected, for example between two ranks."""

    @property
    def unexpected(self) -> Comparison:
        """The comparison without the expected differences."""
        kept = [each for at, each in enumerate(self.comparison.differences) if at not in self.expected]
        return replace(self.comparison, differences=tuple(kept))

    def place_of(self, at: int) -> tuple[int, int] | None:
        """Return event and node of pair number `at` in this recording: the first difference, or the creation."""
        pair = self.comparison.pairs[at]
        sides = (self.comparison.a, self.comparison.b)
        for which in self.here:
            if node := pair[which]:
                events = [each.events[which] for each in self.comparison.differences if each.pair == pair]
                return next(filter(None, events), sides[which].infos[node].born), node
        return None


def compare(session: Session, text: str) -> ComparisonView:
    """Run ``compare [A,B]`` or ``compare FILE [A,B]``.

    With one number, compare this iteration with that one; without numbers, with the previous one, or the same one in
    FILE.
    """
    from gviz.compare.compared_iteration import Side
    from gviz.compare.recording_comparison import compare

    timeline = session.timeline
    current = timeline.iteration_at(session.cursor.position)
    here = current.number
    file, numbers = _parts(text, here)
    if file:
        other = load(path_of(file))
        first, second = numbers or (here, min(here, other.iterations[-1].number))
    else:
        other = timeline
        first, second = numbers or (timeline.iterations[max(current.index - 1, 0)].number, here)
        if first == second:
            raise GvizError(f"both sides are iteration {first} of this recording", hint=_HINT, exit_code=2)
    comparison = compare(Side(timeline, first), Side(other, second))
    own = session.title.brief
    names = own, Path(file).name or own
    rows = partial(_lines, comparison, *names)
    return ComparisonView("Compared", rows, comparison=comparison, names=names, here=(0,) if file else (1, 0))


def ranks(session: Session, text: str) -> ComparisonView:
    """Run ``ranks FILE [N]``: two ranks of a training run in iteration N, else in the first in which they diverge."""
    from gviz.compare.ranks import Rank, divergence, divergence_in, is_shared, rank_differences
    from gviz.render import ranks_text as words

    file, number = _with_number(text)
    if not file:
        raise GvizError("ranks needs the recording of another rank", hint='write "ranks rank0.gviz"', exit_code=2)
    path = path_of(file)
    there, here = map(Rank, (load(path), session.timeline))
    parting = divergence_in(there, here, number) if number else divergence(there, here)
    iteration = number or (parting.iteration if parting is not None and parting.between is not None else 1)
    between = parting.between if parting is not None else None
    between = between or rank_differences(there.timeline, here.timeline, iteration)
    names = path.name, session.title.file
    sentences = words.sentences(parting, *names) if parting is not None else _agree(names, between)
    expected = frozenset(at for at, (part, _) in enumerate(between.parts) if not is_shared(part))
    rows = partial(_lines, between.shared, *names)
    return ComparisonView(
        "Ranks",
        rows,
        comparison=between.comparison,
        names=names,
        here=(1,),
        summary=tuple(sentences),
        expected=expected,
    )


def _agree(names: tuple[str, str], between: RankDifferences) -> Iterator[str]:
    from gviz.render import ranks_text as words

    yield f"{names[1]} {words.agreement(between.comparison.b.timeline, names[0])}."
    yield from words.expected(between)


def _with_number(text: str) -> tuple[str, int]:
    """Return a file, and the number after it (0: none)."""
    file, _, last = text.strip().rpartition(" ")
    number = typed_count(last)
    return (file.strip(), number) if file and number else (text.strip(), 0)


def _parts(text: str, here: int) -> tuple[str, tuple[int, int] | None]:
    """Return the file and the two iterations in a text; a single number is the second, and `here` the first.

    ``1 2`` and ``1, 2`` are the same as ``1,2``.
    """
    *words, last = text.split() or [""]
    if len(words) == 1 and (earlier := typed_count(words[0].removesuffix(","))) is not None:
        words, last = [], f"{earlier},{last}"
    first, comma, second = last.rpartition(",")
    one, other = typed_count(first) if comma else here, typed_count(second)
    if one is not None and other is not None:
        return " ".join(words), (one, other)
    return text.strip(), None


def _lines(comparison: Comparison, a: str, b: str, width: int) -> Iterator[Line]:
    from gviz.render import comparison_table as text_of

    for sentence in text_of.summary(comparison):
        yield from styled_lines.paragraphs(sentence, width)
    rows = list(text_of.rows(comparison, width))
    if rows:
        yield ()
        yield styled_lines.cut(styled_lines.line(text_of.heading(comparison, a, b, width)), width)
        yield from (styled_lines.cut(styled_lines.line(row), width) for row in rows)
