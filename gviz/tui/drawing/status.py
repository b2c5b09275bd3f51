"""The status row: program, phase, event, node, and why time stands still."""

from __future__ import annotations

from gviz.events import Failed
from gviz.explain.names import label, phase_words
from gviz.plain_text import clipped
from gviz.trace.moment import Moment
from gviz.trace.timeline import Timeline
from gviz.tui.commands.table import BY_NAME
from gviz.tui.cursor import Arrival
from gviz.tui.glyphs import Glyphs
from gviz.tui.lines import Line, cells, columns, line
from gviz.tui.session import program_name


def status(
    timeline: Timeline,
    moment: Moment,
    title: str,
    stop: Arrival,
    width: int,
    glyphs: Glyphs,
    time: str = "REPLAY",
    changed: str = "",
) -> Line:
    """One row of `width` cells; where room is short the word REPLAY, title and node give way, in this order.

    `time` is whose it is: REPLAY, or of a program that can go on LIVE or RUNNING, which always stay. `changed` says
    which numbers are others beside it.
    """
    right = line(f"{_reason(stop, glyphs)} ")
    parts = _parts(timeline, moment, title, time)
    if changed:
        parts.append(("changed", line("  ", (clipped(changed, 40), "now"))))
    room = width - cells(right) - 1
    for dropped in ("replay", "title", "node", "iteration"):
        if sum(cells(spans) for _, spans in parts) <= room:
            break
        parts = [part for part in parts if part[0] != dropped]
    return columns(tuple(span for _, spans in parts for span in spans), right, width, glyphs.cut)


def phase_name(timeline: Timeline, moment: Moment, *, at_end: bool = False) -> str:
    """The phase as the status row spells it."""
    if isinstance(moment.event, Failed):
        return "ERROR"
    if moment.phase is None:
        return "START" if moment.n == 0 else "END" if at_end else "PROGRAM"
    return phase_words(timeline, moment).replace(" pass", "").upper()


def _parts(timeline: Timeline, moment: Moment, title: str, time: str) -> list[tuple[str, Line]]:
    style = "error" if isinstance(moment.event, Failed) else "phase"
    at_end = time == "REPLAY" and moment.n == len(timeline)
    parts: list[tuple[str, Line]] = [
        ("brand", line((" gviz ", "brand"))),
        ("title", line(f" {clipped(program_name(title), 24)} ")),
        ("replay", line((" REPLAY", "muted"))) if time == "REPLAY" else ("live", line((f" {time}", "now"))),
        (
            "phase",
            line(" ", (phase_name(timeline, moment, at_end=at_end), style)),
        ),
        ("event", line(f"  event {moment.n}")),
    ]
    iterations = timeline.iterations
    if len(iterations) > 1:
        current = timeline.iteration_at(moment.n).index
        first = iterations[0].index
        parts.append(("iteration", line(f"  iteration {current - first + 1}/{len(iterations)}")))
    if moment.actor:
        parts.append(("node", line("  ", (clipped(label(timeline, moment.actor), 32), "title"))))
    return parts


def _reason(stop: Arrival, glyphs: Glyphs) -> str:
    if stop.backward and stop.reason not in ("start of recording", "error"):
        return f"{glyphs.back} back to {stop.position}"
    if stop.reason in ("error", "first nan or inf"):
        return f"stopped: {stop.reason}"
    if stop.position > stop.start:
        return f"{stop.reason} {glyphs.now}" if stop.reason in BY_NAME else stop.reason
    return stop.reason
