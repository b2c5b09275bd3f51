"""The report on all ranks of one training run: where they first differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gviz.cli.recording_input import Recordings
    from gviz.compare.ranks import Divergence

ROWS = 30


@dataclass(frozen=True, slots=True)
class RankComparison:
    """One rank (its place in the folder), the rank that it is compared with, and where they differ, if they do."""

    rank: int
    other: int
    parting: Divergence | None

    @property
    def broken_off(self) -> int | None:
        """The rank that ends first in an iteration, if that is the difference."""
        if self.parting is None or self.parting.what != "end":
            return None
        there, here = self.parting.counts
        return self.rank if not there or 0 < here < there else self.other


def compared(folder: Recordings) -> list[RankComparison]:
    """Compare every other rank with the first; with the second, if the first differs from all others."""
    first = _comparisons(folder, 0)
    if len(folder.ranks) > 2 and all(each.parting is not None for each in first):
        second = _comparisons(folder, 1)
        if sum(each.parting is None for each in second):
            return second
    return first


def _comparisons(folder: Recordings, other: int) -> list[RankComparison]:
    from gviz.compare.ranks import divergence

    ranks = [rank for rank in range(len(folder.ranks)) if rank != other]
    return [RankComparison(rank, other, divergence(folder.ranks[other], folder.ranks[rank])) for rank in ranks]


def lines(folder: Recordings, comparisons: list[RankComparison]) -> Iterator[str]:
    """Yield the lines of the report: the ranks, where each first differs, and the first two that differ side
    by side.
    """
    from gviz.render import ranks_text as text

    yield from folder.remarks
    width = max(len(folder.name(rank)) for rank in range(len(folder.paths)))
    by_rank = {each.rank: each for each in comparisons}
    for number, rank in enumerate(folder.ranks):
        ended = text.ending(rank.timeline)
        yield f"{folder.name(number):<{width}}  {text.iterations_of(rank.timeline)}{ended and f', {ended}'}"
        if (each := by_rank.get(number)) is not None:
            yield f"{' ' * width}  {_headline(folder, each)}"
    parted = first_of(comparisons)
    if parted is not None:
        yield from _values(folder, parted)


def _headline(folder: Recordings, each: RankComparison) -> str:
    from gviz.render import ranks_text as text

    if each.parting is None:
        return text.agreement(folder.ranks[each.rank].timeline, folder.name(each.other))
    return text.headline(each.parting, folder.name(each.other), folder.name(each.rank))


def _values(folder: Recordings, each: RankComparison) -> Iterator[str]:
    from gviz.render import comparison_table as table
    from gviz.render import ranks_text as text

    if each.parting is None:
        return
    names = folder.name(each.other), folder.name(each.rank)
    yield ""
    if len(folder.ranks) > 2:
        yield f"{names[1]} is the first to differ from {names[0]}:"
    yield from islice(text.sentences(each.parting, *names), 1, None)
    between = each.parting.between
    if between is not None and between.shared.differences and each.parting.what != "end":
        yield ""
        yield table.heading(between.comparison, *names)
        yield from islice(table.rows(between.shared), ROWS)


def first_of(comparisons: list[RankComparison]) -> RankComparison | None:
    """Return the rank that differs first."""
    parted = [(each.parting.iteration, each) for each in comparisons if each.parting is not None]
    return min(parted, key=lambda it: it[0])[1] if parted else None


def as_data(folder: Recordings, comparisons: list[RankComparison]) -> dict[str, Any]:
    """Return the report as data: each difference with its part of training, and whether ranks should share
    that part.
    """
    from gviz.render import ranks_text as text

    ranks = [
        {
            "file": path.name,
            "iterations": rank.iterations,
            "events": len(rank.timeline),
            "ended": text.ending(rank.timeline),
        }
        for path, rank in zip(folder.paths, folder.ranks, strict=True)
    ]
    return {"ranks": ranks, "remarks": folder.remarks, "compared": [_data_of(folder, each) for each in comparisons]}


def _data_of(folder: Recordings, each: RankComparison) -> dict[str, Any]:
    from gviz.compare.ranks import is_shared

    files = {"rank": folder.paths[each.rank].name, "other": folder.paths[each.other].name}
    parting = each.parting
    if parting is None:
        return {**files, "agrees": True}
    parts = parting.between.parts if parting.between is not None else ()
    differences = [{"part": part, "shared": is_shared(part), "difference": one} for part, one in parts]
    place = {"iteration": parting.iteration, "what": parting.what, "counts": parting.counts}
    return {**files, "agrees": False, **place, "first": parting.difference, "differences": differences}
