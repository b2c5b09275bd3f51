"""How wide a box is whose value and gradient stand in one line, the same at any moment."""

from __future__ import annotations

from rich.cells import cell_len

from gviz.render.boxes.tensors import DIGITS
from gviz.trace.state import NodeInfo
from gviz.value_text import short
from gviz.values import Value

NUMBER, TENSOR = 7, 12
"""Characters of a value, at most: one number, or the elements or shape of a tensor."""
LENGTH, LEAF_NUMBER, OP_NUMBER, UNKNOWN = 8, 7, 6, len("not stored")
"""Characters of a gradient, at least: the length ``|g| 0.52`` of a tensor, a leaf's number, that of an operation, and
what is said where there are no numbers."""
GAP = 1
"""Blanks between them, at least."""
NOTE = 10
"""Characters beside the title, for the longest word of a state and what sets it off."""


def value_room(value: Value | None) -> int:
    """The most characters of a value in a brief box."""
    return NUMBER if value is None or value.size == 1 else TENSOR


def brief_width(info: NodeInfo, title: str, role: str) -> int:
    """The characters of the title with a word beside it, and of the widest value beside a gradient."""
    value = info.created.first_value
    known = len(short(value, value_room(value), DIGITS)) if value is not None else 1
    if role == "constant":
        return max(cell_len(title), known)
    label, one = (".grad ", LEAF_NUMBER) if role in ("leaf", "parameter") else ("grad ", OP_NUMBER)
    number = UNKNOWN if value is None else one if value.size == 1 else LENGTH
    return max(cell_len(title) + NOTE, known + GAP + len(label) + number)


def brief_module_width(title: str, *, makes: bool) -> int:
    """The same of a closed module, which makes something or, as an optimizer, nothing."""
    return max(cell_len(title) + NOTE, len("gives ") + TENSOR + GAP + len(".grad ") + LENGTH if makes else 0)
