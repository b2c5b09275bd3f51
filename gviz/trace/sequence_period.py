"""Finds the period of a repeating sequence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def smallest_period(sequence: Sequence[Hashable], *, cut: bool = False) -> int:
    """Return the length of the shortest part that gives the sequence when repeated; its own length if there is none.

    With `cut` the last repetition may be incomplete: for a b a the result is then 2. Computed from the longest proper
    prefix that is also a suffix (Knuth, Morris, Pratt 1977).
    """
    border = [0] * len(sequence)
    for at in range(1, len(sequence)):
        length = border[at - 1]
        while length and sequence[at] != sequence[length]:
            length = border[length - 1]
        border[at] = length + (sequence[at] == sequence[length])
    period = len(sequence) - border[-1] if sequence else 0
    return period if cut or not period or len(sequence) % period == 0 else len(sequence)
