"""The breakpoints of a session: their numbers, switches, hit counts, next stop, and marked source lines.

The list contains two kinds of things: a `Breakpoint` set in the debugger, whose moments are in the recording (`Hits`)
or are those of findings (`FindingHits`), and a `Call` in the program, such as ``gviz.breakpoint()``, whose moments only
the session over that program knows. Both answer `after`, `before` and `stops_at`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count, islice
from math import inf
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeAlias

from gviz.errors import GvizError, did_you_mean
from gviz.explain.finding import Finding, whole
from gviz.query import expressions
from gviz.query_syntax.condition import condition
from gviz.query_syntax.stop_condition import AtFinding, Stop
from gviz.system.cooperative_work import WorkProgress
from gviz.trace.breakpoint_hits import Hit, Hits, stretches
from gviz.trace.graph_state import BAD
from gviz.trace.timeline import Timeline
from gviz.tui.stop_reason import Reason
from gviz.values.number_text import typed_count
from gviz.values.plain_text import clipped, shown

if TYPE_CHECKING:
    from gviz.live.protocol import CallSite


def hits_of(timeline: Timeline, stop: Stop) -> Hits:
    """Return the moments that a stop matches. Raises GvizError for an invalid expression or kind of finding."""
    if not isinstance(stop.at, AtFinding):
        return expressions.hits_of(timeline, stop)
    return FindingHits(timeline, stop, stop.at.kind)


@dataclass(slots=True)
class Breakpoint:
    """A breakpoint set in the debugger. It stops after the first `ignored` of the moments that match.

    With a `message` it is a log point, which shows the message and does not stop. At a stop, `commands` are run.
    """

    number: int
    stop: Stop
    hits: Hits
    once: bool = False
    message: str = ""
    enabled: bool = True
    ignored: int = 0
    commands: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that sets it."""
        return "log" if self.message else "tbreak" if self.once else "break"

    @property
    def words(self) -> str:
        """Its text in the list of breakpoints."""
        message = f' "{self.message}"' if self.message else ""
        return f"{self.command} {self.stop.text}{message}" + f" (not the first {self.ignored})" * bool(self.ignored)

    def after(self, n: int) -> Iterator[Hit]:
        """Return the moments after `n` at which a run stops, in order."""
        if not self.ignored:
            return self.hits.after(n)
        return (hit for hit in islice(self.hits.after(0), self.ignored, None) if hit.n > n)

    def before(self, n: int) -> Iterator[Hit]:
        """Return the moments before `n` at which a run stops, the latest first."""
        first = next(islice(self.hits.after(0), self.ignored, None), None) if self.ignored else Hit(0)
        return iter(()) if first is None else (hit for hit in self.hits.before(n) if hit.n >= first.n)

    def stops_at(self, n: int) -> bool:
        """Return whether a run stops at moment `n`."""
        return next(self.after(n - 1), Hit(0)).n == n

    def unknown_count(self, n: float = inf) -> int:
        """Return the number of moments up to `n` whose condition is unknown, because a value is not stored."""
        return self.hits.undecided(n)


@dataclass(slots=True)
class Call:
    """A call in the program that has paused it. It is listed from its first pause, and can only be switched off.

    The recording does not contain the `moments` of the pauses; they are added as they happen.
    """

    number: int
    site: CallSite
    enabled: bool = True
    commands: tuple[str, ...] = ()
    moments: list[int] = field(default_factory=list)

    @property
    def words(self) -> str:
        """Its text in the list: ``breakpoint() at train.py:12``."""
        return f"{self.site.call} at {PurePath(self.site.path).name}:{self.site.line}"

    def add_pause(self, n: int) -> None:
        """Add moment `n`, the latest at which the call has paused the program."""
        if n not in self.moments[-1:]:
            self.moments.append(n)

    def after(self, n: int) -> Iterator[Hit]:
        """Return the moments after `n` at which it paused the program, in order."""
        return (Hit(moment) for moment in self.moments if moment > n)

    def before(self, n: int) -> Iterator[Hit]:
        """Return the moments before `n` at which it paused the program, the latest first."""
        return (Hit(moment) for moment in reversed(self.moments) if moment < n)

    def stops_at(self, n: int) -> bool:
        """Return whether it paused the program at moment `n`."""
        return n in self.moments

    def unknown_count(self, n: float = inf) -> int:
        """Return the number of moments whose condition is unknown: always 0."""
        return 0


