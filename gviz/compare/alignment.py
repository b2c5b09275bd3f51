"""Which node of one side is which of the other.

Operations are aligned as ``diff`` aligns lines, by their order, what they are and the module they ran in; names,
numbers and lines of the source do not count. What nothing computed is aligned by its use: the second input of two
aligned operations is the same thing, whatever it is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest

from gviz.compare.side import Side, Token

Pair = tuple[int, int]
"""A node of either side; 0 where the other side has none that corresponds."""


MOST_STEPS = 4_000_000
"""Operations of one side times those of the other, up to which what follows the first difference is aligned too."""


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
    for low_a, high_a, low_b, high_b in _stretches(a.tokens(), b.tokens()):
        yield from zip_longest(a.ops[low_a:high_a], b.ops[low_b:high_b], fillvalue=0)


def _stretches(a: Sequence[Token], b: Sequence[Token]) -> Iterator[tuple[int, int, int, int]]:
    """``(start and end in a, start and end in b)`` of stretches that are equal, or are on one side only.

    What is equal at the beginning belongs together: of a loop that goes round more often, the last rounds are new.
    """
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    yield 0, head, 0, head
    if (len(a) - head) * (len(b) - head) > MOST_STEPS:  # the time below grows with the product, or worse
        yield head, len(a), head, head
        yield len(a), len(a), head, len(b)
        return
    for what, i, j, k, m in SequenceMatcher(None, a[head:], b[head:], autojunk=False).get_opcodes():
        if what == "equal":
            yield head + i, head + j, head + k, head + m
        else:
            yield head + i, head + j, head + k, head + k
            yield head + j, head + j, head + k, head + m


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
    """Pairs of the same kind and name among what no aligned operation uses."""
    seen_a, seen_b = {x for x, _ in used}, {y for _, y in used}
    free = {(b.infos[n].created.kind, b.infos[n].name): n for n in reversed(b.others) if n not in seen_b}
    pairs = []
    for node in a.others:
        info = a.infos[node]
        if node not in seen_a and info.name and (partner := free.pop((info.created.kind, info.name), 0)):
            pairs.append((node, partner))
    return pairs
