"""Nodes drawn as two parts, as lectures do: the operation in a circle, then what it made, with its gradient."""

from __future__ import annotations

from gviz.render.boxes.row import Row
from gviz.render.graphviz.labels import CHARACTER, SMALL, coloured, table
from gviz.render.graphviz.legend import painted
from gviz.render.scene import Box
from gviz.render.theme import Theme
from gviz.syntax import ARITHMETIC, SIGNS
from gviz.value_text import NO_VALUE

SPLIT = ".op"
"""What follows a box's key in the key of its circle."""

SYMBOLS = {
    **SIGNS,
    **{f"{name}_": f"{sign}=" for name, sign in ARITHMETIC.items()},
    **{"neg": "-x", "reciprocal": "1/x"},
}

NUMBER = 60
"""Points for a number, so that records of scalars are as wide at any moment."""


def card(box: Box, theme: Theme) -> tuple[str, str]:
    """The label of what a node made, and the one of its circle, empty for what is no operation."""
    colour = theme.texts["title"]
    symbol = table([f"<td>{coloured(SYMBOLS.get(box.op.lower(), box.op), colour)}</td>"], 0) if box.op else ""
    return (_record(box, theme) if theme.form.card == "record" else _wire(box, theme)), symbol


def _record(box: Box, theme: Theme) -> str:
    """``name | data 2.0000 | grad 1.0000``."""
    paint = theme.paints[painted(box)]
    cells = [f"<b>{coloured(box.title, theme.texts['title'])}</b>"]
    cells += [f"{coloured('data ', theme.texts['muted'])}{_number(row, theme)}" for row in _values(box)]
    cells += [f"{coloured('grad ', theme.texts['muted'])}{_number(row, theme)}" for row in _grads(box)]
    width = f' width="{_room(box, theme) + 30}"' if box.height > 1 else ""
    body = "".join(f"<td{width if number else ''}>{cell}</td>" for number, cell in enumerate(cells))
    lines = 'border="1" cellborder="1" cellspacing="0" cellpadding="4"'
    return f'<<table {lines} color="{paint.border}" bgcolor="{paint.fill}"><tr>{body}</tr></table>>'


def _wire(box: Box, theme: Theme) -> str:
    """The value above a line and the gradient below it; a name stands at the left."""
    values, grads = _values(box), _grads(box)
    above = _number(values[0], theme) if values else f"<b>{coloured(box.title, theme.texts['title'])}</b>"
    below = _number(grads[0], theme) if grads else "&#160;"
    name = coloured(box.title, theme.texts["title"], 0 if not box.op else SMALL) if values else ""
    top = f'<td rowspan="2" cellpadding="4">{name}</td>' if name else ""
    line = f'<td border="1" sides="B" color="{theme.edge}" width="{_room(box, theme)}">{above}</td>'
    body = f'<tr>{top}{line}</tr><tr><td width="{_room(box, theme)}">{below}</td></tr>'
    return f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="2">{body}</table>>'


def _room(box: Box, theme: Theme) -> int:
    """Points for a value, the same in all pictures of a series."""
    return max(NUMBER, box.longest * (CHARACTER + theme.form.size - 11))


def _number(row: Row, theme: Theme) -> str:
    return coloured(row.text, theme.texts[row.style])


def _values(box: Box) -> list[Row]:
    return [row for row in box.rows if row.label.startswith("value")][:1]


def _grads(box: Box) -> list[Row]:
    """The one gradient a record has room for: of a leaf its ``.grad`` once it has one, before that what arrives."""
    rows = {row.label: row for row in box.rows}
    found = [rows[label] for label in (".grad", "incoming", "grad", "grad 0", "adds") if label in rows]
    known = [row for row in found if row.text not in (NO_VALUE, "None")]
    return (known or found)[:1]
