"""Lines of styled text as plain data: every panel draws them, and line mode prints them without the styles.

A style is a name (``value``, ``grad``, ``muted`` …), never a colour; the themes assign the colours. ``grad@12`` is the
style ``grad`` on a text that links to event 12. Widths are terminal cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from rich.cells import cell_len, chop_cells, set_cell_size

from gviz.values.plain_text import shown

Span = tuple[str, str]
"""``(text, style name)``; an empty style name is ordinary text."""

Line = tuple[Span, ...]

STYLES = (
    "title", "muted", "value", "grad", "sum", "error", "now", "selected", "key", "mark", "brand", "phase",
    "code-keyword", "code-string", "code-number", "code-comment", "code-name",
)  # fmt: skip
"""Every style name a line may use."""


def line(*parts: str | Span) -> Line:
    """Return a line of ordinary and styled text."""
    return tuple((part, "") if isinstance(part, str) else part for part in parts if part)


def link(style: str, event: int) -> str:
    """Return the style of a text that links to an event."""
    return f"{style}@{event}" if event else style


def style_and_event(style: str) -> tuple[str, int]:
    """Return the two halves of a style name: the style itself, and the event that it links to (0: none)."""
    name, _, event = style.partition("@")
    return name, int(event or 0)


def plain(spans: Line) -> str:
    """Return the text of a line."""
    return "".join(text for text, _ in spans)


def bar_cells(amount: float | None, largest: float, room: int) -> int:
    """Return how much of a bar an amount fills: all for the largest, nothing for none, nan or infinity."""
    if not amount or not largest or not isfinite(amount):
        return 0
    return min(max(1, round(room * amount / largest)), room)


def largest_of(amounts: Iterable[float | None]) -> float:
    """Return the largest finite amount, 0 if there is none."""
    return max((amount for amount in amounts if amount is not None and isfinite(amount)), default=0.0)


def cells(spans: Line) -> int:
    """Return the width of a line in terminal cells."""
    return sum(cell_len(text) for text, _ in spans)


def cut(spans: Line, width: int, ellipsis: str = "…") -> Line:
    """Return the line in at most `width` cells; an ellipsis shows that there is more."""
    if cells(spans) <= width:
        return spans
    kept: list[Span] = []
    room = width - cell_len(ellipsis)
    for text, style in spans:
        if cell_len(text) >= room:
            kept.append((set_cell_size(text, max(room, 0)).rstrip() + ellipsis, style))
            break
        kept.append((text, style))
        room -= cell_len(text)
    return tuple(kept)


def fitted(text: str, width: int, ellipsis: str = "…") -> str:
    """Return a text in exactly `width` cells, cut with an ellipsis or padded with blanks."""
    if cell_len(text) > width:
        text = set_cell_size(text, max(width - cell_len(ellipsis), 0)) + ellipsis
    return set_cell_size(text, max(width, 0))


def columns(left: Line, right: Line, width: int, ellipsis: str = "…") -> Line:
    """Return a row with `left` and `right` at its two ends; if there is too little room, `left` is cut."""
    room = width - cells(right) - 1
    left = cut(left, max(room, 0), ellipsis)
    return (*left, (" " * max(width - cells(left) - cells(right), 0), ""), *right)


def wrapped(spans: Line, width: int, indent: int = 0) -> Iterator[Line]:
    """Yield a line broken at blanks into rows of at most `width` cells; rows after the first are indented."""
    row: list[Span] = []
    used, start = 0, 0
    for word, style, needed in _needing(tuple(_untied(_words(spans), width - indent)), width - indent):
        if used + needed > width and used > start:
            yield _stripped(row)
            row, used, start = [(" " * indent, "")], indent, indent
            word = word.lstrip()
        for piece in _pieces(word, max(width - used, 1), max(width - indent, 1)):
            if row and used > start and used + cell_len(piece.rstrip()) > width:
                yield _stripped(row)
                row, used, start = [(" " * indent, "")], indent, indent
            row.append((piece, style))
            used += cell_len(piece)
    yield _stripped(row)


def paragraphs(text: str, width: int) -> Iterator[Line]:
    """Yield the rows of a text by the program with its paragraphs rewrapped.

    Indented lines and list items keep rows of their own.
    """
    for at, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if at:
            yield ()
        for row in _joined(paragraph.splitlines()):
            yield from wrapped(line(shown(row)), width, 3 if _ITEM.match(row) else 0)


_ITEM = re.compile(r"\s*(?:[-*]|\d+[.)])\s")


def _joined(rows: Iterable[str]) -> list[str]:
    """Return the rows of a paragraph, each joined with the rows that continue it."""
    joined: list[str] = []
    for row in rows:
        in_item = bool(joined) and _ITEM.match(joined[-1]) is not None
        continues = bool(joined) and (in_item or not any(it.startswith((" ", "\t")) for it in (row, joined[-1])))
        if continues and not _ITEM.match(row):
            joined[-1] = f"{joined[-1]} {row.strip()}"
        else:
            joined.append(row)
    return joined


TIED = "\xa0"
"""Keeps words on one row, if the row is wide enough; `wrapped` turns it into a blank."""


def labelled(label: str, spans: Iterable[Span], width: int, column: int = 7) -> Iterator[Line]:
    """Yield a row ``label  text`` whose text wraps under itself."""
    head = fitted(label, column) if len(label) < column else label + " "
    yield from wrapped(((head, "muted"), *spans), width, min(column, width // 2))


def _words(spans: Line) -> Iterator[Span]:
    """Yield pieces that may not be broken: a word with the blanks after it, or leading blanks."""
    for text, style in spans:
        start = 0
        for at in range(1, len(text)):
            if text[at - 1] == " " and text[at] != " ":
                yield text[start:at], style
                start = at
        yield text[start:], style


def _untied(words: Iterable[Span], room: int) -> Iterator[Span]:
    """Yield the words; split those tied ones that do not fit into one row, so that no number is broken."""
    for word, style in words:
        if TIED in word and cell_len(word.rstrip()) > room:
            yield from ((part, style) for part in re.findall(f"{TIED}*[^{TIED}]+{TIED}?", word))
        else:
            yield word, style


def _needing(words: Sequence[Span], room: int) -> Iterator[tuple[str, str, int]]:
    """Return each word with the cells that it needs: with the text that follows without a blank, if a row holds both.

    So a comma stays with the link before it.
    """
    widths: list[tuple[str, str, int]] = []
    joined = 0
    for word, style in reversed(words):
        own = cell_len(word.rstrip())
        joined = own if word[-1:].isspace() else own + joined
        widths.append((word, style, joined if joined <= room else own))
    return reversed(widths)


def _pieces(word: str, first: int, rest: int) -> list[str]:
    """Return a word in pieces that fit, if it is wider than a row; the line number of a file is one piece.

    A long name is broken where its parts begin, if its last piece is not longer than a row then.
    """
    if cell_len(word.rstrip()) <= max(first, rest):
        return [word]
    file, _, number = word.rpartition(":")
    if file and number[:1].isdigit() and cell_len(number) < rest:
        return [*chop_cells(file, rest), f":{number}"]
    breaks = [match.end() for match in _BREAK.finditer(word) if 0 < cell_len(word[: match.end()]) <= rest]
    at = next((at for at in reversed(breaks) if cell_len(word[at:].rstrip()) <= rest), 0)
    return [word[:at], word[at:]] if at else chop_cells(word, rest)


_BREAK = re.compile(r"\w[_.(,/](?=\w)")
"""Where a long word may be broken: before the next part of a name, a call or a path."""


def _stripped(row: list[Span]) -> Line:
    while row and not row[-1][0].strip() and len(row) > 1:
        row.pop()
    if row:
        row[-1] = (row[-1][0].rstrip(), row[-1][1])
    return tuple([(text.replace(TIED, " "), style) for text, style in row])
