"""The breakpoints of a session: numbered, switched, counted; and which of them time meets next."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import count, islice

from gviz.errors import GvizError
from gviz.numbers import typed_count
from gviz.plain_text import clipped
from gviz.trace.stops import HeldMoments, Hit, Hits, stretches
from gviz.trace.timeline import Timeline
from gviz.tui.arrival import Reason
from gviz.where.condition import condition
from gviz.where.stop import AtCall, AtFinding, Stop, at_call
from gviz.words import changing


def hits_of(timeline: Timeline, stop: Stop) -> Hits:
    """The moments at which a stop fits; GvizError for what is no expression, and for a kind of finding there is not."""
    if isinstance(stop.at, AtCall):
        return HeldMoments(timeline, stop)
    if not isinstance(stop.at, AtFinding):
        return changing.hits_of(timeline, stop)
    from gviz.tui.found import Found  # with every kind of finding: imported where one is asked for

    return Found(timeline, stop, stop.at.kind)


@dataclass(slots=True)
class Breakpoint:
    """One breakpoint. It stops after the first `ignored` of the moments it fits; with a `message` it only says that.

    Where it stops, `commands` are carried out.
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
    def call(self) -> AtCall | None:
        """The call in the program that it is, which can be switched off, and stays."""
        return self.stop.at if isinstance(self.stop.at, AtCall) else None

    def after(self, n: int) -> Iterator[Hit]:
        """The moments after `n` that count, in order."""
        if not self.ignored:
            return self.hits.after(n)
        return (hit for hit in islice(self.hits.after(0), self.ignored, None) if hit.n > n)

    def before(self, n: int) -> Iterator[Hit]:
        """The moments before `n` that count, the latest first."""
        first = next(islice(self.hits.after(0), self.ignored, None), None) if self.ignored else Hit(0)
        return iter(()) if first is None else (hit for hit in self.hits.before(n) if hit.n >= first.n)

    def stops_at(self, n: int) -> bool:
        """Whether moment `n` counts."""
        return next(self.after(n - 1), Hit(0)).n == n


@dataclass(frozen=True, slots=True)
class Met:
    """A breakpoint that stops the way through time."""

    n: int
    reason: Reason


