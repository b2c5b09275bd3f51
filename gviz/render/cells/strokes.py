"""Line-drawing characters by their arms.

The arms of a cell are a byte, two bits for each direction: 0 no line, 1 a light line, 2 or more a heavy one. So lines
of one net that meet in a cell are joined by ``|``.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from gviz.values import Array

UP, RIGHT, DOWN, LEFT = 1, 4, 16, 64
HEAVY = 2

# By the weights 0, 1, 2 of the arms up, right, down, left; corners of light lines are round.
_UNICODE = " ╴╸╷╮┑╻┒┓╶─╾╭┬┭┎┰┱╺╼━┍┮┯┏┲┳╵╯┙│┤┥╽┧┪╰┴┵├┼┽┟╁╅┕┶┷┝┾┿┢╆╈╹┚┛╿┦┩┃┨┫┖┸┹┞╀╃┠╂╉┗┺┻┡╄╇┣╊╋"


def _ascii(up: int, right: int, down: int, left: int) -> str:
    """A corner or a branch shows which way it goes: ``,`` and ``.`` down, `````` ` `````` and ``'`` up, ``+`` both."""
    heavy = 2 in (up, right, down, left)
    if up and down:
        return "+" if right or left else "#" if heavy else "|"
    if not up and not down:
        return "=" if heavy else "-"
    if left:
        return "'" if up else "."
    return "`" if up else ","


def _table(characters: list[str]) -> Array:
    """The character of every byte of arms."""
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
