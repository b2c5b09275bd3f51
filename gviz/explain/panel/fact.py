"""What a panel is made of: facts with a name, and texts whose style is a word and which may lead to an event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gviz.explain.shares import Share
from gviz.trace.moment import Moment
from gviz.trace.state import NodeInfo, NodeState
from gviz.trace.timeline import Timeline

LIST = 8
"""Users, callers and contributions beyond so many are counted."""


class Part(NamedTuple):
    """A text, its style (as in `gviz.tui.lines`), the event it leads to (0: none), and how it reads in less room."""

    text: str
    style: str = ""
    event: int = 0
    close: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One row: its name and what it says. `about` numbers the output, input or user that it is about.

    A `further` row (above 0) belongs to the one before it.
    """

    name: str
    parts: tuple[Part, ...]
    about: int = 0
    further: int = 0


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node at a moment, and how much of it is to be said.

    In `full` every digit is, and what a panel in which nothing can be followed would leave unsaid. A file name may
    have `room` characters. With a `branch` the numbers that it sends (by input) stand beside the recorded ones.
    """

    timeline: Timeline
    moment: Moment
    node: int
    state: NodeState | None
    full: bool = False
    room: int = 60
    branch: Mapping[int, Share] | None = None

    @property
    def info(self) -> NodeInfo:
        """How the node was made."""
        return self.timeline.info(self.node)


def event(seq: int) -> Part:
    """An event by its number, ``event 12``."""
    return Part(f"event {seq}", "key", seq)


def listed(nodes: Sequence[int], named: Callable[[int], Part]) -> Iterator[Part]:
    """Nodes as they are named, with commas between them; of very many the first, and how many more there are."""
    for at, node in enumerate(nodes[:LIST]):
        if at:
            yield Part(", ")
        yield named(node)
    if len(nodes) > LIST:
        yield Part(f" and {len(nodes) - LIST} more", "muted")
