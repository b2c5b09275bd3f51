"""Text inside Graphviz pictures: HTML-like labels, in which everything a program said is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from gviz.plain_text import shown
from gviz.render.boxes.row import Row
from gviz.render.boxes.tensors import CELL, NO_SHADES, NOT_A_NUMBER, THUMBNAIL_LINES
from gviz.render.scene import Box
from gviz.render.theme import Theme

CHARACTER = 7
"""Points a character takes at the size of a row; what is wider than expected makes its own box wider."""
STATUS = 66
"""Points for the state as a word."""
SMALL = 9
ROW = 15
"""Points a row is high."""
THUMBNAIL_WIDTH, LARGEST_SHADE = 128, 14
"""Points of a thumbnail, and of the side of a cell where there are few."""


def plain(text: str) -> str:
    """User text made harmless for a label; an empty one keeps its line."""
    doubled = escape(shown(text)).replace("\\", r"\\")  # Graphviz puts the key of the box for a single \N
    return doubled or "&#160;"


def coloured(text: str, colour: str, size: int = 0) -> str:
    """User text in a colour, at the size of a row unless told."""
    points = f' point-size="{size}"' if size else ""
    return f'<font color="{colour}"{points}>{plain(text)}</font>'


def table(rows: Iterable[str], padding: int = 1, spacing: int = 0) -> str:
    """A label made of finished rows."""
    return f"<{inner(rows, padding, spacing)}>"


def inner(rows: Iterable[str], padding: int = 1, spacing: int = 0) -> str:
    """A table within a cell."""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table border="0" cellborder="0" cellspacing="{spacing}" cellpadding="{padding}">{body}</table>'


def box_label(box: Box, theme: Theme) -> str:
    """Title and state, then one line per row, padded to the height the box has at any moment."""
    if box.height == 1:
        mark = "► " if "current" in box.states else ""
        return table([f"<td><b>{coloured(mark + box.title, theme.texts['title'])}</b></td>"])
    lines = [_head(box, theme), *(_row(row, theme) for row in box.rows)]
    lines += ['<td colspan="3">&#160;</td>'] * (box.height - 1 - sum(row.lines for row in box.rows))
    return table(lines)


def _head(box: Box, theme: Theme) -> str:
    style = "bad" if {"nan", "inf", "error"} & set(box.states) else "muted"
    title = coloured(("► " if "current" in box.states else "") + box.title, theme.texts["title"])
    room = max(box.width * CHARACTER - STATUS, CHARACTER)
    return (
        f'<td colspan="2" align="left" width="{room}"><b>{title}</b></td>'
        f'<td align="right" width="{STATUS}">{coloured(box.status, theme.texts[style], SMALL)}</td>'
    )


def _row(row: Row, theme: Theme) -> str:
    if row.shades:
        picture = coloured(row.text, theme.texts["muted"]) if row.shades == NO_SHADES else _thumbnail(row, theme)
        return f'<td colspan="3" align="right" height="{THUMBNAIL_LINES * ROW}">{picture}</td>'
    label = coloured(row.label, theme.texts["muted"])
    if row.grid:
        numbers = inner(_numbers(row, theme), 0)
        return f'<td align="left" valign="top">{label}</td><td colspan="2" align="right">{numbers}</td>'
    text = _number(row.text, row, theme)
    if not row.label:
        return f'<td colspan="3" align="left">{text}</td>'
    return f'<td align="left">{label}</td><td colspan="2" align="right">{text}</td>'


def _numbers(row: Row, theme: Theme) -> Iterator[str]:
    """The lines of a grid, each as high as a row of text and each column as wide at any moment."""
    for line in row.grid:
        cells = (
            f'<td align="right" width="{CELL * CHARACTER}" height="{ROW + 2}">{_number(text, row, theme)}</td>'
            for text in line
        )
        yield "".join(cells)


def _number(text: str, row: Row, theme: Theme) -> str:
    """What this event adds to is bold, wherever it stands."""
    written = coloured(text, theme.texts[row.style])
    return f"<b>{written}</b>" if row.style == "sum" else written


def _thumbnail(row: Row, theme: Theme) -> str:
    """Cells in the colours of the theme, in a table of their own size, which would otherwise be stretched."""
    wide = min(THUMBNAIL_WIDTH // len(row.shades[0]), LARGEST_SHADE)
    high = min((THUMBNAIL_LINES * ROW - 4) // len(row.shades), LARGEST_SHADE)
    size = f'fixedsize="true" width="{wide * len(row.shades[0])}" height="{high * len(row.shades)}"'
    cells = "".join(f"<tr>{''.join(_shade(shade, wide, high, theme) for shade in line)}</tr>" for line in row.shades)
    return f'<table border="0" cellborder="0" cellspacing="0" cellpadding="0" {size}>{cells}</table>'


def _shade(shade: int, wide: int, high: int, theme: Theme) -> str:
    colour = theme.texts["bad"] if shade == NOT_A_NUMBER else theme.shades[len(theme.shades) // 2 + shade]
    return f'<td bgcolor="{colour}" width="{wide}" height="{high}" fixedsize="true"></td>'
