"""Where a timeline meets what users asked to stop at: forward and backward in time the same moments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gviz import events as e
from gviz.events import Event
from gviz.guarded import Numbers
from gviz.plain_text import clipped, told
from gviz.trace.codec import KIND_NUMBERS, values
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values import Value
from gviz.where import EVENTS, Place, Stop

STRETCH = 4096
"""Events looked at in one go; the moments found in them are remembered."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A moment at which a stop fits; `trouble` says why its condition could not be told."""

    n: int
    trouble: str = ""


class Hits:
    """The moments at which one stop fits, found stretch by stretch where they are asked for."""

    def __init__(self, timeline: Timeline, stop: Stop) -> None:
        self._timeline = timeline
        self._stop = stop
        self._known: dict[int, tuple[int, list[Hit]]] = {}
        self._fits: dict[int, bool] = {}
        self._naming = timeline.last_naming
        self._began: dict[int, int] = {}  # by node: the stack of the node with which its line began
        self._storages: tuple[int, frozenset[int]] = 0, frozenset()

    def after(self, n: int) -> Iterator[Hit]:
        """The hits after moment `n`, in order."""
        for stretch in range(n // STRETCH, len(self._timeline) // STRETCH + 1):
            yield from (hit for hit in self._in(stretch) if hit.n > n)

    def before(self, n: int) -> Iterator[Hit]:
        """The hits before moment `n`, the latest first."""
        for stretch in range(n // STRETCH, -1, -1):
            yield from (hit for hit in reversed(self._in(stretch)) if hit.n < n)

    def can_hit(self) -> bool:
        """Whether there is any node that the stop's place means; True where it has none."""
        return self._stop.place is None or any(self.means(node) for node in self._timeline.nodes)

    def means(self, node: int) -> bool:
        """Whether the stop's place means this node."""
        return self._stop.place is not None and self._means(self._stop.place, node)

    def _in(self, stretch: int) -> list[Hit]:
        """The hits among events ``stretch * STRETCH <= n < (stretch + 1) * STRETCH``, looked for once."""
        if self._timeline.last_naming != self._naming:  # older nodes may have got theirs
            self._known, self._fits, self._naming = {}, {}, self._timeline.last_naming
        end = min((stretch + 1) * STRETCH, len(self._timeline) + 1)
        searched, hits = self._known.get(stretch, (max(stretch * STRETCH, 1), []))
        if searched < end:
            hits = [*hits, *self._search(searched, end)]
            self._known[stretch] = end, hits
        return hits

    def _search(self, start: int, end: int) -> Iterator[Hit]:
        columns = self._timeline.columns(start, end)
        wanted = np.isin(columns.kind, [KIND_NUMBERS[kind] for kind in self._stop.kinds])
        for row in np.flatnonzero(wanted).tolist():
            n, node = start + row, int(columns.node[row])
            if self._concerns(n, node) and (hit := self._tested(n, node)) is not None:
                yield hit

    def _concerns(self, n: int, node: int) -> bool:
        """Whether an event is one of the place's: of a node it means, or a write to what such a node holds."""
        place = self._stop.place
        if place is None or self._means(place, node):
            return True
        event = self._timeline.event(n)
        return isinstance(event, e.StorageWritten) and event.storage in self._memory(place)

    def _memory(self, place: Place) -> frozenset[int]:
        """The storages that nodes of the place lie in."""
        count = len(self._timeline.nodes)
        if self._storages[0] != count:
            meant = [self._timeline.info(node) for node in self._timeline.nodes if self._means(place, node)]
            self._storages = count, frozenset(output.storage for info in meant for output in info.created.outputs)
        return self._storages[1]

    def _means(self, place: Place, node: int) -> bool:
        fits = self._fits.get(node)
        if fits is None:
            fits = node in self._timeline and place.fits(self._timeline.info(node))
            fits = fits and not (place.kind == "line" and self._goes_on(place, node))
            if not self._timeline.growing or place.kind in ("node", "line", "op"):  # a name may not be known yet
                self._fits[node] = fits
        return fits

    def _goes_on(self, place: Place, node: int) -> bool:
        """Whether a line that was stopped at when it began to run is still running: nodes of it came one after another.

        In a loop it begins anew with the node that it began with.
        """
        unknown = []
        first = node
        while first not in self._began and first - 1 in self._timeline and place.fits(self._timeline.info(first - 1)):
            unknown.append(first)
            first -= 1
        began = self._began.setdefault(first, self._timeline.info(first).created.stack)
        self._began |= dict.fromkeys(unknown, began)
        return node != first and self._timeline.info(node).created.stack != began

    def _tested(self, n: int, node: int) -> Hit | None:
        event = self._timeline.event(n)
        if not is_of(self._stop.event, event):
            return None
        if self._stop.condition is None:
            return Hit(n)
        try:
            return Hit(n) if self._stop.condition.holds(Situation(self._timeline, n, node)) else None
        except Absent:
            return None
        except Exception as trouble:  # whatever the user's expression raises is shown where it happened
            return Hit(n, f"{self._stop.condition.text}: {clipped(told(trouble), 120)}")


class Absent(Exception):
    """A condition asked for a value or gradient that there is not at its moment: it does not hold."""


class NotStored(Exception):
    """A condition asked for numbers that the trace does not hold: whether it holds cannot be told."""


class Situation(dict[str, Any]):
    """What a condition may ask about a moment, worked out when it asks."""

    def __init__(self, timeline: Timeline, n: int, node: int) -> None:
        super().__init__()
        self._timeline = timeline
        self._n = n
        self._node = node

    def __missing__(self, name: str) -> Any:
        reader = _READERS.get(name)
        if reader is None:
            raise KeyError(name)
        found = self[name] = reader(self)
        return found

    def stored(self, name: str) -> Value | None:
        """The ``value`` or ``grad`` as the trace has it, None where there is none."""
        return self._output()[("value", "grad").index(name)]

    def _info(self) -> NodeInfo | None:
        return self._timeline.info(self._node) if self._node in self._timeline else None

    def _value(self) -> Any:
        return self._numbers(self._output()[0], "value")

    def _grad(self) -> Any:
        return self._numbers(self._output()[1], "gradient")

    def _output(self) -> tuple[Value | None, Value | None]:
        event = self._timeline.event(self._n)
        state = self._timeline.at(self._n).state(self._node) if self._node else None
        if state is None or not state.outputs:
            return None, None
        output_nr = event.output_nr if isinstance(event, e.GradFlowed | e.GradSet | e.GradRetained) else 0
        output = state.outputs[min(output_nr, len(state.outputs) - 1)]
        arriving = isinstance(event, e.GradFlowed | e.StepStarted) or output.grad is None
        return output.value, output.incoming if arriving else output.grad

    def _numbers(self, value: Value | None, what: str) -> Any:
        if value is None:
            raise Absent
        array = self._timeline.array(value)
        if array is None:
            raise NotStored(f"the {what} of #{self._node} was not stored; record with --values BYTES")
        return array.view(Numbers) if array.ndim else array[()]


_READERS: dict[str, Callable[[Situation], Any]] = {
    "value": Situation._value,
    "grad": Situation._grad,
    "op": lambda self: info.op.name if (info := self._info()) else "",
    "name": lambda self: info.name if (info := self._info()) else "",
    "module": lambda self: info.scope if (info := self._info()) else "",
    "node": lambda self: self._node,
    "event": lambda self: word_of(self._timeline.event(self._n)),
    "step": lambda self: self._timeline.iteration_at(self._n).index,
}


def word_of(event: Event) -> str:
    """The word of ``on EVENT`` for an event, or the name of its class in lower case."""
    return next((word for word, kinds in EVENTS.items() if isinstance(event, kinds)), type(event).__name__.lower())


def is_of(word: str, event: Event) -> bool:
    """Whether an event of one of `where.EVENTS[word]` is what the word means; no word means all."""
    match word:
        case "forward":
            return isinstance(event, e.NodeCreated) and event.kind == "op"
        case "view":
            return isinstance(event, e.NodeCreated) and any(output.view_of for output in event.outputs)
        case "nan" | "inf":
            return any(getattr(stats, word) for value in values(event) if (stats := value.statistics()) is not None)
    return True
