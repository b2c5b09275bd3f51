"""The computation of a node's value: the formula of its operation with the numbers that its inputs had then.

Everything is read from the timeline. A formula is the operation's own text with numbers put in, never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gviz.events import Edge, OpSeen, StorageWritten
from gviz.explain.display_names import is_mask, op_title, symbol
from gviz.explain.formula import (
    attribute_word,
    attribute_words,
    formula_text,
    is_small,
    named_word,
    shapes_in,
    with_numbers,
)
from gviz.trace.event_log import expect
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.number_text import number, shape_text
from gviz.values.plain_text import shown
from gviz.values.value import Value
from gviz.values.value_text import short

_MOST_RESULTS = 4
"""The most outputs of one operation whose values are shown after its formula."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One input of a node: an output of another node, the name of the parameter, and its value when it was used.

    `born` is the event that made the other node. If the origin of an input is unknown, both are 0.
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
    """The computation of a node's value.

    `formula` is the op's formula with few numbers in it and many by their name; it is empty for a leaf. `shapes` are
    those of the names. `results` are the outputs, by name if there are several.
    """

    node: int
    formula: str
    shapes: str
    operands: tuple[Operand, ...]
    attributes: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, Value | None], ...]
    event: int

    @property
    def result(self) -> Value | None:
        """The first output."""
        return self.results[0][1] if self.results else None

    @property
    def text(self) -> str:
        """Return the formula, the results, and the shapes: ``x @ W = [1 2 3], with W (8,3)``; empty for a leaf."""
        return f"{self.without_shapes}, with {self.shapes}" if self.formula and self.shapes else self.without_shapes

    @property
    def without_shapes(self) -> str:
        """Return the formula and the results; empty for a leaf."""
        return f"{self.formula}{_result_text(self.results)}" if self.formula else ""

    @property
    def brief(self) -> str:
        """Return the formula, and the result if it consists of few numbers."""
        few = all(result is not None and is_small(result) for _, result in self.results)
        return f"{self.formula}{_result_text(self.results if few and len(self.results) <= _MOST_RESULTS else ())}"


def _result_text(results: Sequence[tuple[str, Value | None]]) -> str:
    texts = [f"{name} {_value(result)}".lstrip() for name, result in results[:_MOST_RESULTS] if result is not None]
    more = [f"{len(results) - _MOST_RESULTS} more"] if len(results) > _MOST_RESULTS else []
    return f" = {', '.join([*texts, *more])}" if texts else ""


def _value(result: Value) -> str:
    is_known = result.size == 0 or result.statistics() is not None
    return short(result).removeprefix("! ") if is_known else shape_text(result.shape)


def computation(timeline: Timeline, node: int, again: int = 0) -> Computation:
    """Return how the node's value was computed, with its inputs' values then; `again` is the event of a replay."""
    return timeline.once(_computed_again, again) if again else timeline.once(_computation, node)


def _computed_again(timeline: Timeline, seq: int) -> Computation:
    info = timeline.info(expect(timeline, seq, StorageWritten).node)
    values = [timeline.memory_value(info.node, nr, seq) for nr in range(len(info.created.outputs))]
    return _computed(timeline, info, seq, values)


def _computation(timeline: Timeline, node: int) -> Computation:
    info = timeline.info(node)
    return _computed(timeline, info, info.born, [output.value for output in info.created.outputs])


def _computed(timeline: Timeline, info: NodeInfo, at: int, values: Sequence[Value | None]) -> Computation:
    operands = tuple(_operands(timeline, info, at))
    attributes = tuple((shown(name), attribute_word(value)) for name, value in info.created.attrs)
    formula, shapes = _formula(info, operands, attributes) if info.created.kind == "op" else ("", "")
    is_named = len(values) > 1 and len(info.variables) > 1  # a single name may belong to any output, or to all
    results = tuple((info.output_name(nr) if is_named else "", value) for nr, value in enumerate(values))
    return Computation(info.node, formula, shapes, operands, attributes, results, at)


def _operands(timeline: Timeline, info: NodeInfo, at: int) -> Iterator[Operand]:
    before = timeline.at(at - 1)
    for slot, (node, output_nr) in enumerate(info.created.inputs):
        state = before.state(node)
        value = state.outputs[output_nr].value if state is not None and output_nr < len(state.outputs) else None
        born = timeline.info(node).born if node else 0
        yield Operand(slot, parameter(info.op, slot), node, output_nr, symbol(timeline, node, output_nr), born, value)


