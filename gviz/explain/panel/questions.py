"""The questions that a panel answers about a node, in their order, each with what its answer hangs on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gviz.events import GradFlowed, NodeCreated, StepStarted
from gviz.explain.panel import gradients, making
from gviz.explain.panel.fact import Asked, Fact
from gviz.trace.moment import Moment
from gviz.trace.state import NodeState

Answer = Callable[[Asked], Iterator[Fact]]


def _fixed(state: NodeState | None) -> object:
    """What is known as soon as the node is made never changes."""
    return state is None


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its name, its answer, and what part of a node's state the answer `hangs_on`.

    At a moment that is `news` to a node the answer may be another though its state is the same.
    """

    name: str
    answer: Answer
    hangs_on: Callable[[NodeState | None], object] = _fixed
    news: Callable[[Moment, int], bool] = lambda moment, node: False


def _made(answer: Callable[[Asked, NodeState], Iterator[Fact]]) -> Answer:
    """A question that nothing answers before the node is made."""
    return lambda asked: answer(asked, asked.state) if asked.state is not None else iter(())


def _part(part: Callable[[NodeState], object]) -> Callable[[NodeState | None], object]:
    return lambda state: None if state is None else part(state)


def _contents(state: NodeState) -> object:
    return [(output.value_seq, output.version) for output in state.outputs]


def _arrivals(state: NodeState) -> object:
    arrived = [(output.incoming, len(output.parts), output.expected) for output in state.outputs]
    return state.requires_grad, state.pass_nr, arrived


def _ran(state: NodeState) -> object:
    """Before a rule has run it reads the same at any moment."""
    return (state.pass_nr, state.step) if state.step in ("running", "done", "failed") else ()


def _is_made(moment: Moment, node: int) -> bool:
    return isinstance(moment.event, NodeCreated)


def _sends(moment: Moment, node: int) -> bool:
    return moment.actor == node and isinstance(moment.event, GradFlowed | StepStarted)


QUESTIONS = (
    Question("to be made", making.to_be_made),
    Question("formula", _made(making.formula), _part(_contents)),
    Question("value", _made(making.values), _part(_contents)),
    Question("with", _made(making.operands), _part(_contents)),
    Question("args", _made(making.arguments)),
    Question("kind", _made(making.kind), _part(lambda state: state.requires_grad)),
    Question("saved", _made(making.saved), _part(lambda state: (state.saved, state.saved_freed))),
    Question("used by", _made(making.users), news=_is_made),
    Question("grad in", _made(gradients.incoming), _part(_arrivals)),
    Question(
        ".grad",
        _made(gradients.held),
        _part(lambda state: (state.requires_grad, [output.grad_seq for output in state.outputs])),
    ),
    Question("to", _made(gradients.outgoing), _part(_ran), _sends),
    Question("at", making.place),
    Question("in module", making.module),
)