BreakpointEntry: TypeAlias = Breakpoint | Call
"""An entry of the list of breakpoints."""


@dataclass(frozen=True, slots=True)
class BreakpointStop:
    """The breakpoint that ends a run through the recording."""

    n: int
    reason: Reason


@dataclass(slots=True)
class Breakpoints:
    """All breakpoints of a session: the `own` ones that the user set, and the `calls` that paused the program."""

    timeline: Timeline
    growing: bool = False
    own: list[Breakpoint] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def listed(self) -> list[BreakpointEntry]:
        """All of them, in the order of their numbers."""
        return sorted([*self.own, *self.calls], key=lambda one: one.number)

    def add(self, stop: Stop, hits: Hits | None = None, *, once: bool = False, message: str = "") -> Breakpoint:
        """Set a breakpoint; `hits` are its moments, if the caller has them already."""
        new = Breakpoint(next(self._number), stop, hits or hits_of(self.timeline, stop), once, message)
        self.own.append(new)
        return new

    def call(self, site: CallSite) -> Call:
        """Return the entry for a call in the program, and list it if it is new."""
        known = next((one for one in self.calls if one.site == site), None)
        if known is None:
            self.calls.append(known := Call(next(self._number), site))
        return known

    def toggle(self, stop: Stop) -> Breakpoint | None:
        """Set a breakpoint and return it, or delete those with the same text and return None."""
        same = [known for known in self.own if known.stop.text == stop.text]
        self.own = [known for known in self.own if known not in same]
        return None if same else self.add(stop)

    def by_numbers(self, text: str) -> list[BreakpointEntry]:
        """Return the breakpoints with the numbers in `text` (``.``: the newest), or all for an empty text.

        Raises GvizError for an unknown number.
        """
        listed = self.listed
        if not text.strip():
            return listed
        by_number = {str(known.number): known for known in listed}
        if listed:
            by_number["."] = listed[-1]
        for word in text.split():
            if word not in by_number:
                what = f"there is no breakpoint {clipped(word, 20)}"
                raise GvizError(what, hint="info break lists them", exit_code=2)
        return [by_number[word] for word in text.split()]

    def by_number(self, text: str) -> BreakpointEntry:
        """Return the breakpoint with this number. Raises GvizError for no number, or for several."""
        entries = self.by_numbers(text or "?")
        if len(entries) > 1:
            raise GvizError(f"{clipped(text, 20)} are several breakpoints: give one number", exit_code=2)
        return entries[0]

    def delete(self, chosen: Sequence[BreakpointEntry]) -> list[Call]:
        """Delete breakpoints. Calls are part of the program: they are switched off instead, and returned."""
        self.own = [known for known in self.own if known not in chosen]
        switched_off = [call for call in self.calls if call in chosen]
        for call in switched_off:
            call.enabled = False
        return switched_off

    def set_condition(self, text: str) -> None:
        """Run ``condition N COND``: stop only where COND holds, or always without COND."""
        number, _, test = text.strip().partition(" ")
        test = test.strip().removeprefix("if ")
        chosen = self.own_by_number(number)
        chosen.stop = replace(chosen.stop, condition=condition(test) if test else None)
        chosen.hits = hits_of(self.timeline, chosen.stop)

    def ignore(self, text: str) -> Breakpoint:
        """Run ``ignore N COUNT``: skip the first COUNT moments of the recording that match."""
        number, _, times = text.strip().partition(" ")
        count = typed_count(times.strip())
        if count is None:
            raise GvizError(
                "ignore needs N COUNT", hint="ignore 1 3 skips the first 3 stops of breakpoint 1", exit_code=2
            )
        chosen = self.own_by_number(number)
        chosen.ignored = count
        return chosen

    def own_by_number(self, number: str) -> Breakpoint:
        """Return the breakpoint with this number.

        Raises GvizError for a call in the program, which cannot be edited.
        """
        chosen = self.by_number(number)
        if isinstance(chosen, Call):
            hint = f"disable {number} switches it off; break sets one with a condition"
            raise GvizError(f"breakpoint {number} is a call in the program", hint=hint, exit_code=2)
        return chosen

    def search_again(self) -> None:
        """Search for all moments again, because names have changed."""
        for one in self.own:
            one.hits = hits_of(self.timeline, one.stop)

    def next(self, n: int) -> BreakpointStop | None:
        """Return the first breakpoint that stops after moment `n`."""
        return self._first([(hit, one) for one in self._stopping() if (hit := next(one.after(n), None)) is not None])

    def search(self, n: int, *, backward: bool) -> Iterator[int]:
        """Search for the result of `next` (`previous`) and cache it; yield the event reached, range by range.

        This also searches for log points, because the caller needs their messages next.
        """
        used = [one for one in self.own if one.enabled]
        calls = [call for call in self.calls if call.enabled]
        for stretch in stretches(self.timeline, n, backward=backward):
            ahead = stretch[: max(n - stretch.start, 0)] if backward else stretch[max(n + 1 - stretch.start, 0) :]
            reached = [one for one in used if any(hit.n in ahead for hit in one.hits.in_stretch(stretch))]
            if any(not one.message and not one.ignored for one in reached):
                return
            if any(moment in ahead for call in calls for moment in call.moments):
                return
            yield stretch.start if backward else stretch.stop - 1

    def messages(self, n: int, end: int) -> list[tuple[int, Breakpoint]]:
        """Return the moments of log points after `n` and up to `end`, in order."""
        logging = [one for one in self.own if one.enabled and one.message]
        messages = [(hit.n, one) for one in logging for hit in _until(one.after(n), end)]
        return sorted(messages, key=lambda pair: (pair[0], pair[1].number))

    def previous(self, n: int) -> BreakpointStop | None:
        """Return the last breakpoint that stops before moment `n`."""
        hits = [(hit, one) for one in self._stopping() if (hit := next(one.before(n), None)) is not None]
        latest = max((hit.n for hit, _ in hits), default=0)
        return self._first([(hit, one) for hit, one in hits if hit.n == latest])

    def commands_of(self, number: int) -> tuple[str, ...]:
        """Return the commands of the breakpoint with a number; empty for an unknown number."""
        return next((one.commands for one in self.listed if one.number == number), ())

    def copies(self) -> tuple[BreakpointEntry, ...]:
        """Return copies, to be compared later with the current state."""
        return tuple(map(copy, self.listed))

    def remove_temporary(self, n: int) -> None:
        """Delete the one-time breakpoints that stop at moment `n`."""
        self.own = [one for one in self.own if not (one.once and one.enabled and one.stops_at(n))]

    def at_node(self, node: int) -> bool:
        """Return whether the place of an enabled breakpoint includes a node."""
        return any(one.enabled for one in self.of_node(node))

    def of_node(self, node: int) -> list[Breakpoint]:
        """Return the breakpoints, enabled or not, whose place includes a node."""
        return [one for one in self.own if one.hits.matches(node)]

    def _stopping(self) -> list[BreakpointEntry]:
        own: list[BreakpointEntry] = [one for one in self.own if one.enabled and not one.message]
        return own + [call for call in self.calls if call.enabled]

    def _first(self, hits: list[tuple[Hit, BreakpointEntry]]) -> BreakpointStop | None:
        if not hits:
            return None
        hit, one = min(hits, key=lambda pair: (pair[0].n, pair[1].number))
        note = hit.note or (one.stop.event if isinstance(one, Breakpoint) and one.stop.event in BAD else "")
        text = f"breakpoint {one.number}" + (f": {note}" if note else "")
        return BreakpointStop(hit.n, Reason("breakpoint", text, one.number))


