"""How the value of one node was computed: its op's formula with the numbers its inputs had then.

Everything is read from the timeline; a formula is the op's own text with numbers put in, never evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gviz.events import OpSeen, StorageWritten
from gviz.explain.names import op_title, symbol
from gviz.explain.substitute import attribute_word, named_word, with_numbers, word
from gviz.plain_text import shown
from gviz.trace.log import expect
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
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
    """How a node's value came to be: `text` is the op's formula with the numbers in it (empty for a leaf)."""

    node: int
    text: str
    operands: tuple[Operand, ...]
    attributes: tuple[tuple[str, str], ...]
    result: Value | None
    event: int


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
    text = _formula(info, operands, attributes, result) if info.created.kind == "op" else ""
    return Computation(info.node, text, operands, attributes, result, at)


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


def _formula(
    info: NodeInfo, operands: tuple[Operand, ...], attributes: tuple[tuple[str, str], ...], result: Value | None
) -> str:
    names = {operand.parameter: _operand_word(operand) for operand in operands}
    if info.op.formula:
        text = with_numbers(shown(info.op.formula), {**attribute_words(attributes), **names})
    else:
        extra = [f"{name}={value}" for name, value in attributes]
        text = f"{op_title(info)}({', '.join([*map(_operand_word, operands), *extra])})"
    return text if result is None else f"{text} = {word(result, '').strip()}"


_LEFT_OUT = {"dim": "all dims", "correction": "1"}
"""What these arguments stand for where the program gave none, and None was recorded."""


def attribute_words(attributes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The word for each argument of an op in its formula and rules."""
    return {name: _LEFT_OUT.get(name, value) if value == "None" else value for name, value in attributes}


def _operand_word(operand: Operand) -> str:
    return named_word(operand.value, operand.name)
