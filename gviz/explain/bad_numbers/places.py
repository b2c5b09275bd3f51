"""Where something bad was, a nan or an inf: in the value or the gradient of a node, at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar

from gviz.trace.moment import Moment
from gviz.trace.state import Contribution, OutputState
from gviz.trace.timeline import Timeline
from gviz.value_text import bad_text
from gviz.values import Value

T = TypeVar("T")

Aspect = Literal["value", "grad"]

Place = tuple[Aspect, int, int]
"""Something bad that came from elsewhere: the value or gradient of a node, at a moment."""


def bad_at(timeline: Timeline, place: Place) -> Value | None:
    """What is bad at a place."""
    aspect, node, n = place
    output = output_at(timeline.at(n), node, aspect)
    if output is None or aspect == "value":
        return output.value if output is not None else None
    part = bad_part(output)
    return part.value if part is not None else output.grad


def bad_part(output: OutputState | None) -> Contribution | None:
    """The contribution that brought the first nan, else an inf, to an output."""
    return worst((part, part.value) for part in output.parts) if output is not None else None


def worst(held: Iterable[tuple[T, Value | None]]) -> T | None:
    """What holds the first nan, else the first that holds an inf."""
    bad = [(one, text) for one, value in held if (text := bad_text(value))]
    return next((one for one, text in bad if "nan" in text), bad[0][0] if bad else None)


def output_at(moment: Moment, node: int, aspect: Aspect) -> OutputState | None:
    """The output of a node whose value or gradient is bad at a moment, else its first; None if it has none."""
    state = moment.state(node)
    outputs = state.outputs if state is not None else ()
    bad = worst((output, value) for output in outputs for value in _held(output, aspect))
    return bad or next(iter(outputs), None)


def _held(output: OutputState, aspect: Aspect) -> Iterator[Value | None]:
    """What an output holds as its value, or as its gradient."""
    if aspect == "value":
        yield output.value
    else:
        yield from (part.value for part in output.parts)
        yield output.grad
