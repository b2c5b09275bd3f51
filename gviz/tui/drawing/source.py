"""The source text around a place, with the exact expression marked, and the call stack that led there.

Pygments colours each line by its tokens; no text is ever parsed as markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from gviz.explain.source_frames import frame_text
from gviz.source.call_stack import Frame, source_lines
from gviz.tui.glyphs import Glyphs
from gviz.tui.styled_lines import Line, Span, cells, line
from gviz.values.plain_text import shown

LARGEST = 200_000
"""A file with more characters is shown without colours."""

BEGINNING = 12
"""How many columns of an expression are enough to recognise it."""

_STYLES = (
    ("Token.Keyword", "code-keyword"), ("Token.Operator.Word", "code-keyword"), ("Token.Literal.String", "code-string"),
    ("Token.Literal.Number", "code-number"), ("Token.Comment", "code-comment"), ("Token.Name.Function", "code-name"),
    ("Token.Name.Class", "code-name"), ("Token.Name.Decorator", "code-name"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceMark:
    """What to mark: the expression of `frame`, and the running line (0: the same line, -1: not in this file)."""

    frame: Frame
    running: int = 0


@lru_cache(maxsize=16)
def code_lines(text: str) -> tuple[Line, ...]:
    """Return a Python text, line by line, in the styles of code."""
    if len(text) > LARGEST:
        return tuple(((row, ""),) for row in source_lines(text))
    from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]

    rows: list[Line] = []
    spans: list[Span] = []
    for token, piece in PythonLexer(stripnl=False, ensurenl=False).get_tokens(text):
        style = _code_style(str(token))
        for at, part in enumerate(piece.split("\n")):
            if at:
                rows.append(tuple(spans))
                spans = []
            if part:
                spans.append((part, style))
    return (*rows, tuple(spans)) if spans else tuple(rows)


@lru_cache(maxsize=16)
def code_width(text: str) -> int:
    """Return the width of the widest line of a Python text, in cells."""
    return max(map(cells, code_lines(text)), default=0)


def gutter(
    number: int, place: SourceMark, digits: int, glyphs: Glyphs, *, marked: bool = False, apart: bool = False
) -> Line:
    """Return the left edge of row `number` (from 1): a mark if the program is there, a breakpoint, the line number.

    A row is `apart` if lines between it and the row above are left out.
    """
    running = place.running or place.frame.line
    mark = glyphs.now if number == running else " "
    head: Line = ((f"{mark} ", "now"),)
    if marked or apart:
        head = (mark, "now"), (glyphs.stop, "error") if marked else (glyphs.cut, "muted")
    return (*head, (f"{number:>{digits}} ", "muted"))


def source_line(rows: tuple[Line, ...], number: int, place: SourceMark) -> Line:
    """Return the code of row `number` (from 1), the expression in reverse video."""
    return tuple(_shown(_marked(rows[number - 1], number, place.frame)))


def first_row(place: SourceMark, count: int, height: int) -> int:
    """Return the top row (from 0) of a view of `height` rows: with the expression and, if it fits, the running row."""
    line = place.frame.line
    running = place.running if place.running > 0 else line
    top, bottom = min(line, running), max(line, running)
    middle = (top + bottom) // 2 if bottom - top < height else line
    return max(0, min(max(middle - 1 - height // 2, min(bottom, line + height - 1) - height), count - height))


def first_column(place: SourceMark, width: int) -> int:
    """Return the leftmost column (from 0) of a view of `width` cells: 0 if the expression's beginning is visible.

    Beginnings of lines are more readable than the end of one expression.
    """
    frame = place.frame
    end = frame.end_column if frame.end_line == frame.line else frame.column + BEGINNING
    if min(end, frame.column + BEGINNING) < width:
        return 0
    return max(0, min(end + 1 - width, frame.column - 1))


def windowed(code: Line, left: int, width: int, ellipsis: str) -> Line:
    """Return the columns `left` to `left + width` of a row, with an ellipsis at a cut end."""
    kept: list[Span] = []
    at = 0
    total = sum(len(text) for text, _ in code)
    for text, style in code:
        piece = text[max(left - at, 0) : max(left + width - at, 0)]
        kept.append((piece, style))
        at += len(text)
    if left and total > left:
        kept = [(ellipsis, "muted"), *_without(kept, len(ellipsis))]
    if total > left + width:
        kept = [(ellipsis, "muted"), *_without(reversed(kept), len(ellipsis), last=True)][::-1]
    return tuple(kept)


def _without(spans: Iterable[Span], count: int, *, last: bool = False) -> Iterator[Span]:
    """Yield the spans without the first characters, or, for spans in reverse order, the last ones."""
    for text, style in spans:
        cut_length = min(count, len(text))
        count -= cut_length
        yield (text[: len(text) - cut_length] if last else text[cut_length:]), style


def _code_style(token: str) -> str:
    return next((style for prefix, style in _STYLES if token.startswith(prefix)), "")


def _marked(row: Line, number: int, frame: Frame) -> Iterator[Span]:
    """Yield the row with the frame's expression in the style ``selected``; columns count UTF-8 bytes."""
    if not frame.line <= number <= frame.end_line or frame.column < 0:
        yield from row
        return
    length = sum(len(text.encode("utf-8", "surrogatepass")) for text, _ in row)
    start = frame.column if number == frame.line else _indent(row)
    end = frame.end_column if number == frame.end_line else length
    at = 0
    for text, style in row:
        for piece, inside in _split(text, start - at, end - at):
            yield piece, "selected" if inside else style
        at += len(text.encode("utf-8", "surrogatepass"))


def _split(text: str, start: int, end: int) -> Iterator[tuple[str, bool]]:
    """Yield the parts of `text` before, between and after two byte offsets."""
    data = text.encode("utf-8", "surrogatepass")
    start, end = max(0, min(start, len(data))), max(0, min(end, len(data)))
    for piece, inside in ((data[:start], False), (data[start:end], True), (data[end:], False)):
        if piece:
            yield piece.decode("utf-8", "replace"), inside


def _indent(row: Line) -> int:
    text = "".join(part for part, _ in row)
    return len(text) - len(text.lstrip())


def _shown(spans: Iterator[Span]) -> Iterator[Span]:
    for text, style in spans:
        yield shown(text.replace("\t", "    ")), style


# The call stack of the node whose line is shown


def frame_rows(frames: tuple[Frame, ...], node: int, depth: int, glyphs: Glyphs, width: int) -> list[tuple[Line, int]]:
    """Return a row for each frame, innermost first, with its depth (-1: no frame); the shown one is marked."""
    if not frames:
        text = "The line that made it is unknown" if node else "No node is selected"
        return [(line((text, "muted")), -1)]
    here = min(depth, len(frames) - 1)
    return [
        (line((glyphs.now if at == here else " ", "now"), (f" {at}  ", "muted"), frame_text(frame, width - 6)), at)
        for at, frame in enumerate(frames)
    ]
