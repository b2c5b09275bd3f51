"""Whose model a module is a part of, by the call in the program: ``net(x)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import takewhile

from gviz.source.site import Frame, source_lines
from gviz.where.place import Place

TextOf = Callable[[str], str | None]
"""The text of a file, None if it is not known."""
_NUMBER = re.compile(r"_\d+$")
"""By which the second model of a class is told from the first."""


def is_of_module(place: Place, path: str, frames: Sequence[Frame], text_of: TextOf) -> bool:
    """Whether a place means the module of a path, or one around it, in which something was made below these frames."""
    if place.means_module(path):
        return True
    model = _NUMBER.sub("", path.partition(".")[0])
    return any(_calls_model(frames, held, model, text_of) for held in place.models(path))


def _calls_model(frames: Sequence[Frame], held: str, model: str, text_of: TextOf) -> bool:
    """Whether a model of a class is called, or a method of it, by what holds it in one of the frames, innermost first.

    What its own forward calls is a part of it, and a function that is called so is none.
    """
    outside = [*takewhile(lambda frame: frame.function != f"{model}.forward", reversed(frames))]
    last = held.rpartition(".")[2]
    inner = [*(frame.function.split(".")[-2:] for frame in outside[1:]), [""]]
    return any(
        (function != last and _calls(frame, held, text_of(frame.path)))
        or (owner == [model] and _calls(frame, f"{held}.{function}", text_of(frame.path)))
        for frame, (*owner, function) in zip(outside, inner, strict=False)  # without any frame there is no call
    )


def _calls(frame: Frame, held: str, text: str | None) -> bool:
    if text is None or held.rpartition(".")[2] not in text:
        return False
    row = "".join(source_lines(text)[frame.line - 1 : frame.line]).encode()[max(frame.column, 0) :]
    before = r"(?:.*?[^\w.])??" if frame.column < 0 else ""  # where the expression begins is not known
    return re.match(rf"{before}(?:[\w.]+\.)?{re.escape(held)}\s*\(", row.decode(errors="replace")) is not None
