"""Recorded arrays as Python writes them, with the digits that tell each number from all others of its dtype."""

from __future__ import annotations

import textwrap

from gviz.errors import GvizError, NotStored
from gviz.trace.timeline import Timeline
from gviz.values import Array, Value

MOST_ELEMENTS = 20_000
"""So many numbers a script holds at most."""


class Literals:
    """The numbers of a recording that a script holds; `of_what` is said of those that it cannot hold."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._elements = 0

    def tensor(self, value: Value | None, of_what: str, *, requires_grad: bool = False) -> str:
        """The call that makes a tensor of a value; one without elements keeps its shape."""
        array, dtype = self._counted(value, of_what)
        more = "" if dtype in ("float32", "int64", "bool") and array.size else f", dtype=torch.{dtype}"
        more += ", requires_grad=True" if requires_grad else ""
        if not array.size:
            return f"torch.empty({array.shape}{more})"
        text = f"torch.tensor({_numbers(array)}{more})"
        return text if len(text) < 100 else "\n    ".join(textwrap.wrap(text, 110, break_long_words=False))

    def number(self, value: Value | None, of_what: str) -> str:
        """The one number of a value."""
        return _numbers(self._counted(value, of_what)[0])

    def is_one(self, value: Value | None, of_what: str) -> bool:
        """Whether a value is the number 1, which is held by not being said."""
        array, _ = self._stored(value, of_what)
        return not array.ndim and bool(array == 1)

    def _counted(self, value: Value | None, of_what: str) -> tuple[Array, str]:
        array, dtype = self._stored(value, of_what)
        self._elements += array.size
        if self._elements > MOST_ELEMENTS:
            raise GvizError(f"the script would hold more than {MOST_ELEMENTS:,} numbers", exit_code=2)
        return array, dtype

    def _stored(self, value: Value | None, of_what: str) -> tuple[Array, str]:
        """The elements of a value and its dtype, which numpy may not have."""
        array = None if value is None else self._timeline.array(value)
        if value is None or array is None:
            raise NotStored(f"the value of {of_what}")
        if array.dtype.kind == "c":
            raise GvizError(f"no script is written of complex numbers, as {of_what} holds them", exit_code=2)
        return array, value.dtype


def _numbers(array: Array) -> str:
    return f"[{', '.join(_numbers(part) for part in array)}]" if array.ndim else str(array[()])
