"""The source of the program: around the current line, or any line of a file in the trace."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import PurePath

from gviz.errors import GvizError
from gviz.explain.source_frames import frame_text
from gviz.query_syntax.place import Place, place
from gviz.source import parsing
from gviz.source.call_stack import Frame, source_lines
from gviz.tui import styled_lines
from gviz.tui.drawing.source import SourceMark, code_lines
from gviz.tui.glyphs import Glyphs
from gviz.tui.language.command import View
from gviz.tui.session import Session, SourceListing
from gviz.tui.styled_lines import Line, line
from gviz.values.plain_text import clipped, shown

_LINES = re.compile(r"(\d{1,9})(?:\s*,\s*(\d{1,9}))?")
"""``12``, or ``12,20`` as in gdb and pdb."""
AROUND = 4
"""Lines of source before and after the current one, in line mode."""
WINDOW = 2 * AROUND + 1
"""Lines of source that the same command shows next."""


def source(session: Session, text: str) -> View:
    """Run ``list [PLACE]``: show where a node was made, and select it; for a line that made none, only show the line.

    ``12`` and ``12,20`` are lines of the shown file, ``.`` is the current one. Without a place, the listing continues
    after the last one, ``-`` before it, as long as the position and the frame are the same.
    """
    if numbers := _LINES.fullmatch(text):
        return _of_lines(session, int(numbers[1]), int(numbers[2] or 0))
    if text in ("", "-") and session.listing is not None and session.listing.viewpoint == session.viewpoint:
        return _continued(session, session.listing, backward=text == "-")
    if text in (".", "-"):
        return _current(session)
    try:
        node = session.cursor.node_at(text) if text else 0
    except GvizError:
        meant = place(text)
        if meant.kind != "line":
            raise
        return _listing(session, _line_of_a_file(session, meant))
    if node:
        session.cursor.select(node)
    return _current(session)


def function(session: Session, _: str) -> View:
    """Run ``longlist``: the function around the current line, else the whole file."""
    seen = session.source_mark
    if seen is None:
        raise GvizError("no source line for this event", exit_code=2)
    first, last = _around_line(session.timeline.source(seen.frame.path) or "", seen.frame.line)
    return _listing(session, seen, range(first, last + 1))


def _around_line(text: str, line: int) -> tuple[int, int]:
    """Return the first and last line of the innermost function around a line, else of the file."""
    try:
        functions = [
            one for one in ast.walk(parsing.program(text)) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        functions = []
    ranges = [(one.lineno, one.end_lineno or one.lineno) for one in functions]
    around = [(first, last) for first, last in ranges if first <= line <= last]
    return max(around, default=(1, len(source_lines(text))))


def _of_lines(session: Session, first: int, last: int) -> View:
    """Show lines of the current file; without a last line, those around the first."""
    mark = _line_of_a_file(session, place(f":{first}"))
    if last and last < first:
        raise GvizError(f"line {last} is before line {first}", hint=f"list {last},{first}", exit_code=2)
    return _listing(session, mark, range(first, last + 1) if last else None)


def here(session: Session) -> View:
    """Show the source of the selected node, or of the caller in the shown frame."""
    return View("Source", lambda _: _source_lines(session), panel="source")


def _current(session: Session) -> View:
    """Show the same as `here`, and let the next listing continue it."""
    seen = session.source_mark
    return here(session) if seen is None else _listing(session, seen, panel="source")


def _listing(session: Session, mark: SourceMark, rows: range | None = None, panel: str = "") -> View:
    """Show some lines of a file, else those around a place; the next listing continues after them."""
    at, most = mark.frame.line, len(_code(session, mark))
    around = range(max(at - AROUND, 1), min(at + AROUND, most) + 1)
    session.listing = SourceListing(mark, rows or around, session.viewpoint) if most else None
    return View("Source", lambda _: _lines_at(session, mark, rows), panel=panel)


def _continued(session: Session, listing: SourceListing, *, backward: bool) -> View:
    """Show the lines after the last listing, or before it. Raises GvizError at an end of the file."""
    mark, seen, code = listing.mark, listing.lines, _code(session, listing.mark)
    later_lines = range(seen.stop, min(seen.stop + WINDOW, len(code) + 1))
    rows = range(max(seen.start - WINDOW, 1), seen.start) if backward else later_lines
    if not rows:
        what = f"{PurePath(mark.frame.path).name} " + ("begins there" if backward else f"has {len(code)} lines")
        raise GvizError(what, hint="list . shows the current one", exit_code=2)
    session.listing = SourceListing(mark, rows, listing.viewpoint)
    return View("Source", lambda _: map(line, _numbered(code, list(rows), mark, session.glyphs)), panel="source")


def _code(session: Session, mark: SourceMark) -> tuple[Line, ...]:
    return code_lines(session.timeline.source(mark.frame.path) or "")


def _line_of_a_file(session: Session, meant: Place) -> SourceMark:
    """Return a line of a file in the trace, by default the current file. Raises GvizError if there is none."""
    running, seen = session.current_frame, session.source_mark
    path = _path_of(session, meant.word) if meant.word else seen.frame.path if seen is not None else ""
    text = session.timeline.source(path)
    if text is None:
        known = ", ".join(PurePath(path).name for path, text in session.timeline.sources.items() if text)
        what = f"{clipped(meant.word, 40) or 'that file'} is not in the trace"
        raise GvizError(what, hint=known and f"it contains {known}", exit_code=2)
    most = len(code_lines(text))
    if not 0 < meant.number <= most:
        raise GvizError(f"{PurePath(path).name} has {most} lines", exit_code=2)
    frame = Frame(path, "<module>", meant.number, meant.number, -1, -1)
    return SourceMark(frame, running.line if running is not None and running.path == path else -1)


def _path_of(session: Session, word: str) -> str:
    return next((path for path in session.timeline.sources if word in (path, PurePath(path).name)), word)


def _source_lines(session: Session) -> Iterator[Line]:
    seen = session.source_mark
    if seen is None:
        yield line("no source line for this event.")
    else:
        yield from _lines_at(session, seen)


def _lines_at(session: Session, place: SourceMark, rows: range | None = None) -> Iterator[Line]:
    """Yield some rows of the text, else those around the place."""
    text = session.timeline.source(place.frame.path)
    yield line(f"{frame_text(place.frame)}:")
    if text is None:
        yield line("  the text of this file is not in the trace.")
        return
    code = code_lines(text)
    numbers = _around(place, len(code)) if rows is None else [number for number in rows if number <= len(code)]
    yield from map(line, _numbered(code, numbers, place, session.glyphs))


def _around(place: SourceMark, most: int) -> list[int]:
    """Return the lines around the expression, and the one that is running."""
    here, running = place.frame.line, place.running
    numbers = [*range(max(here - AROUND, 1), min(here + AROUND, most) + 1)]
    return [*numbers, running] if 0 < running <= most and running not in numbers else numbers


def _numbered(rows: tuple[Line, ...], numbers: list[int], place: SourceMark, marks: Glyphs) -> Iterator[str]:
    """Yield some lines, with the expression underlined by ``^``."""
    here, running = place.frame.line, place.running
    for number in numbers:
        mark = marks.now if number == (running or here) else " "
        code = shown(styled_lines.plain(rows[number - 1]).replace("\t", " "))
        yield f"{mark} {number:>4} {code}".rstrip()
        if number == here and place.frame.column >= 0:
            yield " " * 7 + _underline(rows[number - 1], place)


def _underline(row: Line, place: SourceMark) -> str:
    """Return blanks and ``^`` below the expression; columns of a frame count UTF-8 bytes."""
    data = styled_lines.plain(row).encode("utf-8", "surrogatepass")
    frame = place.frame
    end = frame.end_column if frame.end_line == frame.line else len(data)
    before = data[: frame.column].decode("utf-8", "replace")
    return " " * len(before) + "^" * max(len(data[frame.column : end].decode("utf-8", "replace")), 1)
