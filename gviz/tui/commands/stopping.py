"""The commands about breakpoints, and where running on stops: the same on the screen and line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from string import Formatter

from gviz.driven import Driven, Far
from gviz.errors import KEEP_ALL, GvizError
from gviz.plain_text import clipped, shown
from gviz.trace import navigation
from gviz.trace.condition import Situation
from gviz.trace.stops import Hits, stretches
from gviz.trace.timeline import Timeline
from gviz.tui.arrival import CONTINUE, Reason, by_command
from gviz.tui.breakpoint import Breakpoint, Listed, hits_of
from gviz.tui.breakpoints import Breakpoints
from gviz.tui.commands.unreached import never, nothing_later, of_every_node
from gviz.value_text import short
from gviz.where.condition import NAMES
from gviz.where.stop import EVENTS, AtFinding, stop

MOST_COUNTED = 1000
MOST_SAID = 1000
"""Messages of log points said on one way through time."""

_LOG = re.compile(r"""(.*?)\s*(["'])(.*)\2\s*(if\s.*)?$""", re.DOTALL)


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
    """Where ``until PLACE`` stops from moment `n` on, and why; the end of a recording that goes on.

    GvizError where that is nowhere, and where the place is never come to.
    """
    asked = stop(text)
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


def described(one: Listed) -> str:
    """A breakpoint as ``info break`` shows it."""
    return f"{one.number}  {shown(one.words)}" + " (off)" * (not one.enabled)


def add(breakpoints: Breakpoints, text: str, selected: int, *, once: bool = False) -> Iterator[str | Far]:
    """``break``: without a place at the selected node."""
    text = text or (f"#{selected}" if selected else "")
    hits = hits_of(breakpoints.timeline, where := stop(text))
    yield from hits.looking()
    same = next((one.number for one in breakpoints.own if one.stop.text == where.text and not one.message), 0)
    made = breakpoints.add(where, hits, once=once)
    also = f" (breakpoint {same} is there, too)" if same else ""
    yield f"breakpoint {made.number}: {shown(made.stop.text)}{_never(breakpoints, made) or also}"
    if missing := made.hits.missing():
        yield f"it does not stop where {missing}"
    if made.stop.head in EVENTS:
        yield f"that is what is called {made.stop.head}; break on {made.stop.head} stops at the event"
    if isinstance(made.stop.at, AtFinding) and breakpoints.growing:
        yield "a finding is known only of what is recorded: the running program does not stop at it by itself"


def add_once(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str | Far]:
    """``tbreak``."""
    return add(breakpoints, text, selected, once=True)


def log(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """``log PLACE "TEXT"``."""
    found = _LOG.match(text)
    if found is None:
        raise GvizError("log needs a place and a text", hint='log x "x is {value}"', exit_code=2)
    place, _, message, test = found.groups()
    _check_message(message)
    where = stop(" ".join(filter(None, (place or f"#{selected}", test))))
    made = breakpoints.add(where, message=message)
    yield f"log point {made.number}: {shown(made.stop.text)}{_never(breakpoints, made)}"


def _never(breakpoints: Breakpoints, made: Breakpoint) -> str:
    growing = breakpoints.growing
    if made.hits.can_hit():
        return ""
    if isinstance(made.stop.at, AtFinding):
        return " (nothing of that kind is found yet)" if growing else " (nothing of that kind is found)"
    if asks := of_every_node(made.stop, made.hits, "break"):
        return f" (nothing is called {made.hits.nowhere()}{' yet' * growing}; {asks})"
    why = never(breakpoints.timeline, made.stop, made.hits, growing=growing)
    return f" ({why}, so it never stops)" if why else " (no such node yet: it stops when one is made)"


def condition(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """``condition N [COND]``."""
    breakpoints.require(text)
    yield from listed(breakpoints, text.split()[0], selected)


def ignore(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """``ignore N COUNT``."""
    yield described(breakpoints.ignore(text))


def enable(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """``enable [N ...]``."""
    return _switch(breakpoints, text, on=True)


def disable(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """``disable [N ...]``."""
    return _switch(breakpoints, text, on=False)


def _switch(breakpoints: Breakpoints, text: str, *, on: bool) -> Iterator[str]:
    if not breakpoints.listed:
        yield "there are no breakpoints"
    for one in breakpoints.numbered(text):
        one.enabled = on
        yield described(one)


def delete(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """``delete [N ...]``."""
    chosen = breakpoints.numbered(text)
    switched_off = breakpoints.delete(chosen)
    gone = [str(one.number) for one in chosen if one not in switched_off]
    if gone or not chosen:
        yield f"deleted: {', '.join(gone)}" if gone else "there are no breakpoints"
    for call in switched_off:
        yield f"{described(call)}: it stands in the program, enable {call.number} lets it stop again"


def listed(breakpoints: Breakpoints, text: str, selected: int, here: int = 0) -> Iterator[str]:
    """``info break``, and which of them fit the moment `here` (0: it is not asked)."""
    if not breakpoints.listed:
        yield "there are no breakpoints; break sets one"
    for one in breakpoints.numbered(text.removeprefix("break")):
        yield f"{described(one)}  {_times(one, here)}"


def _times(one: Listed, here: int) -> str:
    times = sum(1 for _ in islice(one.after(0), MOST_COUNTED + 1))
    many = f"more than {MOST_COUNTED} times" if times > MOST_COUNTED else f"{times} time{'' if times == 1 else 's'}"
    now = ", and here" if here and one.stops_at(here) else ""
    return f"[{many} in this recording{now}{_untold(one)}]"


def _untold(one: Listed) -> str:
    """At how many of the moments that were counted nobody knows, and what helps."""
    moments = one.untold()
    return f"; not known at {moments} moment{'s' * (moments != 1)}: {KEEP_ALL}" if moments else ""


def _check_message(message: str) -> None:
    try:
        fields = [name for _, name, _, _ in Formatter().parse(message) if name is not None]
    except ValueError as error:
        raise GvizError(f"the text cannot be read: {error}", hint="{{ stands for a brace", exit_code=2) from None
    unknown = [name for name in fields if name not in NAMES]
    if unknown:
        hint = "it knows " + ", ".join(NAMES)
        raise GvizError(f"a log point knows no {clipped(unknown[0], 30) or 'empty name'}", hint=hint, exit_code=2)


def _filled(timeline: Timeline, n: int, one: Breakpoint) -> str:
    moment = Situation(timeline, n, timeline.at(n).node)
    parts = [
        text + ("" if name is None else _shown(moment, name)) for text, name, _, _ in Formatter().parse(one.message)
    ]
    return shown("".join(parts))


def _shown(moment: Situation, name: str) -> str:
    return short(moment.stored(name)) if name in ("value", "grad") else str(moment[name])
