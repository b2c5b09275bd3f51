"""The status row: program, phase, event, node, and why time stands still."""

from __future__ import annotations

from typing import NamedTuple

from gviz.events import Failed
from gviz.explain.names import iteration_called, label, phase_words
from gviz.plain_text import clipped
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.arrival import Arrival, Kind
from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import Line, cells, columns, line

ROOMY = 100
"""Rows of so many cells need not be brief."""

_BRIEF: dict[Kind, str] = {"end": "the end", "start": "the start"}


class Standing(NamedTuple):
    """What a status row says of the program, and of why time stands still.

    `time` is whose it is: REPLAY, or of a program that can go on LIVE or RUNNING. `changed` says which numbers are
    others beside the recorded ones.
    """

    title: str
    stop: Arrival
    time: str = "REPLAY"
    changed: str = ""


def status(timeline: Timeline, moment: Moment, standing: Standing, width: int, glyphs: Glyphs) -> Line:
    """One row of `width` cells; where room is short the node gives way, then iteration and title, then a long reason.

    What else stays does not depend on the node's name, so that a step does not let words come and go: of a narrow row
    the brand is no part where iterations are counted, and its ends are called briefly.
    """
    parts = _parts(timeline, moment, clipped(standing.title, 40 if width > ROOMY else 24), standing.time)
    reason = _reason(standing.stop, glyphs, brief=width < ROOMY)
    if width < ROOMY and "iteration" in parts:
        del parts["brand"]
    stays = sum(cells(part) for name, part in parts.items() if name not in ("iteration", "title"))
    right = line(f"{glyphs.clipped(reason, max(width - stays - 2, width // 3))} ")
    if standing.changed:
        parts["changed"] = line("  ", (clipped(standing.changed, 40), "now"))
    room = width - cells(right) - 1
    for dropped in ("iteration", "title"):
        if sum(map(cells, parts.values())) <= room:
            break
        parts.pop(dropped, None)
    node = _node(timeline, moment, room - sum(map(cells, parts.values())))
    return columns(tuple(span for spans in (*parts.values(), node) for span in spans), right, width, glyphs.cut)


def phase_name(timeline: Timeline, moment: Moment, *, at_end: bool = False) -> str:
    """The phase as the status row spells it."""
    if isinstance(moment.event, Failed):
        return "ERROR"
    if moment.phase is None:
        return "START" if moment.n == 0 else "END" if at_end else "PROGRAM"
    return phase_words(timeline, moment).replace(" pass", "").upper()


def _parts(timeline: Timeline, moment: Moment, title: str, time: str) -> dict[str, Line]:
    style = "error" if isinstance(moment.event, Failed) else "phase"
    at_end = time == "REPLAY" and moment.n == len(timeline)
    parts: dict[str, Line] = {
        "brand": line((" gviz ", "brand")),
        "title": line(f" {title} "),
        "time": line((f" {time}", "muted" if time == "REPLAY" else "now")),
        "phase": line(" ", (phase_name(timeline, moment, at_end=at_end), style)),
        "event": line(f"  event {moment.n}"),
    }
    iterations = timeline.iterations
    if len(iterations) > 1:
        current = timeline.iteration_at(moment.n).index
        first = iterations[0].index
        parts["iteration"] = line(f"  {iteration_called(timeline)} {current - first + 1}/{len(iterations)}")
    return parts


def _node(timeline: Timeline, moment: Moment, room: int) -> Line:
    """The node that the event concerns, if what is left of the row holds it."""
    named = line("  ", (clipped(label(timeline, moment.actor), 32), "title")) if moment.actor else ()
    return named if cells(named) <= room else ()


def _reason(stop: Arrival, glyphs: Glyphs, *, brief: bool) -> str:
    why = stop.reason
    if stop.backward and why.kind not in ("start", "error"):
        return f"{glyphs.back} back to {stop.position}"
    if why.kind in ("error", "nonfinite"):
        return f"stopped: {why.words}"
    if why.kind == "command" and stop.position > stop.start:
        return f"{why.words} {glyphs.now}"
    return _BRIEF.get(why.kind, why.words) if brief else why.words
