"""Runs of operations that stand on one side only, and whether they repeat: a loop that went round more often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from gviz.compare.comparison import Comparison
from gviz.compare.side import Side
from gviz.trace.repetition import smallest_period


@dataclass(frozen=True, slots=True)
class Run:
    """Successive operations of one side only: `times` times the ops of `period`, from node `first` on.

    `known` says that the other side has the same period just before: it went round the same loop less often.
    """

    side: Literal["a", "b"]
    first: int
    nodes: int
    period: tuple[str, ...]
    times: int
    known: bool


def runs(comparison: Comparison) -> Iterator[Run]:
    """The runs in order."""
    ops = {*comparison.a.ops}, {*comparison.b.ops}
    pairs = [(x, y) for x, y in comparison.pairs if x in ops[0] or y in ops[1]]
    before: list[str] = []
    for which, group in groupby(pairs, key=lambda pair: "both" if all(pair) else "a" if pair[0] else "b"):
        members = list(group)
        side = comparison.b if which == "b" else comparison.a
        names = [_name(side, y if which == "b" else x) for x, y in members]
        if which == "both":
            before += names
            continue
        period = names[: smallest_period(names)]
        first = members[0][which == "b"]
        known = before[-len(period) :] == period
        yield Run("b" if which == "b" else "a", first, len(names), tuple(period), len(names) // len(period), known)


def _name(side: Side, node: int) -> str:
    return side.infos[node].op.name