@dataclass(slots=True)
class Breakpoints:
    """All of a session, in the order in which they were set."""

    timeline: Timeline
    growing: bool = False
    listed: list[Breakpoint] = field(default_factory=list)
    _number: Iterator[int] = field(default_factory=lambda: count(1))

    def add(self, stop: Stop, hits: Hits | None = None, *, once: bool = False, message: str = "") -> Breakpoint:
        """Set one; `hits` are its moments, where somebody has made them."""
        made = Breakpoint(next(self._number), stop, hits or hits_of(self.timeline, stop), once, message)
        self.listed.append(made)
        return made

    def held(self, call: AtCall, n: int) -> Breakpoint:
        """The one that stands for a call in the program, which has held it at moment `n`."""
        one = next((known for known in self.listed if known.call == call), None) or self.add(at_call(call))
        assert isinstance(one.hits, HeldMoments)  # as `hits_of` makes them of a call
        one.hits.add(n)
        return one

    def toggle(self, stop: Stop) -> Breakpoint | None:
        """Set one, or take away the ones that are written the same; the new one if it was set."""
        same = [known for known in self.listed if known.stop.text == stop.text]
        self.listed = [known for known in self.listed if known not in same]
        return None if same else self.add(stop)

    def numbered(self, text: str) -> list[Breakpoint]:
        """Those whose numbers `text` says (``.``: the newest), all if it says none; GvizError for one there is not."""
        if not text.strip():
            return list(self.listed)
        by_number = {str(known.number): known for known in self.listed}
        if self.listed:
            by_number["."] = self.listed[-1]
        for word in text.split():
            if word not in by_number:
                what = f"there is no breakpoint {clipped(word, 20)}"
                raise GvizError(what, hint="info break lists them", exit_code=2)
        return [by_number[word] for word in text.split()]

    def one_numbered(self, text: str) -> Breakpoint:
        """The one of this number; GvizError where `text` says none, or several."""
        found = self.numbered(text or "?")
        if len(found) > 1:
            raise GvizError(f"{clipped(text, 20)} are several breakpoints: name one", exit_code=2)
        return found[0]

    def delete(self, gone: list[Breakpoint]) -> None:
        """Take these away, but for the calls in the program, which are switched off."""
        for one in gone:
            one.enabled &= one.call is None
        self.listed = [known for known in self.listed if known not in gone or known.call is not None]

    def require(self, text: str) -> None:
        """``condition N COND``: stop only if it holds; without COND always."""
        number, _, test = text.strip().partition(" ")
        test = test.strip().removeprefix("if ")
        chosen = self._own(number)
        chosen.stop = replace(chosen.stop, condition=condition(test) if test else None)
        chosen.hits = hits_of(self.timeline, chosen.stop)

    def ignore(self, text: str) -> Breakpoint:
        """``ignore N COUNT``: pass by the first COUNT moments of the recording that fit."""
        number, _, times = text.strip().partition(" ")
        count = typed_count(times.strip())
        if count is None:
            raise GvizError("ignore needs N COUNT", hint="ignore 1 3 passes breakpoint 1 by three times", exit_code=2)
        chosen = self._own(number)
        chosen.ignored = count
        return chosen

    def _own(self, number: str) -> Breakpoint:
        """The one of this number; GvizError for a call in the program, which is as it is written there."""
        chosen = self.one_numbered(number)
        if chosen.call is not None:
            hint = f"disable {number} passes by it, and break takes a condition"
            raise GvizError(f"breakpoint {number} stands in the program", hint=hint, exit_code=2)
        return chosen

    def search_again(self) -> None:
        """Forget where they stop: names have changed."""
        for one in self.listed:
            if one.call is None:
                one.hits = hits_of(self.timeline, one.stop)

    def next(self, n: int) -> Met | None:
        """The first breakpoint that stops after moment `n`."""
        return self._first([(hit, one) for one in self._stopping() if (hit := next(one.after(n), None)) is not None])

    def searched(self, n: int, *, backward: bool) -> Iterator[int]:
        """Look for what `next` (`previous`) gives and remember it; gives, between stretches, how far it has come.

        Log points are looked for as well, because what they say on the way is asked for next.
        """
        used = [one for one in self.listed if one.enabled]
        for stretch in stretches(self.timeline, n, backward=backward):
            found = [any(hit.n < n if backward else hit.n > n for hit in one.hits.within(stretch)) for one in used]
            if any(stops and not one.message and not one.ignored for stops, one in zip(found, used, strict=True)):
                return
            yield stretch.start if backward else stretch.stop - 1

    def said(self, n: int, end: int) -> list[tuple[int, Breakpoint]]:
        """What log points say after moment `n` and up to `end`, in order."""
        logging = [one for one in self.listed if one.enabled and one.message]
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

    def as_they_are(self) -> tuple[Breakpoint, ...]:
        """Copies, to see later whether any has changed."""
        return tuple(map(copy, self.listed))

    def arrived(self, n: int) -> None:
        """Time stopped here: those that were to stop once are gone."""
        self.listed = [one for one in self.listed if not (one.once and one.enabled and one.stops_at(n))]

    def at_node(self, node: int) -> bool:
        """Whether a breakpoint that is switched on means this node by its place."""
        return any(one.enabled for one in self.of_node(node))

    def of_node(self, node: int) -> list[Breakpoint]:
        """Those that mean a node by their place, switched on or not."""
        return [one for one in self.listed if one.hits.means(node)]

    def _stopping(self) -> list[Breakpoint]:
        return [one for one in self.listed if one.enabled and not one.message]

    def _first(self, found: list[tuple[Hit, Breakpoint]]) -> Met | None:
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
