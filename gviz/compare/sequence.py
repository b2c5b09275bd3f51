"""Two sequences laid beside each other so that as many of their entries as can be stand beside one that is equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from gviz.values import Array

T = TypeVar("T")


class Stretch(NamedTuple):
    """From where to where in each of both; what is not `equal` stands on one side only, or is something else there."""

    equal: bool
    low_a: int
    high_a: int
    low_b: int
    high_b: int


def stretches(a: Sequence[T], b: Sequence[T]) -> list[Stretch]:
    """All of both, in order; time and room grow with the product of their lengths."""
    found: list[Stretch] = []
    i = k = 0
    for low_a, low_b, count in [*_runs(_pairs(a, b)), (len(a), len(b), 0)]:
        if i < low_a or k < low_b:
            found.append(Stretch(False, i, low_a, k, low_b))
        i, k = low_a + count, low_b + count
        if count:
            found.append(Stretch(True, low_a, i, low_b, k))
    return found


def _pairs(a: Sequence[T], b: Sequence[T]) -> Iterator[tuple[int, int]]:
    """The places of equal entries that stand beside each other, of several choices those that come to an end first."""
    worth = _worth(a, b)
    i = k = 0
    while worth[i, k]:
        if a[i] == b[k]:
            yield i, k
            i, k = i + 1, k + 1
        elif worth[i + 1, k] > worth[i, k]:
            i += 1
        else:
            k += 1


def _worth(a: Sequence[T], b: Sequence[T]) -> Array:
    """By place in both what is gained from there on: much for a pair, less 1 for each entry left out before the last.

    So what is left over stands at the end, where the entries behind these may yet be its partners.
    """
    numbers: dict[T, int] = {}
    left, right = (np.array([numbers.setdefault(one, len(numbers)) for one in each], np.int64) for each in (a, b))
    worth = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    pair, place = len(a) + len(b) + 1, np.arange(len(b))
    for i in reversed(range(len(a))):
        below = worth[i + 1]
        here = np.maximum(below[:-1] - 1, np.where(right == left[i], below[1:] + pair, 0))
        worth[i, :-1] = np.maximum(np.maximum.accumulate((here - place)[::-1])[::-1] + place, 0)
    return worth


def _runs(pairs: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Pairs that follow each other in both, as the first of them and how many they are."""
    first, count = (0, 0), 0
    for i, k in pairs:
        if count and (i, k) == (first[0] + count, first[1] + count):
            count += 1
            continue
        if count:
            yield *first, count
        first, count = (i, k), 1
    if count:
        yield *first, count
