"""What expressions are at the moments of one timeline."""

from __future__ import annotations

from gviz.plain_text import clipped, shown, told
from gviz.trace.timeline import Timeline
from gviz.value_text import short
from gviz.words.expressions import States, as_value, evaluated
from gviz.words.names import NamedNodes
from gviz.words.nodes import last


class Evaluator:
    """Evaluates expressions about a timeline, and keeps the names of its nodes."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.names = NamedNodes(timeline)

    def last(self, text: str, n: int) -> int:
        """The last node made by moment `n` that a place means, else the first later one; GvizError if there is none."""
        return last(self.names, text, n)

    def evaluated(self, text: str, n: int, states: States | None = None) -> str:
        """What an expression is, in one line; with `states` in another course of events."""
        result = evaluated(self.timeline, self.names, n, text, states)
        value = as_value(result)
        return shown(clipped(told(result), 200)) if value is None else short(value)

    def number(self, text: str, n: int, states: States | None = None) -> float:
        """An expression as one number; nan where it is none, or more than one; with `states` as `evaluated`."""
        value = as_value(evaluated(self.timeline, self.names, n, text, states))
        array = None if value is None or value.size != 1 else self.timeline.array(value)
        return float("nan") if array is None else float(array.item())

    def elements(self, text: str, n: int) -> int:
        """How many numbers an expression is."""
        value = as_value(evaluated(self.timeline, self.names, n, text))
        return 0 if value is None else value.size