def _until(hits: Iterator[Hit], end: int) -> Iterator[Hit]:
    for hit in hits:
        if hit.n > end:
            return
        yield hit


SEARCHED = 20_000
"""How many nodes are searched for the source lines of a breakpoint that names no line."""


def marked_lines(breakpoints: Breakpoints, path: str) -> dict[int, list[BreakpointEntry]]:
    """Return the breakpoints of each line of a file: those set on the line, or on a node that the line made."""
    by_line: dict[int, list[BreakpointEntry]] = {}
    for one in breakpoints.own:
        for line in _lines(breakpoints.timeline, one, path) if one.enabled else ():
            by_line.setdefault(line, []).append(one)
    for call in breakpoints.calls:
        if call.enabled and call.site.path == path:
            by_line.setdefault(call.site.line, []).append(call)
    return by_line


def _lines(timeline: Timeline, one: Breakpoint, path: str) -> set[int]:
    place = one.stop.at.place
    if place is None:
        return set()
    if place.kind == "line":
        return {place.number} if place.word in ("", path, PurePath(path).name) else set()
    nodes = [place.number] if place.kind == "node" else timeline.nodes
    meant = (timeline.info(node) for node in islice(nodes, SEARCHED) if one.hits.matches(node))
    return {info.frames[0].line for info in meant if info.frames and info.frames[0].path == path}


