"""The program's text as the page shows it, and the places in it that events and nodes come from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from gviz.plain_text import shown
from gviz.site import Frame, source_lines
from gviz.trace.timeline import Timeline

LARGEST = 400_000
"""A file with more characters than this is left out of the page."""

Mark = tuple[int, int, int, int, int]
"""File, line, column, last line, column behind the end; columns as the page counts them, -1 where not known."""


class Sources:
    """Files and marks in them, each once, numbered in the order in which they are asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._files: dict[str, list[str] | None] = {}
        self._marks: dict[Frame, int] = {}
        self.marks: list[Mark] = []

    def mark(self, frames: Sequence[Frame]) -> int:
        """The number of the place where a stack ends, -1 for an empty one."""
        if not frames:
            return -1
        frame = frames[0]
        if frame not in self._marks:
            self._marks[frame] = len(self.marks)
            self.marks.append(self._marked(frame))
        return self._marks[frame]

    def files(self) -> list[tuple[str, list[str]]]:
        """Each file's name and its lines as they are shown; no lines where the text was not kept or is too long."""
        return [
            (shown(PurePath(path).name), [] if lines is None else [display(line) for line in lines])
            for path, lines in self._files.items()
        ]

    def _marked(self, frame: Frame) -> Mark:
        if frame.path not in self._files:
            text = self._timeline.source(frame.path)
            self._files[frame.path] = None if text is None or len(text) > LARGEST else source_lines(text)
        lines = self._files[frame.path]
        number = list(self._files).index(frame.path)
        if lines is None or frame.column < 0 or not 0 < frame.line <= frame.end_line <= len(lines):
            return number, frame.line, -1, frame.end_line, -1
        start = _column(lines[frame.line - 1], frame.column)
        return number, frame.line, start, frame.end_line, _column(lines[frame.end_line - 1], frame.end_column)


def display(line: str) -> str:
    """A line of source with tabs as blanks, and everything invisible made visible."""
    return shown(line.replace("\t", "    "))


def _column(line: str, column: int) -> int:
    """Where a column, counted in bytes of UTF-8, stands in the line as it is shown, counted as browsers do."""
    before = line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace")
    return len(display(before).encode("utf-16-le", "surrogatepass")) // 2
