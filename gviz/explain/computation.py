"""How the value of one node was computed: its op's formula with the numbers its inputs had then.

Everything is read from the timeline; a formula is the op's own text with numbers put in, never evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import OpSeen, StorageWritten
from gviz.explain.names import op_title, symbol
from gviz.explain.substitute import attribute_word, is_small, named_word, shapes_in, with_numbers
from gviz.numbers import shape_text
from gviz.plain_text import shown
from gviz.trace.log import expect
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.value_text import short
from gviz.values import Value


@dataclass(frozen=True, slots=True)
class Operand:
    """One input of a node: which output of which node, under which parameter name, and its value when it was used.

    `born` is the event that made that node. Of an input whose origin is not known both are 0.
    """

    slot: int
    parameter: str
    node: int
    output_nr: int
    name: str
    born: int
    value: Value | None


@dataclass(frozen=True, slots=True)
class Computation:
    """How a node's value came to be: the op's `formula` with few numbers in it and many by their name (empty for a
    leaf), and the `shapes` of these."""

    node: int
    formula: str
    shapes: str
    operands: tuple[Operand, ...]
    attributes: tuple[tuple[str, str], ...]
    result: Value | None
    event: int

    @property
    def text(self) -> str:
        """The formula, what it gave, and the shapes: ``x @ W = [1 2 3], with W (8,3)``; empty for a leaf."""
        shapes = f", with {self.shapes}" if self.shapes else ""
        return f"{self.formula}{_gave(self.result)}{shapes}" if self.formula else ""

    @property
    def brief(self) -> str:
        """The formula, and what it gave if that is few numbers."""
        return f"{self.formula}{_gave(self.result if self.result is not None and is_small(self.result) else None)}"


def _gave(result: Value | None) -> str:
    if result is None:
        return ""
    told = result.size == 0 or result.statistics() is not None
    return f" = {short(result).removeprefix('! ') if told else shape_text(result.shape)}"


def computation(timeline: Timeline, node: int, again: int = 0) -> Computation:
    """How the node's value was computed, with the values its inputs had then; `again` is the event of a replay."""
    return timeline.once(_computed_again, again) if again else timeline.once(_computation, node)


def _computed_again(timeline: Timeline, seq: int) -> Computation:
    info = timeline.info(expect(timeline, seq, StorageWritten).node)
    return _computed(timeline, info, seq, timeline.held(info.node, 0, seq))


def _computation(timeline: Timeline, node: int) -> Computation:
    info = timeline.info(node)
    return _computed(timeline, info, info.born, info.created.outputs[0].value if info.created.outputs else None)


def _computed(timeline: Timeline, info: NodeInfo, at: int, result: Value | None) -> Computation:
    operands = tuple(_operands(timeline, info, at))
    attributes = tuple((shown(name), attribute_word(value)) for name, value in info.created.attrs)
    formula, shapes = _formula(info, operands, attributes) if info.created.kind == "op" else ("", "")
    return Computation(info.node, formula, shapes, operands, attributes, result, at)


def _operands(timeline: Timeline, info: NodeInfo, at: int) -> Iterator[Operand]:
    before = timeline.at(at - 1)
    for slot, (node, output_nr) in enumerate(info.created.inputs):
        state = before.state(node)
        value = state.outputs[output_nr].value if state is not None and output_nr < len(state.outputs) else None
        born = timeline.info(node).born if node else 0
        yield Operand(slot, _parameter(info.op, slot), node, output_nr, symbol(timeline, node), born, value)


def _parameter(op: OpSeen, slot: int) -> str:
    """The name of the parameter that input `slot` fills; the last one takes the rest of a list."""
    if not op.slots:
        return ""
    return op.slots[min(slot, len(op.slots) - 1)]


def _formula(info: NodeInfo, operands: tuple[Operand, ...], attributes: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """The formula in the words of one moment, and the shapes of what has only its name there."""
    names = {operand.parameter: _operand_word(operand) for operand in operands}
    values = {operand.parameter: (operand.name, operand.value) for operand in operands}
    formula = shown(info.op.formula)
    if formula:
        return with_numbers(formula, {**attribute_words(attributes), **names}), shapes_in(formula, values)
    extra = [f"{name}={value}" for name, value in attributes]
    text = f"{op_title(info)}({', '.join([*map(_operand_word, operands), *extra])})"
    return text, shapes_in(" ".join(values), values)


_LEFT_OUT = {"dim": "all dims", "correction": "1", "weight": "1", "bias": "0"}
"""What these arguments stand for where the program gave none, and None was recorded."""


def attribute_words(attributes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The word for each argument of an op in its formula and rules."""
    return {name: _attribute(name, value) for name, value in attributes}


def _attribute(name: str, value: str) -> str:
    """A dimension by its number, as ``dim 1``: it is no factor."""
    if value == "None":
        return _LEFT_OUT.get(name, value)
    dims = value.strip("()").removesuffix(",")
    return f"dim{'s' * (',' in dims)} {dims}" if name == "dim" else value


def _operand_word(operand: Operand) -> str:
    return named_word(operand.value, operand.name)
