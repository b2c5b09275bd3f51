"""The names that a breakpoint condition can use, read from the trace on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gviz import events as e
from gviz.events import Event
from gviz.query_syntax.condition import OpWord
from gviz.query_syntax.expression_operations import Numbers
from gviz.query_syntax.safe_expression import BUILTINS
from gviz.query_syntax.statistics_proxy import summarized
from gviz.query_syntax.stop_condition import EVENTS
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.value import Value

_OF_GRADIENTS = e.changing("arrived", "grad")


class Absent(Exception):
    """A condition used a value or gradient that does not exist at its moment; the condition is then false."""


class ConditionEnvironment(dict[str, Any]):
    """The moment after event `n`, which is about `node`, as a dictionary of `where.NAMES`.

    `output_nr` selects the node's output where the event itself does not name one.
    """

    def __init__(self, timeline: Timeline, n: int, node: int, event: Event | None = None, output_nr: int = 0) -> None:
        super().__init__()
        self._timeline = timeline
        self._n = n
        self._node = node
        self._default_nr = output_nr
        self._event = timeline.event(n) if event is None else event

    def __missing__(self, name: str) -> Any:
        reader = _READERS.get(name)
        if reader is None:
            return BUILTINS[name]  # not left to `evaluate`: a KeyError on the way there is slow
        value = self[name] = reader(self)
        return value

    def stored(self, name: str) -> Value | None:
        """Return ``value`` or ``grad`` as stored in the trace, None if there is none."""
        return self._current_value() if name == "value" else self._arrived()

    def _info(self) -> NodeInfo | None:
        return self._timeline.info(self._node) if self._node in self._timeline.nodes else None

    def _value(self) -> Any:
        return self._numbers(self._current_value(), "value")

    def _grad(self) -> Any:
        return self._numbers(self._arrived(), "gradient")

    def _op(self) -> str:
        if isinstance(self._event, e.NodeCreated):
            return OpWord.of(self._timeline.op(self._event.op))
        info = self._info()
        return OpWord.of(info.op) if info is not None else ""

    def _current_value(self) -> Value | None:
        """Return the value, taken from the event itself if it has one."""
        if isinstance(self._event, e.NodeCreated):
            outputs = self._event.outputs[self._default_nr :]
            return outputs[0].value if outputs else None
        return self._timeline.memory_value(self._node, self._output_nr(), self._n)

    def _arrived(self) -> Value | None:
        """Return the gradient.

        An event that has one gives it directly, because the state of a node is expensive to compute.
        """
        match self._event:
            case e.NodeCreated():
                return None
            case e.StepStarted(grads=grads):
                return grads[self._default_nr] if self._default_nr < len(grads) else None
        return e.grad_left(self._event) or self._of_state()

    def _of_state(self) -> Value | None:
        state = self._timeline.at(self._n).state(self._node) if self._node else None
        if state is None or not state.outputs:
            return None
        output = state.outputs[min(self._output_nr(), len(state.outputs) - 1)]
        return output.incoming if isinstance(self._event, e.GradFlowed) or output.grad is None else output.grad

    def _output_nr(self) -> int:
        event = self._event
        names_output = isinstance(event, _OF_GRADIENTS)
        return getattr(event, "output_nr", 0) if names_output else self._default_nr

    def _numbers(self, value: Value | None, what: str) -> Any:
        if value is None:
            raise Absent
        array = self._timeline.array(value)
        if array is None:
            return summarized(f"the {what} of #{self._node}", value)
        return array.view(Numbers) if array.ndim else array[()]


_READERS: dict[str, Callable[[ConditionEnvironment], Any]] = {
    "value": ConditionEnvironment._value,
    "grad": ConditionEnvironment._grad,
    "op": ConditionEnvironment._op,
    "name": lambda self: info.name if (info := self._info()) else "",
    "module": lambda self: info.scope if (info := self._info()) else "",
    "node": lambda self: self._node,
    "event": lambda self: word_of(self._event),
    "step": lambda self: self._timeline.iteration_at(self._n).index,
}


def word_of(event: Event) -> str:
    """Return the ``on EVENT`` word for an event, or its class name in lower case."""
    return next((word for word, kinds in EVENTS.items() if isinstance(event, kinds)), type(event).__name__.lower())
