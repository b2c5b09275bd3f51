"""What a check finds in the recordings of several ranks: a finding that many of them have is told once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gviz.explain.check import LEVELS, Checked


@dataclass(frozen=True, slots=True)
class OnRanks:
    """One finding as the first of the `ranks` has it that have one of its kind and line, and whether all say the same.

    Ranks are counted from 0.
    """

    checked: Checked
    ranks: tuple[int, ...]
    is_alike: bool = True


def on_ranks(found: Sequence[Sequence[Checked]]) -> list[OnRanks]:
    """What was found on each rank, the gravest first, then what most ranks have."""
    kept: dict[tuple[object, ...], OnRanks] = {}
    for rank, findings in enumerate(found):
        for one in findings:
            at = one.finding.at
            key = one.finding.kind, one.level, (at.path, at.line) if at is not None else one.finding.text
            first = kept.setdefault(key, OnRanks(one, ()))
            ranks = tuple(dict.fromkeys((*first.ranks, rank)))
            kept[key] = replace(first, ranks=ranks, is_alike=first.is_alike and first.checked == one)
    return sorted(kept.values(), key=_order)


def _order(one: OnRanks) -> tuple[int, int, int]:
    return LEVELS.index(one.checked.level), -len(one.ranks), one.checked.finding.event
