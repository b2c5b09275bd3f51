"""Commands for breakpoints: set, log, condition, switch, delete, list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from string import Formatter

from gviz.errors import KEEP_ALL, GvizError
from gviz.query_syntax.condition import NAMES
from gviz.query_syntax.stop_condition import EVENTS, AtFinding, stop
from gviz.system.cooperative_work import WorkProgress
from gviz.tui.breakpoints import Breakpoint, BreakpointEntry, Breakpoints, entry_text, hits_of
from gviz.tui.stop_search import every_node_hint, why_never
from gviz.values.plain_text import clipped, shown

MOST_COUNTED = 1000

_LOG = re.compile(r"""(.*?)\s*(["'])(.*)\2\s*(if\s.*)?$""", re.DOTALL)


def add(breakpoints: Breakpoints, text: str, selected: int, *, once: bool = False) -> Iterator[str | WorkProgress]:
    """Run ``break``; without a place, at the selected node."""
    text = text or (f"#{selected}" if selected else "")
    hits = hits_of(breakpoints.timeline, where := stop(text))
    yield from hits.preparation()
    same = next((one.number for one in breakpoints.own if one.stop.text == where.text and not one.message), 0)
    new = breakpoints.add(where, hits, once=once)
    also = f" (breakpoint {same} stops there, too)" if same else ""
    yield f"breakpoint {new.number}: {shown(new.stop.text)}{_never_text(breakpoints, new) or also}"
    if missing := new.hits.missing():
        yield f"it does not stop where {missing}"
    if new.stop.head in EVENTS:
        yield f"{new.stop.head} is taken as a name; break on {new.stop.head} stops at the event"
    if isinstance(new.stop.at, AtFinding) and breakpoints.growing:
        yield "findings are searched in the recording only: the running program does not stop at them"


def add_once(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str | WorkProgress]:
    """Run ``tbreak``."""
    return add(breakpoints, text, selected, once=True)


def log(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """Run ``log PLACE "TEXT"``, with its message in quotes."""
    match = _LOG.match(text)
    if match is None:
        raise GvizError("log needs a place and a text", hint='log x "x is {value}"', exit_code=2)
    place, _, message, test = match.groups()
    _check_message(message)
    where = stop(" ".join(filter(None, (place or f"#{selected}", test))))
    new = breakpoints.add(where, message=message)
    yield f"log point {new.number}: {shown(new.stop.text)}{_never_text(breakpoints, new)}"


def _never_text(breakpoints: Breakpoints, new: Breakpoint) -> str:
    growing = breakpoints.growing
    if new.hits.can_hit():
        return ""
    if isinstance(new.stop.at, AtFinding):
        return " (no such finding yet)" if growing else " (no such finding)"
    if asks := every_node_hint(new.stop, new.hits, "break"):
        return f" (no node is named {new.hits.unmatched_name()}{' yet' * growing}; {asks})"
    why = why_never(breakpoints.timeline, new.stop, new.hits, growing=growing)
    return f" ({why}, so it never stops)" if why else " (no such node yet: it stops when one is made)"


def condition(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """Run ``condition N [COND]``."""
    breakpoints.set_condition(text)
    yield from listed(breakpoints, text.split()[0], selected)


def ignore(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """Run ``ignore N COUNT``."""
    yield entry_text(breakpoints.ignore(text))


def enable(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """Run ``enable [N ...]``."""
    return _switch(breakpoints, text, on=True)


def disable(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """Run ``disable [N ...]``."""
    return _switch(breakpoints, text, on=False)


def _switch(breakpoints: Breakpoints, text: str, *, on: bool) -> Iterator[str]:
    if not breakpoints.listed:
        yield "there are no breakpoints"
    for one in breakpoints.by_numbers(text):
        one.enabled = on
        yield entry_text(one)


def delete(breakpoints: Breakpoints, text: str, selected: int) -> Iterator[str]:
    """Run ``delete [N ...]``."""
    chosen = breakpoints.by_numbers(text)
    switched_off = breakpoints.delete(chosen)
    deleted = [str(one.number) for one in chosen if one not in switched_off]
    if deleted or not chosen:
        yield f"deleted: {', '.join(deleted)}" if deleted else "there are no breakpoints"
    for call in switched_off:
        yield f"{entry_text(call)}: it is a call in the program; enable {call.number} switches it on again"


def listed(breakpoints: Breakpoints, text: str, selected: int, here: int = 0) -> Iterator[str]:
    """Run ``info break``; also show which breakpoints match the moment `here`, unless it is 0."""
    if not breakpoints.listed:
        yield "there are no breakpoints; break sets one"
    for one in breakpoints.by_numbers(text.removeprefix("break")):
        yield f"{entry_text(one)}  {_times(one, here)}"


def _times(one: BreakpointEntry, here: int) -> str:
    times = sum(1 for _ in islice(one.after(0), MOST_COUNTED + 1))
    many = f"more than {MOST_COUNTED} times" if times > MOST_COUNTED else f"{times} time{'' if times == 1 else 's'}"
    now = ", and here" if here and one.stops_at(here) else ""
    return f"[{many} in this recording{now}{_unknown_text(one)}]"


def _unknown_text(one: BreakpointEntry) -> str:
    """Return how many moments could not be tested, and how to record the values."""
    moments = one.unknown_count()
    return f"; unknown at {moments} moment{'s' * (moments != 1)}: {KEEP_ALL}" if moments else ""


def _check_message(message: str) -> None:
    try:
        fields = [name for _, name, _, _ in Formatter().parse(message) if name is not None]
    except ValueError as error:
        raise GvizError(f"the text cannot be read: {error}", hint="write {{ for a brace", exit_code=2) from None
    unknown = [name for name in fields if name not in NAMES]
    if unknown:
        hint = "fields: " + ", ".join(NAMES)
        raise GvizError(
            f"a log point has no field {clipped(unknown[0], 30) or 'without a name'}", hint=hint, exit_code=2
        )
