"""The differences between the recorded source texts of two programs: often the reason why their numbers differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePath

MOST_LINES = 5000
"""Longer files are not compared: the time grows with the square of the length."""
ALIKE = 0.5
"""Files with a smaller share of common lines are different programs, not one that was changed."""

Texts = Mapping[str, str | None]
"""The text of each file by path, None if it was not kept."""


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A stretch of lines that differs on the other side.

    `files` are the paths on each side, `lines` the first line of the stretch (from 1), and `texts` its lines: empty if
    one side only has the lines around it.
    """

    files: tuple[str, str]
    lines: tuple[int, int]
    texts: tuple[tuple[str, ...], tuple[str, ...]]


def source_changes(a: Texts, b: Texts) -> tuple[SourceChange, ...]:
    """Return the differences in the files that both programs have, in order of lines."""
    return tuple(
        one for files in _file_pairs(a, b) for one in _changes_in_file(files, a[files[0]] or "", b[files[1]] or "")
    )


def _file_pairs(a: Texts, b: Texts) -> Iterator[tuple[str, str]]:
    """Yield pairs of corresponding files: the same path, the same name, or the only one left on either side."""
    mine, others = [path for path in a if path not in b], [path for path in b if path not in a]
    yield from ((path, path) for path in a if path in b)
    for path in [*mine]:
        same = [other for other in others if PurePath(other).name == PurePath(path).name]
        if len(same) == 1:
            yield path, same[0]
            mine.remove(path)
            others.remove(same[0])
    if len(mine) == len(others) == 1:
        yield mine[0], others[0]


def _changes_in_file(files: tuple[str, str], a: str, b: str) -> Iterator[SourceChange]:
    left, right = a.splitlines(), b.splitlines()
    if a == b or max(len(left), len(right)) > MOST_LINES:
        return
    matcher = SequenceMatcher(None, [line.rstrip() for line in left], [line.rstrip() for line in right], autojunk=False)
    if matcher.ratio() < ALIKE:
        return
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag != "equal":
            texts = _code_lines(left[start:end]), _code_lines(right[other_start:other_end])
            if texts[0] != texts[1]:
                yield SourceChange(files, (start + 1, other_start + 1), texts)


def _code_lines(lines: list[str]) -> tuple[str, ...]:
    """Return the lines with code, without empty lines and comment lines."""
    return tuple(line.rstrip() for line in lines if (text := line.strip()) and not text.startswith("#"))
