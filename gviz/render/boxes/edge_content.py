"""What a line of a picture shows at one moment: its states, the gradient that flows along it, and the hooks on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich.cells import cell_len

from gviz.events import GradFlowed
from gviz.explain.hook_effects import HookEffect, hooks_after_rule
from gviz.render.boxes.box_size import LEAF_NUMBER
from gviz.render.boxes.box_text import HOOK, NORM, hook_names
from gviz.render.boxes.edges import Link, LinkKind, is_write
from gviz.render.boxes.shown_moment import Now
from gviz.render.boxes.tensor_pictures import DIGITS, Numbers, grid
from gviz.trace.graph_state import Contribution, NodeInfo
from gviz.values.plain_text import shown
from gviz.values.value import Value
from gviz.values.value_text import share

EdgeState = Literal["pending", "flowed", "now", "cut"]


@dataclass(frozen=True, slots=True)
class Edge:
    """One line, in the direction of its arrow: a gradient edge leads from the user of a tensor to its maker.

    `output_nr` is the number of an output of the tensor's maker, `slot` is the number of an input of its user (-1: not
    an input). Where several gradients meet, the numbers of a small one are the `grid` of its line; renderers that
    cannot draw that show `text`.
    """

    source: str
    target: str
    kind: LinkKind
    output_nr: int
    slot: int
    label: str
    states: tuple[EdgeState, ...]
    grid: Numbers = ()
    symbol: str = ""
    whole: bool = False
    hooks: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def is_write(self) -> bool:
        """Return whether the target only writes the source: the arrow leads to the source."""
        return is_write(self.label)

    @property
    def text(self) -> str:
        """Return the label of the line in one line of text."""
        rows = " ".join(f"[{' '.join(row)}]" for row in self.grid)
        return f"{ADDED} {f'[{rows}]' if len(self.grid) > 1 else rows}" if rows else self.label

    @property
    def sign(self) -> str:
        """Return what the numbers of the line are: ``∂L/∂h =``, or ``∂L/∂h +=`` for one of several contributions."""
        if self.whole:
            return f"{self.symbol} =" if self.symbol else ""
        return f"{self.symbol} {ADDED}".lstrip()

    @property
    def formula(self) -> str:
        """Return the label as mathematics: ``∂L/∂h = 3``, ``|∂L/∂h| = 0.52``, ``∂L/∂h += 3``."""
        number = self.label.removeprefix(ADDED).strip()
        if not number or self.kind != "gradient":
            return self.label
        if number.startswith(NORM) and self.symbol and self.whole:
            return f"|{self.symbol}| = {number.removeprefix(NORM).strip()}"
        return f"{self.sign} {number}".lstrip()

    @property
    def hook_text(self) -> str:
        """Return ``hook clamp``: the hooks that changed this gradient; empty if there is none."""
        return f"{HOOK} {', '.join(self.hooks)}" if self.hooks else ""


ADDED = "+="
"""The sign before a contribution to a gradient."""

LONGEST_SYMBOL = 10
"""The most characters of a name in the symbol of a gradient."""


def edge(link: Link, now: Now) -> Edge:
    """Return a line at the moment."""
    if link.kind == "gradient":
        return _gradient(link, now)
    born = any(now.states.get(user) is not None for user, _ in link.uses) or 0 < link.since <= now.moment.n
    states: tuple[EdgeState, ...] = () if born else ("pending",)
    if not link.tracked and not is_write(link.label):
        states = (*states, "cut")
    return Edge(link.source, link.target, link.kind, link.output_nr, link.slot, link.label, states)


def _gradient(link: Link, now: Now) -> Edge:
    """Return a gradient line: with its number if it represents one use, without a number if it represents several."""
    contributions = [now.contribution(link.node, link.output_nr, user, slot) for user, slot in link.uses]
    parts = [part for part in contributions if part is not None]
    single = parts[0].value if len(contributions) == len(parts) == 1 else None
    label = f"{ADDED} {share(single, LEAF_NUMBER, DIGITS)}" if single is not None else ""
    numbers = _addend(link, single, now) if single is not None else ()
    states: tuple[EdgeState, ...] = ("flowed",) if parts else ("pending",)
    if brings(now, link.node, link.output_nr, link.uses):
        states = ("flowed", "now")
    effects = _hooks(link, parts, now) if parts else []
    state = now.states[link.node]
    drawn = Edge(
        link.target,
        link.source,
        "gradient",
        link.output_nr,
        link.slot,
        label,
        states,
        numbers,
        symbol=gradient_symbol(now.timeline.info(link.node), now.result),
        whole=state is not None and state.outputs[link.output_nr].expected == 1 and not effects,
    )
    if not now.options.marks:
        return drawn
    return replace(drawn, hooks=hook_names(effects), remarks=tuple(hook_words(effect, now) for effect in effects))


def hook_words(effect: HookEffect, now: Now) -> str:
    """Return what a hook changed, and where the program registered it."""
    return f"{effect.words(now.timeline)}{effect.registered(now.timeline)}"


def symbol_start(result: str) -> str:
    """Return the sign before the name of a tensor for its gradient: ``∂L/∂`` for the result L."""
    return f"∂{result}/∂"


def gradient_symbol(info: NodeInfo, result: str) -> str:
    """Return ``∂L/∂h`` for the gradient of the result L in a tensor that has a short name, and else an empty text."""
    name = info.name if cell_len(info.name) <= LONGEST_SYMBOL else info.name.rpartition(".")[2]
    if not name or cell_len(name) > LONGEST_SYMBOL or info.returned > 1:
        return ""
    return f"{symbol_start(result)}{shown(name)}"


def _hooks(link: Link, parts: Sequence[Contribution], now: Now) -> list[HookEffect]:
    """Return the hooks that changed what a line brings: those of its end, and those behind the rule of its start."""
    effects = [one for one in now.hooks(link.node) if one.ran.output_nr == link.output_nr]
    for part in parts:
        if now.hooked(part.source):
            effects += hooks_after_rule(now.timeline, part)
    return effects


def _addend(link: Link, part: Value, now: Now) -> Numbers:
    """Return the numbers of a small contribution if there are others.

    A single contribution is already in the box as the sum.
    """
    state = now.states[link.node]
    shape = now.options.grid(part.shape) if state is not None and state.outputs[link.output_nr].expected > 1 else None
    return grid(part, shape) if shape else ()


def brings(now: Now, node: int, output_nr: int, uses: Iterable[tuple[int, int]]) -> bool:
    """Return whether this event brings an output the gradient of one of its uses."""
    event = now.moment.event
    if not isinstance(event, GradFlowed) or (event.node, event.output_nr) != (node, output_nr):
        return False
    return any((event.source, event.slot) == use for use in uses)
