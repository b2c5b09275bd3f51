"""The processes of one training run, each with a recording of its own: where they stop agreeing.

Ranks have different data on purpose. What has to agree is the structure of their graphs, their parameters, and, where
gradients are averaged, the parameters' gradients as the optimizer used them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gviz.compare.comparison import STRUCTURE, Comparison, Difference, compared
from gviz.compare.side import Side
from gviz.trace.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Agreement:
    """One iteration (from 1) of rank `rank` beside that of the first rank; only what has to agree is compared."""

    iteration: int
    rank: int
    comparison: Comparison

    @property
    def first(self) -> Difference | None:
        """The first thing in which they do not agree."""
        return next(iter(self.comparison.differences), None)


def agreements(ranks: Sequence[Timeline]) -> Iterator[Agreement]:
    """Every iteration that all ranks have, with each rank but the first."""
    shared = min(len(rank.iterations) for rank in ranks)
    for iteration in range(1, shared + 1):
        for number, rank in enumerate(ranks[1:], 1):
            comparison = compared(Side(ranks[0], iteration, at_step=True), Side(rank, iteration, at_step=True))
            yield Agreement(iteration, number, replace(comparison, differences=tuple(_binding(comparison))))


def _binding(comparison: Comparison) -> Iterator[Difference]:
    """The differences of what has to agree."""
    for difference in comparison.differences:
        side, node = (comparison.a, difference.pair[0]) if difference.pair[0] else (comparison.b, difference.pair[1])
        if difference.kind in STRUCTURE or side.infos[node].created.kind == "parameter":
            yield difference