def nodes_of_line(timeline: Timeline, n: int, path: str, line: int) -> Iterator[int]:
    """Yield the nodes that a line made in the iteration of moment `n`, in order of creation."""
    for node in timeline.nodes.of(timeline.iteration_at(n)):
        if any(frame.path == path and frame.line <= line <= frame.end_line for frame in timeline.info(node).frames):
            yield node


def entry_text(one: BreakpointEntry) -> str:
    """Return a breakpoint as ``info break`` shows it."""
    return f"{one.number}  {shown(one.words)}" + " (off)" * (not one.enabled)


# ----------------------------------------------------------------------------------------------------------------------
# The moments of findings, for ``break finding vanishing net.*``.


class FindingHits(Hits):
    """The events of findings of one kind (empty: of any kind), searched once, and again after the recording grew.

    Raises GvizError for an unknown kind.
    """

    def __init__(self, timeline: Timeline, stop: Stop, kind: str) -> None:
        super().__init__(timeline, stop)
        self._finding_kinds = _kinds_named(kind)
        self._seen = -1
        self._hits: list[Hit] = []

    def can_hit(self) -> bool:
        """Return whether there is any finding."""
        return bool(self._all())

    def in_stretch(self, stretch: range) -> list[Hit]:
        """Return the findings in a range of events."""
        return [hit for hit in self._all() if hit.n in stretch]

    def preparation(self) -> Iterator[WorkProgress]:
        """Search for the findings, unless the current recording was searched already."""
        if self._seen == len(self._timeline):
            return
        from gviz.explain.check import findings  # imports every kind of finding: only on demand

        seen, by_event = len(self._timeline), {}
        for one in findings(self._timeline):
            if isinstance(one, WorkProgress):
                yield one
            elif one.event and self._fits(one):
                by_event[one.event] = one
        self._hits = [hit for n in sorted(by_event) if (hit := self._hit(by_event[n])) is not None]
        self._seen = seen

    def _all(self) -> list[Hit]:
        for _ in self.preparation():
            pass
        return self._hits

    def _fits(self, finding: Finding) -> bool:
        of_place = self._matching is None or any(one.node and one.node in self._matching for one in whole(finding))
        return of_place and finding.kind in self._finding_kinds

    def _hit(self, finding: Finding) -> Hit | None:
        event = self._timeline.event(finding.event)
        hit = self._tested(finding.event, finding.node or self._timeline.at(finding.event).node, event)
        return Hit(hit.n, hit.note or f"{finding.kind}: {clipped(finding.text, 200)}") if hit is not None else None


def _kinds_named(kind: str) -> frozenset[str]:
    """Return the kinds that a stop names: one, or all for an empty name. Raises GvizError for an unknown kind."""
    from gviz.explain.finding_kinds import findable  # imports every kind of finding: only on demand

    known = [one.name for one in findable()]
    if kind and kind not in known:
        hint = did_you_mean(kind, known, ", ".join(known))
        raise GvizError(f"there is no kind of finding {clipped(kind, 30)}", hint=hint, exit_code=2)
    return frozenset([kind] if kind else known)
