"""Aligns the nodes of one side with those of the other.

Operations are aligned like lines in ``diff``: by their order, by what they are, and by the module they ran in if the
other side has that module too (a traced model has none). Names, node numbers and source lines do not count. A node that
was not computed by an operation is aligned by its use: the second inputs of two aligned operations are the same tensor,
whatever their names. The rest is paired by kind and name.

Example: one side runs ``mul add tanh``, the other ``mul relu add tanh``. ``mul`` is equal at the start and ``add tanh``
at the end, so ``relu`` is on the second side only.

Limits: the longest common part costs time and memory proportional to the product of both lengths. Long sequences are
therefore aligned `WINDOW` operations at a time, and pairs further apart than that are not found.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile, zip_longest
from typing import NamedTuple, TypeVar

import numpy as np

from gviz.compare.compared_iteration import Side, Token
from gviz.values.value import Array

Pair = tuple[int, int]
"""A node of each side; 0 on a side without a corresponding node."""


WINDOW = 1000
"""The number of operations of each side that are aligned at once; the time grows with its square."""


def align(a: Side, b: Side) -> tuple[Pair, ...]:
    """Return all nodes of both sides in one order; a node of only one side is placed where it would be on the other."""
    ranges = _stretches(*_tokens(a, b))
    pairs = [
        pair
        for low_a, high_a, low_b, high_b in ranges
        for pair in zip_longest(a.ops[low_a:high_a], b.ops[low_b:high_b], fillvalue=0)
    ]
    used = list(_pair_by_use(a, b, [pair for pair in pairs if all(pair)]))
    used += _pair_by_name(a, b, used)
    seen_a, seen_b = {x for x, _ in used}, {y for _, y in used}
    only_a = [(node, 0) for node in a.others if node not in seen_a]
    only_b = [(0, node) for node in b.others if node not in seen_b]
    return tuple(_by_creation([*used, *only_a, *only_b], pairs))


def _by_creation(others: Iterable[Pair], ops: Sequence[Pair]) -> Iterator[Pair]:
    """Yield all pairs in order of creation: those that no operation made before the first operation that came later."""
    places: defaultdict[int, list[Pair]] = defaultdict(list)
    created = [[(pair[side], at) for at, pair in enumerate(ops) if pair[side]] for side in (0, 1)]
    for pair in others:
        side = 0 if pair[0] else 1
        after = bisect_left(created[side], (pair[side], 0))
        places[created[side][after][1] if after < len(created[side]) else len(ops)].append(pair)
    for at, op in enumerate(ops):
        yield from sorted(places[at], key=_first_number)
        yield op
    yield from sorted(places[len(ops)], key=_first_number)


def _first_number(pair: Pair) -> int:
    return pair[0] or pair[1]


def _tokens(a: Side, b: Side) -> tuple[list[Token], list[Token]]:
    """Return the operations of both sides, with only those modules that both have."""
    shared = {scope for _, scope in a.tokens()} & {scope for _, scope in b.tokens()}
    left, right = [[(name, scope if scope in shared else "") for name, scope in side.tokens()] for side in (a, b)]
    return left, right


def _stretches(a: Sequence[Token], b: Sequence[Token]) -> Iterator[tuple[int, int, int, int]]:
    """Yield ``(start and end in a, start and end in b)`` of stretches that are equal, or on one side only.

    The common beginning is paired first: if a loop runs more often on one side, its last iterations are new. Then comes
    the common end, where both compute their results.
    """
    i = k = _equal_count(zip(a, b, strict=False))
    yield 0, i, 0, k
    end = _equal_count(zip(reversed(a[i:]), reversed(b[k:]), strict=False))
    last = (len(a) - end, len(a), len(b) - end, len(b))
    a, b = a[: last[0]], b[: last[2]]
    while i < len(a) or k < len(b):
        steps = stretches(a[i : i + WINDOW], b[k : k + WINDOW])
        is_last = len(a) <= i + WINDOW and len(b) <= k + WINDOW
        while not is_last and not steps[-1].equal and len(steps) > 1:
            steps.pop()  # the next window may show more
        for equal, low_a, high_a, low_b, high_b in steps:
            if equal:
                yield i + low_a, i + high_a, k + low_b, k + high_b
            else:
                yield i + low_a, i + high_a, k + low_b, k + low_b
                yield i + high_a, i + high_a, k + low_b, k + high_b
        i, k = i + steps[-1].high_a, k + steps[-1].high_b
    yield last


def _equal_count(pairs: Iterable[tuple[Token, Token]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _pair_by_use(a: Side, b: Side, ops: Sequence[Pair]) -> Iterator[Pair]:
    """Yield pairs of nodes without an operation, by the aligned operations that use them; each node once."""
    free_a, free_b = set(a.others), set(b.others)
    for op_a, op_b in ops:
        inputs = zip(a.infos[op_a].created.inputs, b.infos[op_b].created.inputs, strict=False)
        for (node_a, _), (node_b, _) in inputs:
            if node_a in free_a and node_b in free_b:
                free_a.remove(node_a)
                free_b.remove(node_b)
                yield node_a, node_b


def _pair_by_name(a: Side, b: Side, used: Sequence[Pair]) -> list[Pair]:
    """Return pairs with the same kind and name, in order, among nodes that no aligned operation uses."""
    seen_a, seen_b = {x for x, _ in used}, {y for _, y in used}
    free: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
    for node in b.others:
        if node not in seen_b:
            free[_called(b, node)].append(node)
    rest = [node for node in a.others if node not in seen_a]
    return [(node, free[_called(a, node)].popleft()) for node in rest if free[_called(a, node)]]


def _called(side: Side, node: int) -> tuple[str, str]:
    return side.infos[node].created.kind, side.infos[node].name


# The longest common part of two sequences

T = TypeVar("T")


class Stretch(NamedTuple):
    """A range in each sequence. If not `equal`, the entries are on one side only, or differ."""

    equal: bool
    low_a: int
    high_a: int
    low_b: int
    high_b: int


def stretches(a: Sequence[T], b: Sequence[T]) -> list[Stretch]:
    """Return all stretches of both, in order; time and memory grow with the product of their lengths."""
    result: list[Stretch] = []
    i = k = 0
    for low_a, low_b, count in [*_group_pairs(_equal_places(a, b)), (len(a), len(b), 0)]:
        if i < low_a or k < low_b:
            result.append(Stretch(False, i, low_a, k, low_b))
        i, k = low_a + count, low_b + count
        if count:
            result.append(Stretch(True, low_a, i, low_b, k))
    return result


def _equal_places(a: Sequence[T], b: Sequence[T]) -> Iterator[tuple[int, int]]:
    """Yield the indices of equal entries that are paired; of several choices the one that ends first."""
    worth = _gains(a, b)
    i = k = 0
    while worth[i, k]:
        if a[i] == b[k]:
            yield i, k
            i, k = i + 1, k + 1
        elif worth[i + 1, k] > worth[i, k]:
            i += 1
        else:
            k += 1


def _gains(a: Sequence[T], b: Sequence[T]) -> Array:
    """Return the gain from each pair of indices on: high for a pair, minus 1 per entry skipped before the last pair.

    Entries without a partner therefore stay at the end, where the next window may pair them.
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


def _group_pairs(pairs: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield runs of consecutive pairs as the first pair and the length."""
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
