"""Which stop comes next on the way through time, what log points say on it, and why a stop is never met.

Three things stop: a breakpoint of the user's, the place that one runs to (``until``), and what always stops: an error,
the first nan or inf, a mark (`gviz.trace.navigation.stops`). Going on looks for the earliest of them, going back for
the latest. Looking takes long in a long recording, so `searched` gives way between stretches of it; what it finds is
remembered, and `next_stop` knows it at once.

A stop may never be met. `never` gives the reason: no node has the name, or the line of the program does nothing that
is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import PurePath
from string import Formatter

import numpy as np

from gviz.errors import GvizError
from gviz.query.vocabulary import MOMENT_WORDS
from gviz.source.site import source_lines
from gviz.system.cooperative import Driven, Far
from gviz.trace import navigation
from gviz.trace.condition_environment import Situation
from gviz.trace.stops import Hits, stretches
from gviz.trace.timeline import Timeline
from gviz.tui.breakpoints import Breakpoint, Breakpoints, hits_of
from gviz.tui.stop_reason import CONTINUE, Reason, by_command
from gviz.values.plain_text import clipped, shown
from gviz.values.value_text import short
from gviz.where import stop as stops
from gviz.where.condition import NAMES
from gviz.where.place import Place
from gviz.where.stop import Stop

MOST_SAID = 1000
"""How many messages of log points are shown for one command."""

_FEARED = ("nan", "inf", "error")
"""Events that are waited for in the hope that they never come."""


def next_stop(timeline: Timeline, breakpoints: Breakpoints, n: int, *, backward: bool) -> tuple[int, Reason]:
    """Where running on from moment `n` stops, and why; the end if it stops nowhere."""
    if not backward:
        return met(timeline, breakpoints, n) or (len(timeline), CONTINUE)
    anyway, before = navigation.reverse_continue(timeline, n), breakpoints.previous(n)
    return (before.n, before.reason) if before is not None and before.n >= anyway else (anyway, CONTINUE)


def met(timeline: Timeline, breakpoints: Breakpoints, n: int, place: Hits | None = None) -> tuple[int, Reason] | None:
    """The first stop after moment `n` and why: a breakpoint, the `place` that one runs to, or what always stops."""
    one, hit = breakpoints.next(n), next(place.after(n), None) if place is not None else None
    always = next((moment for moment in navigation.stops(timeline) if moment > n), None)
    found = [(one.n, one.reason)] if one is not None else []
    found += [(hit.n, by_command("until"))] if hit is not None else []
    found += [(always, CONTINUE)] if always is not None else []
    return min(found, key=itemgetter(0), default=None)


def until(timeline: Timeline, breakpoints: Breakpoints, n: int, text: str) -> Driven[tuple[int, Reason]]:
    """Where ``until PLACE`` stops from moment `n` on, and why; the end of a recording that still grows.

    GvizError where that is nowhere, and where the place is never come to.
    """
    asked = stops.stop(text)
    hits, growing = hits_of(timeline, asked), breakpoints.growing
    yield from hits.looking()
    for stretch in stretches(timeline, n):
        yield Far("looking for it: event", stretch.start, len(timeline))
        if any(hit.n > n for hit in hits.within(stretch)):
            break
    else:
        if why := of_every_node(asked, hits, "until") or never(timeline, asked, hits, growing=growing):
            raise nothing_later(timeline, asked, text, why)
    yield from timeline.troubles.looking_for_bad()
    found = met(timeline, breakpoints, n, hits)
    if found is None and not growing:
        raise nothing_later(timeline, asked, text)
    return found or (len(timeline), by_command("until"))


def searched(timeline: Timeline, breakpoints: Breakpoints, n: int, *, backward: bool) -> Iterator[Far]:
    """Look for the next stop a stretch at a time and give how far that has come; `next_stop` then knows at once."""
    yield from timeline.troubles.looking_for_bad()
    anyway = (navigation.reverse_continue if backward else navigation.continue_)(timeline, n)
    for one in breakpoints.own:
        yield from one.hits.looking()  # again, where the recording has grown
    for event in breakpoints.searched(n, backward=backward):
        yield Far("looking for a stop: event", event, len(timeline))
        if event < anyway if backward else event > anyway:
            return


def log_lines(timeline: Timeline, breakpoints: Breakpoints, n: int, end: int) -> tuple[str, ...]:
    """What log points say after moment `n` and up to `end`."""
    said = breakpoints.said(n, end)
    lines = [f"event {at}: {_filled(timeline, at, one)}" for at, one in said[:MOST_SAID]]
    return (*lines, *([f"and {len(said) - MOST_SAID} more messages"] if len(said) > MOST_SAID else []))


def _filled(timeline: Timeline, n: int, one: Breakpoint) -> str:
    moment = Situation(timeline, n, timeline.at(n).node)
    parts = [
        text + ("" if name is None else _shown(moment, name)) for text, name, _, _ in Formatter().parse(one.message)
    ]
    return shown("".join(parts))


def _shown(moment: Situation, name: str) -> str:
    return short(moment.stored(name)) if name in ("value", "grad") else str(moment[name])


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
