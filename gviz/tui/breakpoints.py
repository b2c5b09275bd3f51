"""The breakpoints of a session: numbered, switched, counted; and which of them time meets next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from gviz.errors import GvizError
from gviz.numbers import typed_count
from gviz.plain_text import clipped
from gviz.trace.stops import Hit, Hits, stretches
from gviz.trace.timeline import Timeline
from gviz.tui.arrival import Reason
from gviz.tui.breakpoint import Breakpoint, Call, Listed, hits_of
from gviz.where.condition import condition
from gviz.where.stop import Stop

if TYPE_CHECKING:
    from gviz.live.protocol import CallSite


@dataclass(frozen=True, slots=True)
class Met:
    """A breakpoint that stops the way through time."""

    n: int
    reason: Reason


@dataclass(slots=True)
class Breakpoints:
    """All of a session: the `own` that were set here, and the `calls` in the program that have held it."""

    timeline: Timeline
    growing: bool = False
    own: list[Breakpoint] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def listed(self) -> list[Listed]:
        """All of them, in the order in which they came."""
        return sorted([*self.own, *self.calls], key=lambda one: one.number)

    def add(self, stop: Stop, hits: Hits | None = None, *, once: bool = False, message: str = "") -> Breakpoint:
        """Set one; `hits` are its moments, where somebody has made them."""
        made = Breakpoint(next(self._number), stop, hits or hits_of(self.timeline, stop), once, message)
        self.own.append(made)
        return made

    def call(self, site: CallSite) -> Call:
        """The call in a line of the program, listed from now on."""
        known = next((one for one in self.calls if one.site == site), None)
        if known is None:
            self.calls.append(known := Call(next(self._number), site))
        return known

    def toggle(self, stop: Stop) -> Breakpoint | None:
        """Set one, or take away the ones that are written the same; the new one if it was set."""
        same = [known for known in self.own if known.stop.text == stop.text]
        self.own = [known for known in self.own if known not in same]
        return None if same else self.add(stop)

    def numbered(self, text: str) -> list[Listed]:
        """Those whose numbers `text` says (``.``: the newest), all if it says none; GvizError for one there is not."""
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

    def one_numbered(self, text: str) -> Listed:
        """The one of this number; GvizError where `text` says none, or several."""
        found = self.numbered(text or "?")
        if len(found) > 1:
            raise GvizError(f"{clipped(text, 20)} are several breakpoints: name one", exit_code=2)
        return found[0]

    def delete(self, chosen: Sequence[Listed]) -> list[Call]:
        """Take these away; the calls among them, which stand in the program and are switched off."""
        self.own = [known for known in self.own if known not in chosen]
        switched_off = [call for call in self.calls if call in chosen]
        for call in switched_off:
            call.enabled = False
        return switched_off

    def require(self, text: str) -> None:
        """``condition N COND``: stop only if it holds; without COND always."""
        number, _, test = text.strip().partition(" ")
        test = test.strip().removeprefix("if ")
        chosen = self.own_numbered(number)
        chosen.stop = replace(chosen.stop, condition=condition(test) if test else None)
        chosen.hits = hits_of(self.timeline, chosen.stop)

    def ignore(self, text: str) -> Breakpoint:
        """``ignore N COUNT``: pass by the first COUNT moments of the recording that fit."""
        number, _, times = text.strip().partition(" ")
        count = typed_count(times.strip())
        if count is None:
            raise GvizError("ignore needs N COUNT", hint="ignore 1 3 passes breakpoint 1 by three times", exit_code=2)
        chosen = self.own_numbered(number)
        chosen.ignored = count
        return chosen

    def own_numbered(self, number: str) -> Breakpoint:
        """The one of this number; GvizError for a call in the program, which is as it is written there."""
        chosen = self.one_numbered(number)
        if isinstance(chosen, Call):
            hint = f"disable {number} passes by it, and break takes a condition"
            raise GvizError(f"breakpoint {number} stands in the program", hint=hint, exit_code=2)
        return chosen

    def search_again(self) -> None:
        """Forget where they stop: names have changed."""
        for one in self.own:
            one.hits = hits_of(self.timeline, one.stop)

    def next(self, n: int) -> Met | None:
        """The first breakpoint that stops after moment `n`."""
        return self._first([(hit, one) for one in self._stopping() if (hit := next(one.after(n), None)) is not None])

    def searched(self, n: int, *, backward: bool) -> Iterator[int]:
        """Look for what `next` (`previous`) gives and remember it; gives, between stretches, how far it has come.

        Log points are looked for as well, because what they say on the way is asked for next.
        """
        used = [one for one in self.own if one.enabled]
        calls = [call for call in self.calls if call.enabled]
        for stretch in stretches(self.timeline, n, backward=backward):
            ahead = stretch[: max(n - stretch.start, 0)] if backward else stretch[max(n + 1 - stretch.start, 0) :]
            found = [one for one in used if any(hit.n in ahead for hit in one.hits.within(stretch))]
            if any(not one.message and not one.ignored for one in found):
                return
            if any(moment in ahead for call in calls for moment in call.moments):
                return
            yield stretch.start if backward else stretch.stop - 1

    def said(self, n: int, end: int) -> list[tuple[int, Breakpoint]]:
        """What log points say after moment `n` and up to `end`, in order."""
        logging = [one for one in self.own if one.enabled and one.message]
        said = [(hit.n, one) for one in logging for hit in _until(one.after(n), end)]
        return sorted(said, key=lambda pair: (pair[0], pair[1].number))

    def previous(self, n: int) -> Met | None:
        """The last breakpoint that stops before moment `n`."""
        found = [(hit, one) for one in self._stopping() if (hit := next(one.before(n), None)) is not None]
        latest = max((hit.n for hit, _ in found), default=0)
        return self._first([(hit, one) for hit, one in found if hit.n == latest])

    def commands_of(self, number: int) -> tuple[str, ...]:
        """The commands of the breakpoint of a number; none where there is none of it."""
        return next((one.commands for one in self.listed if one.number == number), ())

    def as_they_are(self) -> tuple[Listed, ...]:
        """Copies, to see later whether any has changed."""
        return tuple(map(copy, self.listed))

    def arrived(self, n: int) -> None:
        """Time stopped here: those that were to stop once are gone."""
        self.own = [one for one in self.own if not (one.once and one.enabled and one.stops_at(n))]

    def at_node(self, node: int) -> bool:
        """Whether a breakpoint that is switched on means this node by its place."""
        return any(one.enabled for one in self.of_node(node))

    def of_node(self, node: int) -> list[Breakpoint]:
        """Those that mean a node by their place, switched on or not."""
        return [one for one in self.own if one.hits.means(node)]

    def _stopping(self) -> list[Listed]:
        own: list[Listed] = [one for one in self.own if one.enabled and not one.message]
        return own + [call for call in self.calls if call.enabled]

    def _first(self, found: list[tuple[Hit, Listed]]) -> Met | None:
        if not found:
            return None
        hit, one = min(found, key=lambda pair: (pair[0].n, pair[1].number))
        text = f"breakpoint {one.number}" + (f": {hit.note}" if hit.note else "")
        return Met(hit.n, Reason("breakpoint", text, one.number))


def _until(hits: Iterator[Hit], end: int) -> Iterator[Hit]:
    for hit in hits:
        if hit.n > end:
            return
        yield hit
