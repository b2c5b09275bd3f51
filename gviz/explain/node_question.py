"""What `why` explains of a node: which output, at which moment, and which topic (value, nan, missing gradient, …)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from gviz.events import GradFlowed
from gviz.query_syntax.place import Aspect
from gviz.trace.graph_state import NodeInfo, NodeState, OutputState
from gviz.trace.timeline import Moment, Timeline
from gviz.values.value_text import bad_text

Topic = Literal["unborn", "sent", "value", "bad value", "gradient", "bad gradient", "missing"]
"""The topic of a question about a node."""


@dataclass(frozen=True, slots=True)
class Question:
    """An output of a node at a moment: `state` is the node's state then, `topic` is what to explain."""

    timeline: Timeline
    moment: Moment
    node: int
    topic: Topic
    info: NodeInfo
    state: NodeState | None
    output_nr: int = 0

    @property
    def output(self) -> OutputState:
        """Return the output of the question. It exists for every topic except ``unborn``."""
        assert self.state is not None
        return self.state.outputs[self.output_nr]

    def at(self, n: int) -> Question:
        """Return the same question about another moment."""
        moment = self.timeline.at(n)
        return replace(self, moment=moment, state=moment.state(self.node))


def node_question(
    timeline: Timeline, moment: Moment, node: int, aspect: Aspect | None = None, output_nr: int = 0
) -> Question:
    """Return what to explain of an output of a node; without `aspect`, its most urgent topic.

    That is a nan or inf, or else the gradient once a backward pass has reached it, or else the value. After the pass it
    is the value of a result, which keeps no gradient.
    """
    state = moment.state(node)
    topic: Topic = "unborn"
    if state is not None and output_nr < len(state.outputs):
        topic = _topic(timeline, moment, state, state.outputs[output_nr], aspect)
    return Question(timeline, moment, node, topic, timeline.info(node), state, output_nr)


def _topic(timeline: Timeline, moment: Moment, state: NodeState, output: OutputState, aspect: Aspect | None) -> Topic:
    event = moment.event
    if aspect is None and isinstance(event, GradFlowed) and event.source == state.node:
        return "sent"
    bad = bool(bad_text(output.value))
    if aspect == "value" or (aspect is None and (bad or not _has_gradients(timeline, moment))):
        return "bad value" if bad else "value"
    kind = timeline.info(state.node).created.kind
    waits = moment.pass_nr and not output.parts and output.grad is None
    if aspect is None and waits and (output.expected or kind != "parameter"):
        return "value"  # the pass has not reached it
    gradient = output.incoming if output.grad is None else output.grad
    if bad_text(gradient):
        return "bad gradient"
    if aspect is None and kind == "op" and not moment.pass_nr and output.grad is None:
        return "value"  # no pass is running, and it keeps no gradient
    lacks_gradient = output.grad is None and (aspect == "grad" or kind != "op")
    if not output.parts or (lacks_gradient and moment.pass_nr != state.pass_nr):
        return "missing" if output.grad is None else "gradient"
    return "gradient"


def _has_gradients(timeline: Timeline, moment: Moment) -> bool:
    return any(phase.kind == "backward" and phase.start <= moment.n for phase in timeline.phases)
