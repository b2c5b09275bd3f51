"""The moment that a picture shows: the states of its nodes, and what the event has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite

from msgspec.structs import replace as replace_struct

from gviz.events import GradAccumulated, GradFlowed, HookRan
from gviz.explain.hook_effects import HookEffect, hooks_of
from gviz.render.boxes.box_row import Style
from gviz.render.boxes.graph_options import Options
from gviz.render.boxes.tensor_pictures import DIGITS
from gviz.trace.graph_state import Contribution, NodeInfo, NodeState, OutputState
from gviz.trace.timeline import Moment, Timeline
from gviz.values.value import Value
from gviz.values.value_text import NO_VALUE, added, bad_text, share, short, short_meant

ValueForm = Callable[[Value | None, int, int], str]
"""Writes a value in a number of characters, with a number of digits."""


RESULT = "L"
"""The usual sign for the result of a backward pass in the names of gradients: ``∂L/∂h``."""


@dataclass(frozen=True, slots=True)
class Now:
    """A moment, and the one before it, which shows what the event has changed.

    `first_bad` is the node in which the first nan or inf has appeared by now, or 0. `other` are the states in a
    what-if, if there is one (see `rows_with_comparison`). `after_pass` is set if a pass of the iteration is over; then
    leaves without a gradient are marked. `shown` are the nodes that are in a box of the whole picture. There may be no
    rows for gradients of operations (`gradients`) and of leaves (`leaf_gradients`). `result` is the sign for the result
    of the passes in the names of gradients.
    """

    timeline: Timeline
    moment: Moment
    before: Moment
    states: Mapping[int, NodeState | None]
    first_bad: int
    options: Options = field(default_factory=Options)
    other: Mapping[int, NodeState | None] | None = None
    after_pass: bool = False
    shown: frozenset[int] = frozenset()
    gradients: bool = True
    leaf_gradients: bool = True
    result: str = RESULT
    _uses: dict[tuple[int, int], dict[tuple[int, int], Contribution]] = field(default_factory=dict)

    @property
    def nothing(self) -> str:
        """The text for a gradient that has not arrived. A figure has no legend, so its words are plain."""
        return NOT_YET if not (self.options.numbered or self.after_pass) else NO_VALUE

    def contribution(self, node: int, output_nr: int, user: int, slot: int) -> Contribution | None:
        """Return the contribution that one use of an output has sent back. Fast even with thousands of uses."""
        uses = self._uses.get((node, output_nr))
        if uses is None:
            state = self.states[node]
            parts = state.outputs[output_nr].parts if state is not None else ()
            # In reverse order, so that the first of two contributions of one use wins.
            uses = self._uses[node, output_nr] = {(part.source, part.slot): part for part in tuple(parts)[::-1]}
        return uses.get((user, slot))

    def receives(self, node: int) -> bool:
        """Return whether this event brings a gradient to a node."""
        return isinstance(self.moment.event, GradFlowed) and self.moment.event.node == node

    def own(self, info: NodeInfo, output: OutputState, output_nr: int) -> OutputState:
        """Return an output with the version that its node made, if the box of a later write shows the newer one.

        It does if it has the same shape. A write into a part of the tensor does not show the whole, so the box of the
        tensor shows what is in memory now.
        """
        first, writer = info.created.outputs[output_nr], output.written_by
        if not self.options.marks or writer == info.node or writer not in self.shown:
            return output
        if self.timeline.info(writer).born > self.moment.n:
            return output
        written = self.timeline.info(writer).created.first_value
        if first.value is None or written is None or written.shape != first.value.shape:
            return output
        return replace_struct(output, value=first.value, version=first.version, written_by=info.node)

    def hooked(self, node: int) -> bool:
        """Return whether a hook ran at a node in this iteration. Only pictures show hooks."""
        return self.options.marks and node in self._ran

    @property
    def has_hooks(self) -> bool:
        """Whether any hook ran in this iteration, and the picture shows hooks."""
        return self.options.marks and bool(self._ran)

    @property
    def _ran(self) -> frozenset[int]:
        return self.timeline.once(_hook_nodes, self.timeline.iteration_at(self.moment.n).end)

    def hooks(self, node: int) -> list[HookEffect]:
        """Return the hooks that have changed a node's incoming gradients by this moment, in its last pass."""
        state = self.states.get(node)
        if state is None or not self.hooked(node):
            return []
        effects = (
            effect
            for output_nr in range(len(state.outputs))
            for effect in hooks_of(self.timeline, node, output_nr, state.pass_nr, self.moment.n)
        )
        return [effect for effect in effects if effect.changed]

    def write(self, form: ValueForm, value: Value | None, width: int) -> str:
        """Return a value in a form of `gviz.values.value_text`; a plain number has the decimals that the user chose."""
        array = value.array() if value is not None and value.size == 1 else None
        if self.options.decimals is not None and array is not None and array.dtype.kind in "fiu":
            number = float(array.reshape(())[()])
            text = f"{number:.{self.options.decimals}f}"
            if isfinite(number) and len(text) <= width and (number == 0 or float(text) != 0):
                return text
        return form(value, width, DIGITS)

    def value_form(self, node: int, output: OutputState) -> tuple[ValueForm, Style]:
        """Return how an output of a node is written, and the style: infinities of a mask are no error."""
        if not bad_text(output.value):
            return short, "value"
        return (short_meant, "value") if is_masked(self.timeline, node, output) else (short, "bad")

    def flowing(self, node: int, width: int, output_nr: int | None = None) -> str:
        """Return what this event adds to the incoming gradient of an output, ``1 += 3``, or else an empty text.

        Without an output number it may be any output of the node.
        """
        event = self.moment.event
        if not isinstance(event, GradFlowed) or event.node != node or output_nr not in (None, event.output_nr):
            return ""
        before = self.before.state(node) if event.total else None
        return _addition(before.outputs[event.output_nr].incoming if before is not None else None, event.part, width)

    def accumulating(self, node: int, width: int) -> str:
        """Return what this event adds to the ``.grad`` of a leaf, ``1 += 3``, or else an empty text."""
        event = self.moment.event
        if not isinstance(event, GradAccumulated) or event.node != node or event.value is None:
            return ""
        before = self.before.state(node)
        return _addition(before.outputs[0].grad if before is not None else None, event.part, width)


def is_masked(timeline: Timeline, node: int, output: OutputState) -> bool:
    """Return whether an output has infinities, and the program wrote them on purpose, for example into a mask."""
    text = bad_text(output.value)
    return bool(text) and "nan" not in text and timeline.error_index.is_masked(output.written_by or node)


NOT_YET = "not yet"
"""The text for a gradient that may still arrive, in figures."""


def _hook_nodes(timeline: Timeline, end: int) -> frozenset[int]:
    """Return the nodes at which hooks ran in the iteration that ends with an event."""
    start = timeline.iteration_at(end).start
    return frozenset(ran.node for _, ran in timeline.select((HookRan,), start, end + 1))


def _addition(old: Value | None, part: Value, width: int) -> str:
    """Return ``1 += 3`` with as many digits as there is room for; ``+= 3`` for the first contribution."""
    return f"+= {share(part, max(width - 3, 1), DIGITS)}" if old is None else added(old, part, None, width, DIGITS)
