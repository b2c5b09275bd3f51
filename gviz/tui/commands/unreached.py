"""Why a stop is never met: nothing is called so, or its line of the program does nothing that is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import numpy as np

from gviz.errors import GvizError
from gviz.plain_text import clipped, shown
from gviz.site import source_lines
from gviz.trace.stops import Hits
from gviz.trace.timeline import Timeline
from gviz.where.condition import NAMES
from gviz.where.place import Place
from gviz.where.stop import Stop
from gviz.words.vocabulary import MOMENT_WORDS


def never(timeline: Timeline, stop: Stop, hits: Hits, *, growing: bool) -> str:
    """Why nothing fits a stop, in a recording that may be `growing`, in half a sentence; empty where something may."""
    if hits.can_hit():
        return ""
    why = of_line(timeline, stop)
    if not why and not growing:
        why = _beside(timeline, stop) or f"nothing is called {clipped(hits.nowhere(), 30)}"
    return why


def nothing_later(timeline: Timeline, stop: Stop, text: str, why: str = "") -> GvizError:
    """That nothing later is at the `text` that a stop was read from; moments and numbers of events are for ``goto``."""
    hint = f"goto {text} is for a moment" if text in MOMENT_WORDS else why
    if stop.at.place is not None and text.isdecimal() and int(text) <= len(timeline):
        hint = f"{why}; event {text} is goto {text}".removeprefix("; ")
    return GvizError(f"nothing later is at {clipped(text, 40)}", hint=hint, exit_code=2)


def of_line(timeline: Timeline, stop: Stop) -> str:
    """Why the line that a stop names is none of the program's code, also of one that runs on; empty if it is."""
    place = stop.at.place
    texts = _texts(timeline, place) if place is not None else {}
    if place is None or not texts:
        return ""
    name = shown(place.word) or (PurePath(next(iter(texts))).name if len(texts) == 1 else "the longest file")
    if place.number > (most := max(len(rows) for rows in texts.values())):
        return f"{name} has {most} line{'s' * (most != 1)}"
    code = [rows[place.number - 1].strip() for rows in texts.values() if 0 < place.number <= len(rows)]
    return "" if any(row and not row.startswith("#") for row in code) else f"line {place.number} holds no code"


def _texts(timeline: Timeline, place: Place) -> dict[str, list[str]]:
    """The lines of the files that a line may be of."""
    if place.kind != "line":
        return {}
    known = ((path, text) for path, text in timeline.sources.items() if text)
    return {path: source_lines(text) for path, text in known if place.word in ("", path, PurePath(path).name)}


def _beside(timeline: Timeline, stop: Stop) -> str:
    """Of a line that does nothing that is recorded that it is so, and the next one of the same files that does."""
    place = stop.at.place
    if place is None or place.kind != "line":
        return ""
    busy = [line for line in _busy(timeline, place) if line > place.number]
    return f"line {min(busy)} makes nodes, line {place.number} none" if busy else f"line {place.number} makes no node"


def _busy(timeline: Timeline, place: Place) -> Iterator[int]:
    """The lines in which nodes are made, of the files that a line may be of."""
    for stack in np.unique(timeline.nodes.origins.stack).tolist():
        for frame in timeline.stack(stack):
            if place.word in ("", frame.path, PurePath(frame.path).name):
                yield frame.line


def of_every_node(stop: Stop, hits: Hits, command: str) -> str:
    """What to say of a stop that takes a word of conditions for a tensor: ``value.max() > 3``."""
    word = hits.nowhere().partition(".")[0]
    if word not in NAMES:
        return ""
    if asked := stop.of_every_node:
        return f"{command} {asked} asks every node"
    return f"{command} if … asks {word} of every node, x.grad > 1 asks one"
