"""How long the texts may be that many events share: a stranger's may be of any length, and every event shows them."""

from __future__ import annotations

import msgspec

from gviz.events import OpSeen, Reading, SourceSeen, StackSeen
from gviz.site import DEEPEST, Frame
from gviz.trace.log import E
from gviz.trace.naming.bindings import LARGEST_SOURCE

LONGEST_NAME = 1000
LONGEST_RULE = 10_000
LONGEST_WORD = 100
"""Characters of what a name in a rule stands for, which may be there many times."""
LONGEST_PATH = 4096


def within_bounds(event: E) -> E:
    """The same definition with longer names cut, and without longer texts: nobody has recorded such a one."""
    match event:
        case OpSeen():
            return msgspec.structs.replace(
                event, name=_cut(event.name), grad_fn=_cut(event.grad_fn), slots=_all_cut(event.slots),
                rules=tuple(map(_rule, event.rules)), saved=_all_cut(event.saved), formula=_rule(event.formula),
                readings=tuple(filter(_is_readable, event.readings)),
            )  # fmt: skip
        case StackSeen():
            whole = event.frames if event.shared else event.frames[:DEEPEST]  # as older recordings have them
            return msgspec.structs.replace(event, frames=tuple(map(_frame, whole)))
        case SourceSeen(text=str(text)) if len(text) > LARGEST_SOURCE:
            return msgspec.structs.replace(event, text=None)
    return event


def _is_readable(reading: Reading) -> bool:
    words = [part for pair in (*reading.given, *reading.words) for part in pair]
    within = all(len(word) <= LONGEST_WORD for word in (*words, *reading.beside))
    return within and len(reading.formula) <= LONGEST_RULE


def _frame(frame: Frame) -> Frame:
    if len(frame.path) <= LONGEST_PATH and len(frame.function) <= LONGEST_NAME:
        return frame
    return msgspec.structs.replace(frame, path=_cut(frame.path, LONGEST_PATH), function=_cut(frame.function))


def _cut(text: str, longest: int = LONGEST_NAME) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _all_cut(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_cut, texts))


def _rule(text: str) -> str:
    return text if len(text) <= LONGEST_RULE else ""
