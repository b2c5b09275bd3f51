"""Which model a module belongs to, determined from the call in the program: ``net(x)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from gviz.query_syntax.place import Place
from gviz.source.call_stack import Frame, source_lines

TextOf = Callable[[str], str | None]
"""Returns the text of a file, None if unknown."""
_NUMBER = re.compile(r"_\d+$")
"""The suffix that distinguishes the second model of a class from the first."""


def is_of_module(place: Place, path: str, frames: Sequence[Frame], text_of: TextOf) -> bool:
    """Return whether a place refers to the module with this path, or an outer one, for something created below these
    frames.
    """
    if place.means_module(path):
        return True
    model = _NUMBER.sub("", path.partition(".")[0])
    return any(_calls_model(frames, variable, model, text_of) for variable in place.models(path))


def _calls_model(frames: Sequence[Frame], variable: str, model: str, text_of: TextOf) -> bool:
    """Return whether one of the frames (innermost first) calls a model of this class, or a method of it, through
    `variable`.

    Calls inside the model's own forward are part of it. A function that merely has the same name does not count.
    """
    outside = [*takewhile(lambda frame: frame.function != f"{model}.forward", reversed(frames))]
    last = variable.rpartition(".")[2]
    inner = [*(frame.function.split(".")[-2:] for frame in outside[1:]), [""]]
    return any(
        (function != last and _calls(frame, variable, text_of(frame.path)))
        or (owner == [model] and _calls(frame, f"{variable}.{function}", text_of(frame.path)))
        for frame, (*owner, function) in zip(outside, inner, strict=False)  # without any frame there is no call
    )


def _calls(frame: Frame, variable: str, text: str | None) -> bool:
    if text is None or variable.rpartition(".")[2] not in text:
        return False
    row = "".join(source_lines(text)[frame.line - 1 : frame.line]).encode()[max(frame.column, 0) :]
    before = r"(?:.*?[^\w.])??" if frame.column < 0 else ""  # the start of the expression is unknown
    return re.match(rf"{before}(?:[\w.]+\.)?{re.escape(variable)}\s*\(", row.decode(errors="replace")) is not None
