"""Infinities that a program writes into masks: they get no mark of an error, and no recording stops at them.

Programs put infinities into masks: in a constant, in an operation with an infinite argument, and so in tensors computed
from them, such as scores plus a mask. A tensor that an operation fills in place, as in ``mask.fill_(-inf)``, is a mask
from then on. A tensor no longer counts as masked if it is infinite everywhere, or has a larger share of infinities than
any of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isinf, prod

from gviz.events import Event, NodeCreated, NodeFreed, StorageWritten
from gviz.trace.codec import values_of
from gviz.trace.event_log import EventLog
from gviz.trace.nonfinite import any_nonfinite, batches, is_nonfinite, may_be_nonfinite
from gviz.values.value import Value


class FirstBad:
    """Finds the first nan or infinity that the program did not write on purpose, in order of events.

    If `word` is ``nan`` or ``inf``, only that counts.
    """

    def __init__(self, word: str = "") -> None:
        self.is_found = False
        self._word = word
        self._masks: dict[int, float] = {}
        """The nodes with infinities written on purpose, and the share of their elements that is infinite."""

    def process(self, event: Event) -> bool:
        """Return whether this event holds it. Must be called for every event in order until it returns True."""
        if isinstance(event, NodeFreed):
            self._masks.pop(event.node, None)
        elif not self.is_found and may_be_nonfinite(event) and not self._is_masked(event):
            self.is_found = is_nonfinite(event, self._word)
            return self.is_found
        return False

    def _is_masked(self, event: Event) -> bool:
        match event:
            case NodeCreated(node=node):
                share = masked_share(event, lambda source: self._masks.get(source, 0.0))
                if share:
                    self._masks.update(dict.fromkeys((node, *filled_in_place(event)), share))
                return share > 0
            case StorageWritten(node=node, value=value):
                return node in self._masks and not _counts(value)[0]
        return False


def masked_share(created: NodeCreated, of_input: Callable[[int], float]) -> float:
    """Return the share of a node's elements with infinities written on purpose; 0 for other infinities or with any nan.

    `of_input` returns the share for an input node.
    """
    counts = [_counts(output.value) for output in created.outputs]
    share = max((infinite / max(size, 1) for _, infinite, size in counts), default=0.0)
    if not share or any(nans for nans, _, _ in counts):
        return 0.0
    if created.kind != "op":
        return share if created.kind == "constant" else 0.0
    if any(isinstance(attribute, float) and isinf(attribute) for _, attribute in created.attrs):
        return share
    most = max((of_input(source) for source, _ in created.inputs), default=0.0)
    takes_part = len(created.inputs) == 1 and most > 0
    return share if share < 1 and (share <= most or takes_part) else 0.0


def filled_in_place(created: NodeCreated) -> tuple[int, ...]:
    """Return the tensor that an operation writes to in place: later operations may take it, not the result."""
    is_write = bool(created.inputs) and any(output.version > 0 for output in created.outputs)
    return (created.inputs[0][0],) if is_write and created.kind == "op" else ()


def _counts(value: Value | None) -> tuple[int, int, int]:
    """Return the numbers of nan, infinite and all elements of a value."""
    stats = value.statistics() if value is not None else None
    return (stats.nan, stats.inf, prod(value.shape)) if value is not None and stats is not None else (0, 0, 0)


def first_bad(log: EventLog, start: int, stop: int, looking: FirstBad) -> int:
    """Return the first event in ``start <= seq < stop`` that `looking` looks for, or 0. It must know all events
    before.
    """
    for batch in batches(log, start, stop):
        if place := first_bad_place([event for _, event in batch], looking):
            return batch[place - 1][0]
    return 0


def first_bad_place(events: Sequence[Event], looking: FirstBad) -> int:
    """Return the position (from 1) of the first event that `looking` looks for, or 0."""
    if not any_nonfinite(values_of(events)):
        return 0
    return next((place for place, event in enumerate(events, 1) if looking.process(event)), 0)
