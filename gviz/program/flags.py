"""The options that this interpreter was called with, for one that is to run a program in the same way."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

_NAMES_THE_PROGRAM, _TAKES_A_VALUE = "cm", "WX"
_OTHERWISE = {"-I": ["-s", "-P"], "-E": [], "-S": [], "-i": []}
"""Without its environment and its site a process could not be told to record; the first is taken from it by hand."""


def of_this_interpreter() -> list[str]:
    """They stand before the program in the command line."""
    return [word for flag in _given(sys.orig_argv[1:]) for word in _OTHERWISE.get(flag, [flag])]


def _given(words: Sequence[str]) -> Iterator[str]:
    """One option at a time: several may share a word, and a value may have one of its own."""
    left = iter(words)
    for word in left:
        if word.startswith("--") and word != "--":
            yield from (word, next(left, ""))  # the only one that runs a program has a value
            continue
        if not word.startswith("-") or word in ("-", "--"):
            return
        for place, letter in enumerate(word[1:], 2):
            if letter in _NAMES_THE_PROGRAM:
                return
            if letter in _TAKES_A_VALUE:
                yield f"-{letter}{word[place:] or next(left, '')}"
                break
            yield f"-{letter}"
