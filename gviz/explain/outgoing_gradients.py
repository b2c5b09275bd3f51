"""The outgoing gradients of a node: its backward rule with numbers, and the sum at the input to which each is added.

Everything is read from the timeline. A rule is the operation's own text with numbers put in, never evaluated.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from gviz.events import Edge, GradFlowed, StepFinished, StepStarted, left
from gviz.explain.display_names import symbol
from gviz.explain.formula import attribute_words, rule_text, shapes_in, value_word, with_numbers
from gviz.explain.value_computation import Computation, Operand, computation
from gviz.trace.event_log import expect
from gviz.trace.graph_state import NodeInfo
from gviz.trace.node_gradients import step_grads
from gviz.trace.timeline import Moment, Timeline
from gviz.values.value import Value


@dataclass(frozen=True, slots=True)
class OutgoingGradient:
    """The outgoing gradient of a node for one of its inputs in one pass.

    `rule` is the op's rule with the program's names. `numbers` is the rule with few numbers in it and many by their
    name, whose shapes are `shapes`.

    Once it has been sent (by `event`, before that 0), `part` was added to `before` (None: it was the first), with the
    result `after`, as contribution `nth` of `expected`. `reduced` names the broadcast dimensions that are summed away.
    `missing` says why nothing will ever be sent.
    """

    operand: Operand
    rule: str
    numbers: str
    part: Value | None
    before: Value | None
    after: Value | None
    nth: int
    expected: int
    reduced: str
    missing: str
    event: int
    shapes: str = ""

    @property
    def summed(self) -> str:
        """Return the rule. For an input that was broadcast it includes the sum that restores its shape."""
        if not self.reduced or not self.rule:
            return self.rule
        rule = self.rule if re.fullmatch(r"\w+", self.rule) else f"({self.rule})"
        return f"sum of {rule} over {self.reduced}"


@dataclass(frozen=True, slots=True)
class _Rule:
    """An op's rule for one input: with names, with numbers, the dimensions it is summed over, and shapes."""

    text: str
    numbers: str
    reduced: str
    shapes: str


def outgoing_gradients(timeline: Timeline, moment: Moment, node: int) -> tuple[OutgoingGradient, ...]:
    """Return the outgoing gradients of a node for each input in the graph, as far as they are sent at `moment`."""
    started = step_event(timeline, moment, node)
    sent = dict(_sent(timeline, moment, node, started))
    rules = timeline.once(_rules_run, started) if started else timeline.once(_rules, node)
    operands = computation(timeline, node).operands
    return tuple(
        timeline.once(outgoing_gradient, sent[operand.slot])
        if operand.slot in sent
        else _unsent(timeline, moment, node, operand, rule)
        for operand, rule in zip(operands, rules, strict=True)
    )


def outgoing_gradient(timeline: Timeline, seq: int) -> OutgoingGradient:
    """Return the outgoing gradient of event `seq`, a `GradFlowed` from a node."""
    event = expect(timeline, seq, GradFlowed)
    node, slot = event.source, event.slot
    started = step_event(timeline, timeline.at(seq), node)
    rule = (timeline.once(_rules_run, started) if started else timeline.once(_rules, node))[slot]
    operand = computation(timeline, node).operands[slot]
    before, nth, expected = _sum_before(timeline, seq, (operand.node, operand.output_nr))
    after = left(event, "arrived")
    return OutgoingGradient(
        operand, rule.text, rule.numbers, event.part, before, after, nth, expected, rule.reduced, "", seq, rule.shapes
    )


def _unsent(timeline: Timeline, moment: Moment, node: int, operand: Operand, rule: _Rule) -> OutgoingGradient:
    missing = _missing(moment, timeline.info(node), operand, rule.text)
    return OutgoingGradient(
        operand, rule.text, rule.numbers, None, None, None, 0, 0, rule.reduced, missing, 0, rule.shapes
    )


def _rules(timeline: Timeline, node: int) -> tuple[_Rule, ...]:
    """Return the rules of a node before they run."""
    return _read_rules(timeline, node, ())


def _rules_run(timeline: Timeline, started: int) -> tuple[_Rule, ...]:
    """Return the rules of a node as they ran by event `started`."""
    event = expect(timeline, started, StepStarted)
    return _read_rules(timeline, event.node, step_grads(timeline, started))


def _read_rules(timeline: Timeline, node: int, grads: tuple[Value | None, ...]) -> tuple[_Rule, ...]:
    info, computed = timeline.info(node), computation(timeline, node)
    values = _rule_values(timeline, info, computed, grads)
    words = {
        **attribute_words(computed.attributes),
        **{name: value_word(value, called) for name, (called, value) in values.items()},
    }
    names = {operand.parameter: operand.name or value_word(operand.value, "") for operand in computed.operands}
    names |= {"result": symbol(timeline, node), **_argument_words(info, computed)}
    common = broadcast_shape(info, [operand.value.shape if operand.value else None for operand in computed.operands])
    return tuple(
        _Rule(
            with_numbers(text, names),
            with_numbers(_counted(timeline, text, info, operand), words),
            _reduced(operand, common),
            shapes_in(text, values),
        )
        for operand, text in [(operand, rule_text(info, operand.slot)) for operand in computed.operands]
    )


def _rule_values(
    timeline: Timeline, info: NodeInfo, computed: Computation, grads: tuple[Value | None, ...]
) -> dict[str, tuple[str, Value | None]]:
    """Return the word and the value of every name in a rule; `g` only once the gradient has arrived."""
    values = {operand.parameter: (operand.name, operand.value) for operand in computed.operands}
    values["result"] = symbol(timeline, info.node), computed.result
    present = [grad for grad in grads if grad is not None]
    if len(grads) == 1 and present:
        values["g"] = "g", present[0]
    return values


