"""The lines between boxes as a raster of characters and styles, one band of rows at a time.

Where lines of two nets cross, the vertical line is always drawn over the horizontal one: a bridge, never a junction.
Lines of one net are joined.

The arms of a cell are a byte, two bits for each direction: 0 is no line, 1 a light line, 2 or more a heavy one. So
lines of one net that meet in a cell are joined by ``|``: ``UP | RIGHT`` is ``╰``, and with ``DOWN`` from another line
``├``. A table of 256 entries has the character of each byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from gviz.render.cells.box import EDGE_STATES
from gviz.render.layout import Wire
from gviz.values.value import Array

UP, RIGHT, DOWN, LEFT = 1, 4, 16, 64
HEAVY = 2

# Indexed by the weights 0, 1, 2 of the arms up, right, down, left. Corners of light lines are round.
_UNICODE = " ╴╸╷╮┑╻┒┓╶─╾╭┬┭┎┰┱╺╼━┍┮┯┏┲┳╵╯┙│┤┥╽┧┪╰┴┵├┼┽┟╁╅┕┶┷┝┾┿┢╆╈╹┚┛╿┦┩┃┨┫┖┸┹┞╀╃┠╂╉┗┺┻┡╄╇┣╊╋"


def _ascii(up: int, right: int, down: int, left: int) -> str:
    """Return the character of some arms: ``,`` and ``.`` turn down, `````` ` `````` and ``'`` up, ``+`` both."""
    heavy = 2 in (up, right, down, left)
    if up and down:
        return "+" if right or left else "#" if heavy else "|"
    if not up and not down:
        return "=" if heavy else "-"
    if left:
        return "'" if up else "."
    return "`" if up else ","


def _table(characters: list[str]) -> Array:
    """Return the character of every byte of arms."""
    codes = np.zeros(256, np.uint32)
    for arms in range(256):
        weights = [min((arms >> shift) & 3, 2) for shift in (0, 2, 4, 6)]
        codes[arms] = ord(characters[weights[0] * 27 + weights[1] * 9 + weights[2] * 3 + weights[3]])
    codes[0] = ord(" ")
    return codes


UNICODE = _table(list(_UNICODE))
ASCII = _table([_ascii(*weights) for weights in product(range(3), repeat=4)])
DASHED = {"│": "╎", "─": "╌"}
DASHED_ASCII = {"|": ":", "-": "~"}


ACTIVE, GRADIENT, FLOWING = (EDGE_STATES.index(state) for state in ("active", "gradient", "flowing"))
DASHED_STATES = (EDGE_STATES.index("freed"), EDGE_STATES.index("pending"))


@dataclass(frozen=True, slots=True)
class Band:
    """Some rows of the canvas: a character and a line state (an index of `EDGE_STATES`) per cell."""

    characters: Array
    states: Array


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A band while it is painted: arms, net (-1: none yet) and state per cell; `top` is its first row on the canvas."""

    top: int
    arms: Array
    nets: Array
    states: Array


def paint(
    wires: Sequence[Wire], states: Sequence[int], rows: range, width: int, *, rightward: bool, ascii: bool
) -> Band:
    """Paint the part of the wires that lies in `rows`; `states` has the state of each wire."""
    shape = (len(rows), width)
    sheet = _Sheet(rows.start, np.zeros(shape, np.uint8), np.full(shape, -1, np.int32), np.zeros(shape, np.uint8))
    across, down = (0, 1) if rightward else (1, 0)  # segments alternate between along and across the layers
    for wire, state in zip(wires, states, strict=True):
        for index in range(across, len(wire.points) - 1, 2):
            _draw_across(sheet, wire, index, state)
    for wire, state in zip(wires, states, strict=True):
        for index in range(down, len(wire.points) - 1, 2):
            _draw_down(sheet, wire, index, state)
    characters = (ASCII if ascii else UNICODE)[sheet.arms]
    _dash(sheet, characters, DASHED_ASCII if ascii else DASHED)
    head = (">" if ascii else "►") if rightward else "v" if ascii else "▼"
    _put_heads(sheet, characters, [w for w, s in zip(wires, states, strict=True) if w.enters and s < GRADIENT], head)
    return Band(characters, sheet.states)


def _arms(wire: Wire, index: int, length: int, state: int, back: int, forth: int) -> Array:
    """Return the arms along a segment.

    A corner has only the arm into this segment. At an end of the wire the line continues.
    """
    weight = HEAVY if state in (ACTIVE, FLOWING) else 1
    arms = np.full(length, weight * (back | forth), np.uint8)
    if index > 0:
        arms[0] &= ~(3 * back) & 255
    if index < len(wire.points) - 2:
        arms[-1] &= ~(3 * forth) & 255
    return arms


def _draw_across(sheet: _Sheet, wire: Wire, index: int, state: int) -> None:
    (x, y), (end, _) = wire.points[index], wire.points[index + 1]
    row = y - sheet.top
    if 0 <= row < len(sheet.arms):
        left, right = min(x, end), max(x, end)
        cells = slice(left, right + 1)
        sheet.arms[row, cells] |= _arms(wire, index, right + 1 - left, state, LEFT, RIGHT)
        sheet.nets[row, cells] = wire.net
        np.maximum(sheet.states[row, cells], state, out=sheet.states[row, cells])


def _draw_down(sheet: _Sheet, wire: Wire, index: int, state: int) -> None:
    (x, y), (_, end) = wire.points[index], wire.points[index + 1]
    top, bottom = min(y, end), max(y, end)
    first, last = max(top, sheet.top), min(bottom, sheet.top + len(sheet.arms) - 1)
    if first > last:
        return
    rows = slice(first - sheet.top, last + 1 - sheet.top)
    arms = _arms(wire, index, bottom + 1 - top, state, UP, DOWN)[first - top : last + 1 - top]
    own = sheet.nets[rows, x] == wire.net
    sheet.arms[rows, x] = np.where(own, sheet.arms[rows, x], 0) | arms
    sheet.states[rows, x] = np.where(own, np.maximum(sheet.states[rows, x], state), state)
    sheet.nets[rows, x] = wire.net


def _dash(sheet: _Sheet, characters: Array, dashes: Mapping[str, str]) -> None:
    dashed = np.isin(sheet.states, DASHED_STATES)
    if dashed.any():
        for whole, broken in dashes.items():
            characters[dashed & (characters == ord(whole))] = ord(broken)


def _put_heads(sheet: _Sheet, characters: Array, wires: Sequence[Wire], head: str) -> None:
    for wire in wires:
        x, y = wire.points[-1]
        if 0 <= y - sheet.top < len(characters):
            characters[y - sheet.top, x] = ord(head)
