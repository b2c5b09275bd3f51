"""The sections of a node's panel, in their order, each with what its facts hang on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gviz.events import GradFlowed, NodeCreated, StepStarted
from gviz.explain.panel import gradients, making
from gviz.explain.panel.fact import Fact, NodeView
from gviz.trace.moment import Moment
from gviz.trace.state import NodeState

Facts = Callable[[NodeView], Iterator[Fact]]


def _fixed(state: NodeState | None) -> object:
    """What is known as soon as the node is made never changes."""
    return state is None


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its name, its `facts`, and what part of a node's state they `hang_on`.

    At a moment that is `news` to a node they may be others though its state is the same.
    """

    name: str
    facts: Facts
    hang_on: Callable[[NodeState | None], object] = _fixed
    news: Callable[[Moment, int], bool] = lambda moment, node: False


def _made(facts: Callable[[NodeView, NodeState], Iterator[Fact]]) -> Facts:
    """Facts of which there are none before the node is made."""
    return lambda view: facts(view, view.state) if view.state is not None else iter(())


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


SECTIONS = (
    Section("to be made", making.to_be_made),
    Section("formula", _made(making.formula), _part(_contents)),
    Section("value", _made(making.values), _part(_contents)),
    Section("with", _made(making.operands), _part(_contents)),
    Section("args", _made(making.arguments)),
    Section("kind", _made(making.kind), _part(lambda state: state.requires_grad)),
    Section("saved", _made(making.saved), _part(lambda state: (state.saved, state.saved_freed))),
    Section("used by", _made(making.users), news=_is_made),
    Section("grad in", _made(gradients.incoming), _part(_arrivals)),
    Section(
        ".grad",
        _made(gradients.held),
        _part(lambda state: (state.requires_grad, [output.grad_seq for output in state.outputs])),
    ),
    Section("to", _made(gradients.outgoing), _part(_ran), _sends),
    Section("at", making.place),
    Section("in module", making.module),
)
