"""The legend below a picture as a table: each sign as it is drawn, and its meaning next to it.

`gviz.render.legend` writes a sign as text, ``round and bold: parameter``. Here the words for a look become a swatch or
an arrow in the colours of the picture; words that are in the picture, such as ``done`` or ``+=``, stay words. The
table has as many columns as fit the width of a small picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gviz.render.graphviz.box_label import SMALL, coloured, inner
from gviz.render.legend import HEAT
from gviz.render.theme import Theme

WIDTH = 120
"""Characters of one line of the legend."""
MOST_COLUMNS = 3
LETTER = 4.5
"""Points of a character."""
SWATCH, MARGIN_BEFORE, MARGIN_AFTER = 4, 1, 3
"""Characters for a swatch, and the spaces before and after a meaning."""
GAP = MARGIN_BEFORE + MARGIN_AFTER
PADDING = 8
"""Points around the two cells of an entry."""

BOXES: Mapping[str, tuple[str, str]] = {
    "round": ("leaf", 'border="1" style="rounded"'),
    "round and bold": ("parameter", 'border="2" style="rounded"'),
    "round and grey": ("constant", 'border="1" style="rounded"'),
    "thin and round": ("chip", 'border="1" style="rounded"'),
    "square": ("op", 'border="1"'),
    "double": ("root", 'border="1"'),
    "with a tab": ("module", 'border="1"'),
    "folded corner": ("saved", 'border="1"'),
    "thick border": ("inplace", 'border="2"'),
    "amber": ("missing", 'border="1"'),
    "eight corners": ("error", 'border="2"'),
}
"""The paint and the border of the swatch for the look of a box. A cell with a dashed border crashes Graphviz."""

LINES: Mapping[str, tuple[str, str]] = {
    "dotted line": ("┄▸", ""),
    "hollow arrow": ("─▷", ""),
    "thick blue arrow": ("━▶", "grad"),
    "thickest arrow": ("━▶", "grad"),
    "line with …": ("─…▸", ""),
    "arrow with writes": ("◂─", ""),
    "circle on an arrow": ("━○▶", "grad"),
    "dashed": ("╌╌╌", ""),
    "dashed and empty": ("╌╌╌", ""),
}
"""The drawing of a line or of a border, and the style of text with its colour (empty: the colour of lines)."""

SHARED = ("amber", "dashed")
"""Looks of several states, which only the word in the box distinguishes."""

SHAPES = ("with a tab", "folded corner", "eight corners", "thin and round", "thickest arrow")
"""Looks that a swatch does not show. Their words stay, after the meaning."""


def legend_rows(signs: Sequence[str], theme: Theme, wide: float = 0.0, *, flows: bool = False) -> Iterator[str]:
    """Yield the cells of one label's row for each line of the legend, below lines of text that are `wide` points.

    A legend that `flows` has as few lines as possible: it fills each of them like text.
    """
    entries = _entries(signs, theme)
    if flows:
        yield from _flowing(entries, wide)
    elif entries:
        yield f'<td align="left">{inner(_lines(entries, wide), padding=1)}</td>'
    if HEAT in signs:
        colours = "".join(coloured("■", shade, SMALL) for shade in theme.shades)
        muted = theme.texts["muted"]
        scale = f"{coloured('- ', muted, SMALL)}{colours}{coloured(' +', muted, SMALL)}"
        yield f'<td align="left">{coloured(f"{HEAT}  ", muted, SMALL)}{scale}</td>'


Entry = tuple[str, str, int, int]
"""The markup of a sign and of its meaning, and the characters of each."""


def _entries(signs: Sequence[str], theme: Theme) -> list[Entry]:
    """Return the entries of a legend. States with equal swatches share one, with a line for each of their words."""
    entries: dict[str, Entry] = {}
    for sign in signs:
        if sign == HEAT:
            continue
        entry = drawn, meaning, width, length = _entry(sign, theme)
        key = drawn if sign.startswith(SHARED) else sign
        if key in entries:
            _, above, _, longest = entries[key]
            entry = drawn, f"{above}<br/>{'&#160;' * MARGIN_BEFORE}{meaning}", width, max(longest, length)
        entries[key] = entry
    return [*entries.values()]


def _lines(entries: Sequence[Entry], wide: float) -> Iterator[str]:
    """Yield the rows of the table. It is read down its columns.

    Graphviz stretches a table to the width of its place. An empty last column takes up most of that.
    """
    for columns in range(MOST_COLUMNS, 0, -1):
        high = -(-len(entries) // columns)
        parts = [entries[at : at + high] for at in range(0, len(entries), high)]
        signs = [max(entry[2] for entry in part) for part in parts]
        meanings = [max(entry[3] for entry in part) for part in parts]
        if columns == 1 or sum(signs) + sum(meanings) + GAP * (columns - 1) <= WIDTH:
            break
    used = (sum(signs) + sum(meanings) + GAP * columns) * LETTER
    filler = f'<td width="{wide - used:.0f}"></td>' if wide > used else ""
    for row in range(high):
        yield "".join(_cells(part[row]) for part in parts if row < len(part)) + filler * (row == 0)


def _flowing(entries: Sequence[Entry], wide: float) -> Iterator[str]:
    """Yield a table for each line, with as many entries as fit."""
    lines: list[tuple[float, list[Entry]]] = []
    for entry in entries:
        points = (entry[2] + entry[3] + GAP) * LETTER + PADDING
        if lines and lines[-1][0] + points <= wide:
            used, line = lines.pop()
            lines.append((used + points, [*line, entry]))
        else:
            lines.append((points, [entry]))
    for used, line in lines:
        filler = f'<td width="{wide - used:.0f}"></td>' if wide > used else ""
        yield f'<td align="left">{inner(["".join(map(_cells, line)) + filler], padding=1)}</td>'


def _cells(entry: Entry) -> str:
    sign, meaning, *_ = entry
    before, after = "&#160;" * MARGIN_BEFORE, "&#160;" * MARGIN_AFTER
    lines = ' balign="left"' if "<br/>" in meaning else ""
    return f'<td align="center">{sign}</td><td align="left"{lines}>{before}{meaning}{after}</td>'


def _entry(sign: str, theme: Theme) -> Entry:
    looks, _, meaning = sign.partition(": ")
    drawn, words, shapes = "", [], []
    width = 0
    for look in looks.split(", ") if meaning else []:
        mark = _drawn(look, theme)
        if mark and not drawn:
            drawn, width = mark, SWATCH
        if not mark:
            words.append(look)
        elif look in SHAPES or (mark and drawn != mark):
            shapes.append(look)
    meaning = meaning or sign
    if drawn and words:
        meaning = f"{', '.join(words)}: {meaning}"
    elif words:
        text = ", ".join(words)
        drawn, width = coloured(text, theme.texts["title"], SMALL), len(text)
    if shapes:
        meaning = f"{meaning} ({', '.join(shapes)})"
    return drawn, coloured(meaning, theme.texts["muted"], SMALL), width, len(meaning)


def _drawn(look: str, theme: Theme) -> str:
    """Return the markup for a look; empty for a word that is in the picture."""
    if look in BOXES:
        name, border = BOXES[look]
        paint = theme.paints[name]
        size = 'width="20" height="9" fixedsize="true"'
        cell = f'<td {size} {border} color="{paint.border}" bgcolor="{paint.fill}"></td>'
        if look == "double":
            frame = f'border="1" cellborder="0" cellspacing="2" cellpadding="0" color="{paint.border}"'
            cell = cell.replace(' fixedsize="true"', "")
            return f'<table fixedsize="true" width="24" height="13" {frame}><tr>{cell}</tr></table>'
        return inner([cell], padding=0)
    if look in LINES:
        text, style = LINES[look]
        line = coloured(text, theme.texts[style] if style else theme.edge, SMALL)
        return f"<b>{line}</b>" if look == "thickest arrow" else line
    return ""
