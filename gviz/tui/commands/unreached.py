"""Why a stop is never met: nothing is called so, or its line of the program does nothing that is recorded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import numpy as np

from gviz.errors import GvizError
from gviz.plain_text import clipped, shown
from gviz.query.vocabulary import MOMENT_WORDS
from gviz.site import source_lines
from gviz.trace.stops import Hits
from gviz.trace.timeline import Timeline
from gviz.tui.breakpoints import Breakpoints
from gviz.where.condition import NAMES
from gviz.where.place import Place
from gviz.where.stop import Stop

_FEARED = ("nan", "inf", "error")
"""Events that are waited for in the hope that they never come."""


def never(timeline: Timeline, stop: Stop, hits: Hits, *, growing: bool) -> str:
    """Why nothing fits a stop, in a recording that may be `growing`, in half a sentence; empty where something may."""
    if hits.can_hit():
        return ""
    why = no_code(timeline, stop)
    if why or growing:
        return why
    return _no_nodes(timeline, stop) or f"nothing is called {clipped(hits.nowhere(), 30)}"


def unmet(timeline: Timeline, breakpoints: Breakpoints) -> Iterator[str]:
    """What there is to say, when the program has ended, of each breakpoint that was never met."""
    waited = (one for one in breakpoints.own if one.enabled and not one.message)
    for one in waited:
        if next(one.hits.after(0), None) is not None:
            continue
        if one.stop.at.place is None and one.stop.condition is None and one.stop.event in _FEARED:
            yield f"no {one.stop.event} came up"
        else:
            why = never(timeline, one.stop, one.hits, growing=False)
            what = f"breakpoint {one.number} ({clipped(shown(one.stop.text), 40)})"
            yield f"{what} was never met" + f": {why}" * bool(why)


def nothing_later(timeline: Timeline, stop: Stop, text: str, why: str = "") -> GvizError:
    """That nothing later is at the `text` that a stop was read from; moments and numbers of events are for ``goto``."""
    hint = f"goto {text} is for a moment" if text in MOMENT_WORDS else why
    if stop.at.place is not None and text.isdecimal() and int(text) <= len(timeline):
        hint = f"{why}; event {text} is goto {text}".removeprefix("; ")
    return GvizError(f"nothing later is at {clipped(text, 40)}", hint=hint, exit_code=2)


def no_code(timeline: Timeline, stop: Stop) -> str:
    """Why the line that a stop names is none of the program's code, also of one that runs on; empty if it is."""
    line = _line(stop)
    texts = _texts(timeline, line) if line is not None else {}
    if line is None or not texts:
        return ""
    name = shown(line.word) or (PurePath(next(iter(texts))).name if len(texts) == 1 else "the longest file")
    if line.number > (most := max(len(rows) for rows in texts.values())):
        return f"{name} has {most} line{'s' * (most != 1)}"
    code = [rows[line.number - 1].strip() for rows in texts.values() if 0 < line.number <= len(rows)]
    return "" if any(row and not row.startswith("#") for row in code) else f"line {line.number} holds no code"


def _line(stop: Stop) -> Place | None:
    """The line that a stop names, if it names one."""
    place = stop.at.place
    return place if place is not None and place.kind == "line" else None


def _texts(timeline: Timeline, line: Place) -> dict[str, list[str]]:
    """The files that a line may be of, row by row."""
    known = ((path, text) for path, text in timeline.sources.items() if text)
    return {path: source_lines(text) for path, text in known if _may_be_in(path, line)}


def _no_nodes(timeline: Timeline, stop: Stop) -> str:
    """Of a line that does nothing that is recorded that it is so, and the next one of the same files that does."""
    line = _line(stop)
    if line is None:
        return ""
    later = [number for number in _busy(timeline, line) if number > line.number]
    return f"line {min(later)} makes nodes, line {line.number} none" if later else f"line {line.number} makes no node"


def _busy(timeline: Timeline, line: Place) -> Iterator[int]:
    """The lines in which nodes are made, of the files that a line may be of."""
    for stack in np.unique(timeline.nodes.origins.stack).tolist():
        for frame in timeline.stack(stack):
            if _may_be_in(frame.path, line):
                yield frame.line


def _may_be_in(path: str, line: Place) -> bool:
    return line.word in ("", path, PurePath(path).name)


def of_every_node(stop: Stop, hits: Hits, command: str) -> str:
    """What to say of a stop that takes a word of conditions for a tensor: ``value.max() > 3``."""
    word = hits.nowhere().partition(".")[0]
    if word not in NAMES:
        return ""
    if asked := stop.of_every_node:
        return f"{command} {asked} asks every node"
    return f"{command} if … asks {word} of every node, x.grad > 1 asks one"