def parameter(op: OpSeen, slot: int) -> str:
    """Return the name of the parameter that input `slot` fills; the last one takes the rest of a list."""
    if not op.slots:
        return ""
    return op.slots[min(slot, len(op.slots) - 1)]


def _formula(info: NodeInfo, operands: tuple[Operand, ...], attributes: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Return the formula with the names and numbers of one moment, and the shapes of the names in it."""
    names = {operand.parameter: _operand_word(operand) for operand in operands}
    values = {operand.parameter: (operand.name, operand.value) for operand in operands}
    formula = formula_text(info)
    is_random = formula.isidentifier() and formula not in {*names, *dict(attributes)}  # what a call drew by itself
    if formula and not is_random:
        return with_numbers(formula, {**attribute_words(attributes), **names}), shapes_in(formula, values)
    extra = [f"{name}={value}" for name, value in attributes]
    text = f"{op_title(info)}({', '.join([*map(_operand_word, operands), *extra])})"
    return text, shapes_in(" ".join(values), values)


def _operand_word(operand: Operand) -> str:
    return named_word(operand.value, operand.name)


# Saved tensors

_WORD = re.compile(r"\w+")


def saved_names(timeline: Timeline, node: int) -> tuple[str, ...]:
    """Return the tensors that a node saves, by the names in its operation: for ``x * 2`` only the 2."""
    info = timeline.info(node)
    then = timeline.at(info.born)

    def requires_grad(source: int) -> bool:
        state = then.state(source)
        return state is None or state.requires_grad

    return tuple(info.op.saved[place] for place in saved_places(info, requires_grad))


def saved_places(info: NodeInfo, requires_grad: Callable[[int], bool]) -> Iterator[int]:
    """Yield the indices of the tensors that a node saves among all that its operation may save.

    `requires_grad` is called with the inputs of the node. A tensor that no rule names is always saved.
    """
    if info.created.kind != "op" or info.created.untracked:
        return
    rules = [set(_WORD.findall(rule)) for rule in info.op.rules]
    needed: set[str] = set()
    for (node, _), rule in zip(info.created.inputs, rules, strict=False):
        if node and requires_grad(node):
            needed |= rule
    for place, name in enumerate(info.op.saved):
        if name in needed or not any(name in rule for rule in rules):
            yield place


LONGEST_FORWARD = 200
"""The most nodes that the forward of a custom function is looked through for a saved tensor."""


def saved_edge(timeline: Timeline, info: NodeInfo, name: str) -> Edge | None:
    """Return the output that a node saves under a name; None for a tensor that only its operation knows.

    A custom function may also save what its forward computed, under the name of a variable there.
    """
    for slot, edge in reversed([*enumerate(info.created.inputs)]):
        if parameter(info.op, slot) == name:
            return edge if edge[0] else None
    if name == "result":
        return info.node, 0
    for node in range(info.node - 1, max(info.node - LONGEST_FORWARD, 0), -1) if info.op.is_of_program else ():
        if node not in timeline.nodes:
            return None
        inner, outer = timeline.info(node), info.frames
        if not outer or len(inner.frames) <= len(outer) or inner.frames[-len(outer) :] != outer:
            return None
        if inner.name == name:
            return node, 0
    return None


# Dropout


def dropout_effect(timeline: Timeline, node: int) -> str:
    """Return ``4 of 10 elements became 0, the others times 1/(1 - p) = 1.429``; empty if the node's mask is unknown."""
    created = timeline.nodes.created(node)
    p = dict(created.attrs).get("p")
    source = created.inputs[1][0] if len(created.inputs) == 2 else 0
    drawn = timeline.nodes.created(source) if source else None
    known = drawn.first_value if drawn is not None and is_mask(drawn) else None
    stats = None if known is None else known.statistics()
    if known is None or stats is None or not isinstance(p, float | int):
        return ""
    result = created.first_value
    what = "elements" if result is None or result.shape == known.shape else "channels"
    if p == 1:
        return "everything became 0 (p 1)"
    return f"{stats.zero} of {known.size} {what} became 0, the others times 1/(1 - p) = {number(1 / (1 - p))}"
