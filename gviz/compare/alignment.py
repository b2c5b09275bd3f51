"""Which node of one side is which of the other.

Operations are aligned as ``diff`` aligns lines, by their order, what they are and the module they ran in, if the other
side has that module too (a traced model has none); names, numbers and lines of the source do not count. What nothing
computed is aligned by its use: the second input of two aligned operations is the same thing, whatever it is called.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile, zip_longest

from gviz.compare import sequence
from gviz.compare.side import Side, Token

Pair = tuple[int, int]
"""A node of either side; 0 where the other side has none that corresponds."""


WINDOW = 1000
"""Operations of either side that are aligned at a time: the time it takes grows with the square of it."""


def aligned(a: Side, b: Side) -> tuple[Pair, ...]:
    """Every node of both sides in one order: those only one side has stand where they would be on the other."""
    pairs = list(_ops(a, b))
    used = list(_used(a, b, [pair for pair in pairs if all(pair)]))
    used += _named(a, b, used)
    seen_a, seen_b = {x for x, _ in used}, {y for _, y in used}
    only_a = [(node, 0) for node in a.others if node not in seen_a]
    only_b = [(0, node) for node in b.others if node not in seen_b]
    return (*used, *only_a, *only_b, *pairs)


def _ops(a: Side, b: Side) -> Iterator[Pair]:
    for low_a, high_a, low_b, high_b in _stretches(*_tokens(a, b)):
        yield from zip_longest(a.ops[low_a:high_a], b.ops[low_b:high_b], fillvalue=0)


def _tokens(a: Side, b: Side) -> tuple[list[Token], list[Token]]:
    """The operations of both sides, with the modules that both have."""
    shared = {scope for _, scope in a.tokens()} & {scope for _, scope in b.tokens()}
    left, right = [[(name, scope if scope in shared else "") for name, scope in side.tokens()] for side in (a, b)]
    return left, right


def _stretches(a: Sequence[Token], b: Sequence[Token]) -> Iterator[tuple[int, int, int, int]]:
    """``(start and end in a, start and end in b)`` of stretches that are equal, or are on one side only.

    What is equal at the beginning belongs together, of a loop that goes round more often the last rounds are new; and
    then what is equal at the end: both compute their results there.
    """
    i = k = _equal(zip(a, b, strict=False))
    yield 0, i, 0, k
    end = _equal(zip(reversed(a[i:]), reversed(b[k:]), strict=False))
    last = (len(a) - end, len(a), len(b) - end, len(b))
    a, b = a[: last[0]], b[: last[2]]
    while i < len(a) or k < len(b):
        steps = sequence.stretches(a[i : i + WINDOW], b[k : k + WINDOW])
        is_last = len(a) <= i + WINDOW and len(b) <= k + WINDOW
        while not is_last and not steps[-1].equal and len(steps) > 1:
            steps.pop()  # the next window may tell more
        for equal, low_a, high_a, low_b, high_b in steps:
            if equal:
                yield i + low_a, i + high_a, k + low_b, k + high_b
            else:
                yield i + low_a, i + high_a, k + low_b, k + low_b
                yield i + high_a, i + high_a, k + low_b, k + high_b
        i, k = i + steps[-1].high_a, k + steps[-1].high_b
    yield last


def _equal(pairs: Iterable[tuple[Token, Token]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _used(a: Side, b: Side, ops: Sequence[Pair]) -> Iterator[Pair]:
    """Pairs of what nothing computed, by the aligned operations that use them; each node once."""
    free_a, free_b = set(a.others), set(b.others)
    for op_a, op_b in ops:
        inputs = zip(a.infos[op_a].created.inputs, b.infos[op_b].created.inputs, strict=False)
        for (node_a, _), (node_b, _) in inputs:
            if node_a in free_a and node_b in free_b:
                free_a.remove(node_a)
                free_b.remove(node_b)
                yield node_a, node_b


def _named(a: Side, b: Side, used: Sequence[Pair]) -> list[Pair]:
    """Pairs of the same kind and name, if any, among what no aligned operation uses, in order."""
    seen_a, seen_b = {x for x, _ in used}, {y for _, y in used}
    free: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
    for node in b.others:
        if node not in seen_b:
            free[_called(b, node)].append(node)
    rest = [node for node in a.others if node not in seen_a]
    return [(node, free[_called(a, node)].popleft()) for node in rest if free[_called(a, node)]]


def _called(side: Side, node: int) -> tuple[str, str]:
    return side.infos[node].created.kind, side.infos[node].name
