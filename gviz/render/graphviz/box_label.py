"""One box as an HTML-like label for Graphviz, with all text from the program escaped.

The usual box is one table (`box_label`). Some styles draw a node in two parts, as lectures do: the operation in a
circle, and its result with its gradient (`card`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from rich.cells import cell_len

from gviz.render.boxes.box_content import Box
from gviz.render.boxes.box_row import Row
from gviz.render.boxes.box_size import STATUS_ROOM
from gviz.render.boxes.shown_moment import NOT_YET
from gviz.render.boxes.tensor_pictures import CELL, NO_SHADES, NOT_A_NUMBER, THUMBNAIL_LINES
from gviz.render.legend import painted
from gviz.render.theme import Theme
from gviz.source.parsing import ARITHMETIC, SIGNS
from gviz.values.plain_text import shown
from gviz.values.value_text import NO_VALUE

CHARACTER = 7
"""Points of a character in a row. A wider text makes its own box wider."""
STATUS = 66
"""Points for the word of the state."""
SMALL = 9
ROW = 15
"""Points of a row's height."""
THUMBNAIL_WIDTH, LARGEST_SHADE = 128, 14
"""Points of a thumbnail's width, and the largest side of a cell in a thumbnail with few cells."""


def plain(text: str) -> str:
    """Return user text escaped for a label; an empty text keeps its line."""
    doubled = escape(shown(text)).replace("\\", r"\\")  # Graphviz replaces a single \N with the key of the box
    return doubled or "&#160;"


def coloured(text: str, colour: str, size: int = 0) -> str:
    """Return user text in a colour, at the size of a row unless a size is given."""
    points = f' point-size="{size}"' if size else ""
    return f'<font color="{colour}"{points}>{plain(text)}</font>'


def table(rows: Iterable[str], padding: int = 1, spacing: int = 0) -> str:
    """Return a label of finished rows."""
    return f"<{inner(rows, padding, spacing)}>"


def inner(rows: Iterable[str], padding: int = 1, spacing: int = 0) -> str:
    """Return a table within a cell."""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table border="0" cellborder="0" cellspacing="{spacing}" cellpadding="{padding}">{body}</table>'


def box_label(box: Box, theme: Theme) -> str:
    """Return a table of title and state, then one line per row, padded to the height that the box has at any moment."""
    if box.height == 1:
        mark = "► " if "current" in box.states else ""
        has_room = box.width >= cell_len(box.title) + STATUS_ROOM
        is_named = box.status and (has_room or painted(box) == "missing")
        word = f"&#160; {coloured(box.status, theme.texts['muted'], SMALL)}" if is_named else ""
        name = f"<b>{coloured(mark + box.title, theme.texts['title'])}</b>{word}"
        if box.rows:
            gradient = f"&#160;&#160;&#160;{_left(box.rows[0], theme)}"
            return table([f'<td align="left">{name}</td><td align="right">{gradient}</td>'])
        return table([f"<td>{name}</td>"])
    lines = [_head(box, theme)]
    for at, row in enumerate(box.rows):
        right = box.rows[at + 1] if at + 1 < len(box.rows) and box.rows[at + 1].shares_line else None
        if right is not None:
            lines.append(_pair(row, right, theme))
        elif not row.shares_line:
            lines.append(_row(row, theme))
    lines += ['<td colspan="3">&#160;</td>'] * (
        box.height - 1 - sum(row.lines for row in box.rows if not row.shares_line)
    )
    return table(lines)


def _pair(left: Row, right: Row, theme: Theme) -> str:
    """Return two rows in one line: a value, and its gradient at the right end."""
    texts = _left(left, theme), _left(right, theme)
    return f'<td align="left">{texts[0]}</td><td colspan="2" align="right">&#160;&#160;{texts[1]}</td>'


def _left(row: Row, theme: Theme) -> str:
    """Return a row with its text right after its label."""
    label = f"{coloured(row.label, theme.texts['muted'])}&#160;" if row.label else ""
    return f"{label}{_number(row.text, row, theme)}"


def _head(box: Box, theme: Theme) -> str:
    style = "bad" if {"nan", "inf", "error"} & set(box.states) else "muted"
    title = coloured(("► " if "current" in box.states else "") + box.title, theme.texts["title"])
    if box.is_narrow:
        word = f"&#160; {coloured(box.status, theme.texts[style], SMALL)}" if box.status else ""
        return f'<td colspan="3" align="left" width="{box.width * CHARACTER}"><b>{title}</b>{word}</td>'
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
    if row.is_left or not row.label:
        return f'<td colspan="3" align="left">{_left(row, theme)}</td>'
    return f'<td align="left">{label}</td><td colspan="2" align="right">{_number(row.text, row, theme)}</td>'


def _numbers(row: Row, theme: Theme) -> Iterator[str]:
    """Yield the lines of a grid. Each is as high as a row of text, and the widths of columns are fixed."""
    for line in row.grid:
        cells = (
            f'<td align="right" width="{CELL * CHARACTER}" height="{ROW + 2}">{_number(text, row, theme)}</td>'
            for text in line
        )
        yield "".join(cells)


