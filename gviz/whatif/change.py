"""What is changed: ``x = 5``, ``w[0, 1] = 0``, ``grad z = 2``."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gviz.errors import GvizError
from gviz.plain_text import clipped
from gviz.values import Array

_FORM = re.compile(r"\s*(?P<grad>grad\s+)?(?P<place>[^=\[\]]+?)\s*(?P<index>\[[^\]]*\])?\s*=\s*(?P<value>[^=].*)")
_HINT = 'write "x = 5", "w[0, 1] = 0" or "grad z = 2"'

Index = tuple[int, ...]
Number = bool | int | float
Numbers = Number | list["Numbers"]


@dataclass(frozen=True, slots=True)
class Change:
    """A node's value, or the gradient that arrives at it, is to be `numbers`, at `index` only if there is one."""

    node: int
    numbers: Numbers
    index: Index = ()
    of_gradient: bool = False

    def applied(self, array: Array) -> Array:
        """`array` with the change in it, in a copy. GvizError if it does not fit."""
        changed = np.array(array)
        try:
            changed[self.index or ...] = self.numbers
        except (ValueError, IndexError) as error:
            why = f"the tensor has shape {array.shape}: {error}"
            raise GvizError("this value does not fit", why=why, exit_code=2) from None
        return changed


def parsed(text: str, node_of: Callable[[str], int]) -> Change:
    """A change as a person writes it; `node_of` finds the node that a place means. GvizError if it says nothing."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise GvizError(f"{clipped(text, 40)} changes nothing", hint=_HINT, exit_code=2)
    place = match["place"].strip()
    of_gradient = bool(match["grad"]) or place.endswith(".grad")
    numbers = _literal(match["value"], _is_numbers, "a number or a list of numbers")
    index = _literal(f"({match['index'][1:-1]},)", _is_index, "an index") if match["index"] else ()
    return Change(node_of(place.removesuffix(".grad")), numbers, index, of_gradient)


def _literal(text: str, fits: Callable[[object], bool], what: str) -> Any:
    """A Python literal; never evaluated."""
    try:
        value = literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = None
    if not fits(value):
        raise GvizError(f"{clipped(text.strip(), 40)} is not {what}", hint=_HINT, exit_code=2)
    return value


def _is_numbers(value: object) -> bool:
    return isinstance(value, (bool, int, float)) or (isinstance(value, list) and all(map(_is_numbers, value)))


def _is_index(value: object) -> bool:
    return isinstance(value, tuple) and all(type(part) is int for part in value)