def step_event(timeline: Timeline, moment: Moment, node: int) -> int:
    """Return the event at which the node's rule last ran by the moment, in its latest pass; 0 if it has not."""
    state = moment.state(node)
    if state is None or not state.pass_nr:
        return 0
    events = timeline.events_of(node)
    for seq in (events[at] for at in range(bisect_right(events, moment.n) - 1, -1, -1)):
        event = timeline.event(seq)
        if isinstance(event, StepStarted) and event.node == node:
            return seq if event.pass_nr == state.pass_nr else 0
    return 0


def _argument_words(info: NodeInfo, computed: Computation) -> dict[str, str]:
    """Return the words for arguments that are numbers, ``exponent`` as 2, and for dimensions."""
    words = attribute_words(computed.attributes)
    numbers = [
        name for name, value in info.created.attrs if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return {name: words[name] for name in (*numbers, "dim") if name in words}


def _sent(timeline: Timeline, moment: Moment, node: int, started: int) -> Iterator[tuple[int, int]]:
    """Yield the contributions since the step began: slot and event number."""
    if not started:
        return
    for seq in range(started + 1, moment.n + 1):
        event = timeline.event(seq)
        if isinstance(event, StepFinished) and event.node == node:
            return
        if isinstance(event, GradFlowed) and event.source == node:
            yield event.slot, seq


def _sum_before(timeline: Timeline, seq: int, edge: Edge) -> tuple[Value | None, int, int]:
    """Return the sum at the target just before event `seq`, the number of the contribution, and the expected number."""
    node, output_nr = edge
    after = timeline.at(seq).state(node)
    before = timeline.at(seq - 1).state(node)
    if after is None or before is None:
        return None, 0, 0
    arrived = after.outputs[output_nr]
    first = len(arrived.parts) <= 1
    return None if first else before.outputs[output_nr].incoming, len(arrived.parts), arrived.expected


def _counted(timeline: Timeline, rule: str, info: NodeInfo, operand: Operand) -> str:
    """Return a rule with numbers instead of words such as "count", as far as they are known."""
    for words, count in _COUNTS.items():
        if words in rule and (known := count(timeline, info, operand)) is not None:
            rule = rule.replace(words, str(known))
    return rule


def _elements_per_result(timeline: Timeline, info: NodeInfo, operand: Operand) -> int | None:
    """Return how many elements are averaged for each result."""
    result = info.created.first_value
    if operand.value is None or result is None or not result.size:
        return None
    return operand.value.size // result.size


def _targets(timeline: Timeline, info: NodeInfo, operand: Operand) -> int | None:
    """Return how many targets of a loss over classes count, as far as they are stored."""
    computed = computation(timeline, info.node)
    value = next((operand.value for operand in computed.operands if operand.parameter == "target"), None)
    array = None if value is None else timeline.array(value)
    ignored = dict(computed.attributes).get("ignore_index", "-100")
    return None if array is None else int((array != int(ignored)).sum())


def _classes(timeline: Timeline, info: NodeInfo, operand: Operand) -> int | None:
    """Return the number of classes of a loss: the second dimension, or the only one."""
    shape = operand.value.shape if operand.value is not None else ()
    return next(iter(shape[1:] or shape), None)


_COUNTS: Mapping[str, Callable[[Timeline, NodeInfo, Operand], int | None]] = {
    "number of elements": _elements_per_result,
    "size of dim": _elements_per_result,
    "number of targets": _targets,
    "number of classes": _classes,
}
"""A word in a rule -> the function that returns its number."""


def _missing(moment: Moment, info: NodeInfo, operand: Operand, rule: str) -> str:
    if info.created.untracked:
        return "not tracked"
    if not operand.node:
        return "not recorded"
    state = moment.state(operand.node)
    if state is not None and not state.requires_grad:
        return "needs no gradient"
    return "" if rule else f"the outgoing gradient of {info.op.grad_fn}" if info.op.grad_fn else "no gradient rule"


def _reduced(operand: Operand, large: Shape | None) -> str:
    """Return how the gradient of an input that was broadcast to the shape `large` is reduced to its own shape."""
    if operand.value is None or large is None or operand.value.shape == large:
        return ""
    small = operand.value.shape
    new = len(large) - len(small)
    dims = [dim for dim, size in enumerate(large) if dim < new or size != small[dim - new]]
    return f"dim{'s' * (len(dims) > 1)} {', '.join(map(str, dims))}"


# Broadcasting: where inputs are widened to one shape, backward sums over the new dimensions

Shape = tuple[int, ...]

MOST_INPUTS = 8
"""The most inputs of an elementwise operation. A stack has thousands, and each would cost a search through all."""


def broadcast_shape(info: NodeInfo, shapes: Iterable[Shape | None]) -> Shape | None:
    """Return the shape to which the inputs of an op are broadcast (None among `shapes`: unknown).

    Return None if the inputs do not meet element by element: a single input, a matrix product, a result of another
    shape, or a write through a view, which meets only a part of it.
    """
    result = info.created.outputs[0].value if len(info.created.outputs) == 1 else None
    if result is None or not 2 <= len(info.created.inputs) <= MOST_INPUTS or _is_contraction(info):
        return None
    try:
        common = np.broadcast_shapes(*(shape for shape in shapes if shape is not None))
    except ValueError:
        return None
    return common if common == result.shape else None


def _is_contraction(info: NodeInfo) -> bool:
    return info.op.grad_fn == "CopySlices" or "@" in info.op.formula or "matmul" in info.op.name.lower()
