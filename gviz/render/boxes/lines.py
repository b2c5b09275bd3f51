"""The lines of a graph at one moment: what has flowed over each, and what stands over it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gviz.events import GradFlowed
from gviz.render.boxes.links import Link, LinkKind
from gviz.render.boxes.rows import Now
from gviz.render.boxes.tensors import DIGITS, Numbers, grid
from gviz.value_text import share
from gviz.values import Value

EdgeState = Literal["pending", "flowed", "now", "cut"]


@dataclass(frozen=True, slots=True)
class Edge:
    """One line, in the direction of its arrow: a gradient edge leads from the user of a tensor to its maker.

    `output_nr` counts the outputs of the tensor's maker, `slot` the inputs of its user (-1 where it is none). Where
    several gradients meet, the numbers of a small one are the `grid` of its line; who cannot draw that shows `text`.
    """

    source: str
    target: str
    kind: LinkKind
    output_nr: int
    slot: int
    label: str
    states: tuple[EdgeState, ...]
    grid: Numbers = ()

    @property
    def text(self) -> str:
        """What stands over the line, in one line of text."""
        rows = " ".join(f"[{' '.join(row)}]" for row in self.grid)
        return f"{ADDED} {f'[{rows}]' if len(self.grid) > 1 else rows}" if rows else self.label


ADDED = "+="
"""What stands before a part of a gradient."""


def edge(link: Link, now: Now) -> Edge:
    """A line at the moment."""
    if link.kind == "gradient":
        return _gradient(link, now)
    born = any(now.states.get(user) is not None for user, _ in link.uses)
    held: tuple[EdgeState, ...] = () if born else ("pending",)
    if not link.tracked:
        held = (*held, "cut")
    return Edge(link.source, link.target, link.kind, link.output_nr, link.slot, link.label, held)


def _gradient(link: Link, now: Now) -> Edge:
    """What has flowed: one use says how much, a line that stands for several only that."""
    found = [now.contribution(link.node, link.output_nr, user, slot) for user, slot in link.uses]
    parts = [part for part in found if part is not None]
    alone = parts[0].value if len(found) == len(parts) == 1 else None
    label = f"{ADDED} {share(alone, 14, DIGITS)}" if alone is not None else ""
    numbers = _addend(link, alone, now) if alone is not None else ()
    held: tuple[EdgeState, ...] = ("flowed",) if parts else ("pending",)
    if brings(now, link.node, link.output_nr, link.uses):
        held = ("flowed", "now")
    return Edge(link.target, link.source, "gradient", link.output_nr, link.slot, label, held, numbers)


def _addend(link: Link, part: Value, now: Now) -> Numbers:
    """The numbers of a small part that is added to others; one part alone is the sum, which stands in the box."""
    state = now.states[link.node]
    shape = now.options.grid(part.shape) if state is not None and state.outputs[link.output_nr].expected > 1 else None
    return grid(part, shape) if shape else ()


def brings(now: Now, node: int, output_nr: int, uses: Iterable[tuple[int, int]]) -> bool:
    """Whether this event brings an output the gradient of one of its uses."""
    event = now.moment.event
    if not isinstance(event, GradFlowed) or (event.node, event.output_nr) != (node, output_nr):
        return False
    return any((event.source, event.slot) == use for use in uses)