def _number(text: str, row: Row, theme: Theme) -> str:
    """Return a number, in bold if this event adds to it."""
    written = coloured(text, theme.texts[row.style])
    return f"<b>{written}</b>" if row.style == "sum" else written


def _thumbnail(row: Row, theme: Theme) -> str:
    """Return cells in the colours of the theme, in a table of fixed size, which Graphviz would otherwise stretch."""
    wide = min(THUMBNAIL_WIDTH // len(row.shades[0]), LARGEST_SHADE)
    high = min((THUMBNAIL_LINES * ROW - 4) // len(row.shades), LARGEST_SHADE)
    size = f'fixedsize="true" width="{wide * len(row.shades[0])}" height="{high * len(row.shades)}"'
    cells = "".join(f"<tr>{''.join(_shade(shade, wide, high, theme) for shade in line)}</tr>" for line in row.shades)
    return f'<table border="0" cellborder="0" cellspacing="0" cellpadding="0" {size}>{cells}</table>'


def _shade(shade: int, wide: int, high: int, theme: Theme) -> str:
    colour = theme.texts["bad"] if shade == NOT_A_NUMBER else theme.shades[len(theme.shades) // 2 + shade]
    return f'<td bgcolor="{colour}" width="{wide}" height="{high}" fixedsize="true"></td>'


SPLIT = ".op"
"""The suffix of a box's key for its circle."""

SYMBOLS = {
    **SIGNS,
    **{f"{name}_": f"{sign}=" for name, sign in ARITHMETIC.items()},
    **{"neg": "-x", "reciprocal": "1/x"},
}

NUMBER = 60
"""Points for a number, so that records of scalars have equal widths at any moment."""


def card(box: Box, theme: Theme) -> tuple[str, str]:
    """Return the label of a node's result and the label of its circle, which is empty if it is no operation."""
    colour = theme.texts["title"]
    name, _, exponent = box.op.partition(" ")
    sign = f"{SYMBOLS[name.lower()]}{exponent}" if name.lower() in SYMBOLS else box.op
    symbol = table([f"<td>{coloured(sign, colour)}</td>"], 0) if box.op else ""
    return (_record(box, theme) if theme.form.card == "record" else _wire(box, theme)), symbol


def _record(box: Box, theme: Theme) -> str:
    """Return ``name | data 2.0000 | grad 1.0000``."""
    paint = theme.paints[painted(box)]
    cells = [f"<b>{coloured(box.title, theme.texts['title'])}</b>"] if box.title or not box.rows else []
    cells += [f"{coloured('data ', theme.texts['muted'])}{_card_number(row, theme)}" for row in _values(box)]
    cells += [f"{coloured('grad ', theme.texts['muted'])}{_card_number(row, theme)}" for row in _grads(box)]
    width = f' width="{_room(box, theme) + 30}"' if box.height > 1 else ""
    body = "".join(f"<td{width if number else ''}>{cell}</td>" for number, cell in enumerate(cells))
    lines = 'border="1" cellborder="1" cellspacing="0" cellpadding="4"'
    return f'<<table {lines} color="{paint.border}" bgcolor="{paint.fill}"><tr>{body}</tr></table>>'


def _wire(box: Box, theme: Theme) -> str:
    """Return the value above a line and the gradient below it, with a name at the left."""
    values, grads = _values(box), _grads(box)
    above = _card_number(values[0], theme) if values else f"<b>{coloured(box.title, theme.texts['title'])}</b>"
    below = _card_number(grads[0], theme) if grads else "&#160;"
    name = coloured(box.title, theme.texts["title"], 0 if not box.op else SMALL) if values else ""
    top = f'<td rowspan="2" cellpadding="4">{name}</td>' if name and box.title else ""
    line = f'<td border="1" sides="B" color="{theme.edge}" width="{_room(box, theme)}">{above}</td>'
    body = f'<tr>{top}{line}</tr><tr><td width="{_room(box, theme)}">{below}</td></tr>'
    return f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="2">{body}</table>>'


def _room(box: Box, theme: Theme) -> int:
    """Return the points for a value, the same in all pictures of a series."""
    return max(NUMBER, box.longest * (CHARACTER + theme.form.size - 11))


def _card_number(row: Row, theme: Theme) -> str:
    return coloured(row.text, theme.texts[row.style])


def _values(box: Box) -> list[Row]:
    return [row for row in box.rows if row.label.startswith("value")][:1]


def _grads(box: Box) -> list[Row]:
    """Return the single gradient of a record: of a leaf its ``.grad`` if it has one, or else the incoming gradient."""
    rows = {row.label: row for row in box.rows}
    gradients = [rows[label] for label in (".grad", "incoming", "grad", "grad 0", "adds") if label in rows]
    known = [row for row in gradients if row.text not in (NO_VALUE, NOT_YET, "None")]
    return (known or gradients)[:1]
