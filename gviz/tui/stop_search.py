"""Finds where ``continue`` and ``until`` stop, the log messages on the way, and why a stop is never reached.

Three things stop a run: a breakpoint of the user, the place of ``until``, and the permanent stops: an error, the first
nan or inf, a mark (`gviz.trace.stepping.stops`). A run forwards stops at the earliest of them, a run backwards at the
latest. In a long recording the search is slow, so `search_stops` yields between ranges of events. Its results are
cached, and `next_stop` then answers at once.

Some stops can never be reached. `why_never` gives the reason: no node has the name, or the line of the program does
nothing that is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import PurePath
from string import Formatter

import numpy as np

from gviz.errors import GvizError
from gviz.query_syntax import stop_condition
from gviz.query_syntax.condition import NAMES
from gviz.query_syntax.moment import MOMENT_WORDS
from gviz.query_syntax.place import Place
from gviz.query_syntax.stop_condition import Stop
from gviz.source.call_stack import source_lines
from gviz.system.cooperative_work import LongWork, WorkProgress
from gviz.trace import stepping
from gviz.trace.breakpoint_hits import Hits, stretches
from gviz.trace.condition_environment import ConditionEnvironment
from gviz.trace.timeline import Timeline
from gviz.tui.breakpoints import Breakpoint, Breakpoints, hits_of
from gviz.tui.stop_reason import CONTINUE, Reason, by_command
from gviz.values.plain_text import clipped, shown
from gviz.values.value_text import short

MOST_MESSAGES = 1000
"""How many messages of log points are shown for one command."""

_UNWANTED = ("nan", "inf", "error")
"""Events that users wait for in the hope that they never happen."""


def next_stop(timeline: Timeline, breakpoints: Breakpoints, n: int, *, backward: bool) -> tuple[int, Reason]:
    """Return where a run from moment `n` stops, and why; the end if nothing stops it."""
    if not backward:
        return first_stop(timeline, breakpoints, n) or (len(timeline), CONTINUE)
    anyway, before = stepping.reverse_continue(timeline, n), breakpoints.previous(n)
    return (before.n, before.reason) if before is not None and before.n >= anyway else (anyway, CONTINUE)


def first_stop(
    timeline: Timeline, breakpoints: Breakpoints, n: int, place: Hits | None = None
) -> tuple[int, Reason] | None:
    """Return the first stop after moment `n`, and why: a breakpoint, the `place` of ``until``, or a permanent stop."""
    one, hit = breakpoints.next(n), next(place.after(n), None) if place is not None else None
    always = next((moment for moment in stepping.stops(timeline) if moment > n), None)
    stops = [(one.n, one.reason)] if one is not None else []
    stops += [(hit.n, by_command("until"))] if hit is not None else []
    stops += [(always, CONTINUE)] if always is not None else []
    return min(stops, key=itemgetter(0), default=None)


def until(timeline: Timeline, breakpoints: Breakpoints, n: int, text: str) -> LongWork[tuple[int, Reason]]:
    """Return where ``until PLACE`` stops after moment `n`, and why; the end, if the recording is still growing.

    Raises GvizError if it stops nowhere, and if the place can never be reached.
    """
    target = stop_condition.stop(text)
    hits, growing = hits_of(timeline, target), breakpoints.growing
    yield from hits.preparation()
    for stretch in stretches(timeline, n):
        yield WorkProgress("looking for it: event", stretch.start, len(timeline))
        if any(hit.n > n for hit in hits.in_stretch(stretch)):
            break
    else:
        if why := every_node_hint(target, hits, "until") or why_never(timeline, target, hits, growing=growing):
            raise nothing_later(timeline, target, text, why)
    yield from timeline.error_index.looking_for_bad()
    stop = first_stop(timeline, breakpoints, n, hits)
    if stop is None and not growing:
        raise nothing_later(timeline, target, text)
    return stop or (len(timeline), by_command("until"))


def search_stops(timeline: Timeline, breakpoints: Breakpoints, n: int, *, backward: bool) -> Iterator[WorkProgress]:
    """Search for the next stop, and yield the progress between ranges of events; `next_stop` then answers at once."""
    yield from timeline.error_index.looking_for_bad()
    anyway = (stepping.reverse_continue if backward else stepping.continue_)(timeline, n)
    for one in breakpoints.own:
        yield from one.hits.preparation()  # again, because the recording may have grown
    for event in breakpoints.search(n, backward=backward):
        yield WorkProgress("looking for a stop: event", event, len(timeline))
        if event < anyway if backward else event > anyway:
            return


def log_lines(timeline: Timeline, breakpoints: Breakpoints, n: int, end: int) -> tuple[str, ...]:
    """Return the messages of log points after moment `n` and up to `end`."""
    messages = breakpoints.messages(n, end)
    lines = [f"event {at}: {_filled(timeline, at, one)}" for at, one in messages[:MOST_MESSAGES]]
    return (*lines, *([f"and {len(messages) - MOST_MESSAGES} more messages"] if len(messages) > MOST_MESSAGES else []))


def _filled(timeline: Timeline, n: int, one: Breakpoint) -> str:
    moment = ConditionEnvironment(timeline, n, timeline.at(n).node)
    parts = [
        text + ("" if name is None else _shown(moment, name)) for text, name, _, _ in Formatter().parse(one.message)
    ]
    return shown("".join(parts))


def _shown(moment: ConditionEnvironment, name: str) -> str:
    return short(moment.stored(name)) if name in ("value", "grad") else str(moment[name])


def why_never(timeline: Timeline, stop: Stop, hits: Hits, *, growing: bool) -> str:
    """Return why nothing can match a stop, as half a sentence; empty if something may.

    A recording may be `growing`: then names that are still unknown may appear.
    """
    if hits.can_hit():
        return ""
    why = no_code(timeline, stop)
    if why or growing:
        return why
    return _no_nodes(timeline, stop) or f"no node is named {clipped(hits.unmatched_name(), 30)}"


def never_reached(timeline: Timeline, breakpoints: Breakpoints) -> Iterator[str]:
    """Yield a sentence for each breakpoint that was never reached, when the program has ended."""
    waited = (one for one in breakpoints.own if one.enabled and not one.message)
    for one in waited:
        if next(one.hits.after(0), None) is not None:
            continue
        if one.stop.at.place is None and one.stop.condition is None and one.stop.event in _UNWANTED:
            yield f"no {one.stop.event} came up"
        else:
            why = why_never(timeline, one.stop, one.hits, growing=False)
            what = f"breakpoint {one.number} ({clipped(shown(one.stop.text), 40)})"
            yield f"{what} was never reached" + f": {why}" * bool(why)


def nothing_later(timeline: Timeline, stop: Stop, text: str, why: str = "") -> GvizError:
    """Return the error that nothing later matches `text`. Its hint says which texts are moments, for ``goto``."""
    hint = f"goto {text} is for a moment" if text in MOMENT_WORDS else why
    if stop.at.place is not None and text.isdecimal() and int(text) <= len(timeline):
        hint = f"{why}; event {text} is goto {text}".removeprefix("; ")
    return GvizError(f"nothing later is at {clipped(text, 40)}", hint=hint, exit_code=2)


def no_code(timeline: Timeline, stop: Stop) -> str:
    """Return why the line of a stop contains no code; empty if it contains code.

    This also holds for a running program.
    """
    line = _line(stop)
    texts = _texts(timeline, line) if line is not None else {}
    if line is None or not texts:
        return ""
    name = shown(line.word) or (PurePath(next(iter(texts))).name if len(texts) == 1 else "the longest file")
    if line.number > (most := max(len(rows) for rows in texts.values())):
        return f"{name} has {most} line{'s' * (most != 1)}"
    code = [rows[line.number - 1].strip() for rows in texts.values() if 0 < line.number <= len(rows)]
    return "" if any(row and not row.startswith("#") for row in code) else f"line {line.number} contains no code"


def _line(stop: Stop) -> Place | None:
    """Return the line of a stop; None if it has none."""
    place = stop.at.place
    return place if place is not None and place.kind == "line" else None


def _texts(timeline: Timeline, line: Place) -> dict[str, list[str]]:
    """Return the files that a line may belong to, row by row."""
    known = ((path, text) for path, text in timeline.sources.items() if text)
    return {path: source_lines(text) for path, text in known if _may_be_in(path, line)}


def _no_nodes(timeline: Timeline, stop: Stop) -> str:
    """Return that the line of a stop makes no node, and the next line of the same files that makes one."""
    line = _line(stop)
    if line is None:
        return ""
    later = [number for number in _lines_with_nodes(timeline, line) if number > line.number]
    return f"line {min(later)} makes nodes, line {line.number} none" if later else f"line {line.number} makes no node"


def _lines_with_nodes(timeline: Timeline, line: Place) -> Iterator[int]:
    """Yield the lines that make nodes, in the files that a line may belong to."""
    for stack in np.unique(timeline.nodes.origins.stack).tolist():
        for frame in timeline.stack(stack):
            if _may_be_in(frame.path, line):
                yield frame.line


def _may_be_in(path: str, line: Place) -> bool:
    return line.word in ("", path, PurePath(path).name)


def every_node_hint(stop: Stop, hits: Hits, command: str) -> str:
    """Return a hint for a stop that uses a word of conditions as if it were a tensor: ``value.max() > 3``."""
    word = hits.unmatched_name().partition(".")[0]
    if word not in NAMES:
        return ""
    if condition := stop.of_every_node:
        return f"{command} {condition} asks every node"
    return f"{command} if … asks {word} of every node, x.grad > 1 asks one"
