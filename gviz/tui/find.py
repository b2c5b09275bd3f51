"""Which nodes a search text means: a name, ``#4``, ``@12``, ``op:Mul``, ``nan``, ``demo.py:4``."""

from __future__ import annotations

import re
from collections.abc import Callable

from gviz import where
from gviz.errors import GvizError
from gviz.plain_text import clipped
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline

Matches = Callable[[NodeInfo], bool]


def query(timeline: Timeline, text: str) -> Matches:
    """The test that `text` stands for; raises GvizError where it can mean nothing."""
    text = text.strip()
    if not text:
        raise GvizError("nothing to find", hint="a name, #4, @12, op:Mul, nan or demo.py:4", exit_code=2)
    if text.startswith("#"):
        return _by_number(timeline, text)
    if text.startswith("@"):
        node = timeline.at(event_number(timeline, text[1:])).node
        return lambda info: info.node == node
    if text == "nan":
        return made_bad
    place = where.place(text)
    if place.kind != "word":
        return place.fits
    return lambda info: text.lower() in f"{info.name}\n{info.op.name}\n{info.scope}".lower()


def exactly(text: str) -> Matches:
    """Nodes called `text`: by their own name first of all, by module or operation."""
    place = where.Place(text, "word", word=text)
    return place.fits


def found(timeline: Timeline, matches: Matches, start: int, *, backward: bool = False, itself: bool = False) -> int:
    """The next node after `start` (or before it) that matches, going round at the ends; 0 if none does.

    With `itself`, `start` is the first that is looked at.
    """
    nodes, at = timeline.nodes, timeline.place_of(start)
    first = (at if at >= 0 else len(nodes)) - 1 if backward else at + (not itself or at < 0)
    ahead = (nodes[(first - i if backward else first + i) % len(nodes)] for i in range(len(nodes)))
    return next((node for node in ahead if matches(timeline.info(node))), 0)


def event_number(timeline: Timeline, text: str) -> int:
    """The event number `text` says, if there is such an event."""
    if not re.fullmatch(r"\d{1,18}", text) or int(text) > len(timeline):
        raise GvizError(
            f"there is no event {clipped(text, 20)}", hint=f"events go from 0 to {len(timeline)}", exit_code=2
        )
    return int(text)


def made_bad(info: NodeInfo) -> bool:
    """Whether a node's value held nan or inf when it was made."""
    stats = (output.value.statistics() for output in info.created.outputs if output.value is not None)
    return any(known is not None and known.nan + known.inf > 0 for known in stats)


def _by_number(timeline: Timeline, text: str) -> Matches:
    number = node_number(timeline, text[1:])
    return lambda info: info.node == number


def node_number(timeline: Timeline, text: str) -> int:
    """The node number `text` says, if there is such a node."""
    number = int(text) if re.fullmatch(r"\d{1,18}", text) else 0
    if number not in timeline:
        raise GvizError(f"there is no node #{clipped(text, 20)}", hint="the tape lists the nodes", exit_code=2)
    return number
