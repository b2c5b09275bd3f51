"""What a function's backward sends if only the saved intermediates of its forward follow a change of its inputs.

The recorded operations of forward and backward run again, at the inputs and at inputs moved a little. The backward gets
the intermediates of the moved inputs, and everything else as before. If it then sends something else, a derivative of
the backward lacks a term, as the intermediates have no history.

Example: ``s = sigmoid(x)`` in the forward, and ``g * s * (1 - s)`` in the backward: it changes with ``s``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gviz import emit
from gviz import events as e
from gviz.engine.tensor import Tensor, new_tensor
from gviz.errors import GvizError
from gviz.rerun.node_forward import FAILURES, runs_of
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.value import Array, Value

_MOST_WORK = 4_000_000
"""The most elements that all operations of a forward and a backward may compute."""

_MOVE, _CHANGES = 1e-5, 1e-3
"""By how much the inputs are moved, and the relative change per unit that is no rounding."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function, the operations of its forward, and those of its backward in a pass that keeps its graph.

    `saved` are the results of the forward that the backward uses without their history.
    """

    info: NodeInfo
    forward: Sequence[NodeInfo]
    backward: Sequence[NodeInfo]
    saved: Sequence[NodeInfo]


def lacks_a_term(timeline: Timeline, call: FunctionCall) -> bool:
    """Return whether what is sent changes if only the saved intermediates do; False also if that cannot be tried."""
    values = [one.created.first_value for one in (*call.forward, *call.backward)]
    if sum(value.size for value in values if value is not None) > _MOST_WORK:
        return False
    numbers = _Numbers(timeline, call)
    try:
        runs = runs_of(timeline, (*call.forward, *call.backward))

        def run(infos: Sequence[NodeInfo], arrays: Mapping[e.Edge, Array]) -> dict[e.Edge, Tensor]:
            known = {edge: new_tensor(np.array(array)) for edge, array in arrays.items()}
            for info in infos:
                for edge in info.created.inputs:
                    if edge not in known:
                        known[edge] = new_tensor(np.array(numbers.of(edge)))
                outputs = runs[info.node]([known[edge] for edge in info.created.inputs])
                known |= {(info.node, nr): output for nr, output in enumerate(outputs)}
            return known

        with emit.silence():
            here, there = (run(call.forward, numbers.inputs(by)) for by in (0.0, _MOVE))
            edges = [(one.node, nr) for one in call.saved for nr in range(len(one.created.outputs))]
            fixed = numbers.inputs(0.0) | {edge: here[inner]._array for edge, inner in numbers.outputs.items()}
            computed = {edge: tensor._array for edge, tensor in here.items()}
            sent = []
            for forward in (here, there):
                saved = {edge: forward[edge]._array for edge in edges if edge in forward}
                known = run(call.backward, computed | fixed | saved)
                sent.append([known[one.node, 0]._array for one in _results(call)])
    except (GvizError, *FAILURES):
        return False
    change = max((float(np.abs(two - one).max(initial=0.0)) for one, two in zip(*sent, strict=True)), default=0.0)
    size = max((float(np.abs(one).max(initial=0.0)) for one in sent[0]), default=0.0)
    return bool(np.isfinite(change)) and change > _CHANGES * _MOVE * size


def _results(call: FunctionCall) -> list[NodeInfo]:
    """Return the results of a backward that the backward itself does not use."""
    used = {node for one in call.backward for node, _ in one.created.inputs}
    return [one for one in call.backward if one.created.requires_grad and one.node not in used]


class _Numbers:
    """The numbers of tensors in a call: as stored, or else drawn between the least and the largest element.

    That is enough here: a change that cancels out does so for any numbers.
    """

    def __init__(self, timeline: Timeline, call: FunctionCall) -> None:
        self._timeline, self._info = timeline, call.info
        self._random = np.random.default_rng(0)
        self._known: dict[e.Edge, Array] = {}
        self._moves: dict[e.Edge, Array] = {}
        made = {output.storage: (one.node, nr) for one in call.forward for nr, output in enumerate(one.created.outputs)}
        self.outputs = {
            (call.info.node, nr): made[output.storage]
            for nr, output in enumerate(call.info.created.outputs)
            if output.storage in made
        }

    def of(self, edge: e.Edge) -> Array:
        """Return the numbers of a tensor. Raises GvizError if they are unknown."""
        if edge not in self._known:
            self._known[edge] = self._drawn(edge)
        return self._known[edge]

    def inputs(self, by: float) -> dict[e.Edge, Array]:
        """Return the inputs of the call, those with a gradient moved by a random step of this size."""
        moved = {}
        for edge in self._info.created.inputs:
            array = self.of(edge)
            is_tracked = bool(edge[0]) and self._timeline.info(edge[0]).created.requires_grad
            if edge not in self._moves:
                self._moves[edge] = self._random.uniform(0.5, 1.0, array.shape) * (array.dtype.kind == "f")
            moved[edge] = array + by * self._moves[edge] if is_tracked and array.dtype.kind == "f" else array
        return moved

    def _drawn(self, edge: e.Edge) -> Array:
        node, output_nr = edge
        outputs = self._timeline.info(node).created.outputs if node else ()
        value = outputs[output_nr].value if output_nr < len(outputs) else None
        array = self._timeline.array(value) if value is not None else None
        if array is not None and array.dtype.kind != "f":
            return array
        if array is None:
            array = self._between(value, node)
        return array.astype(np.float64)

    def _between(self, value: Value | None, node: int) -> Array:
        stats = value.statistics() if value is not None and "float" in value.dtype else None
        if value is None or stats is None or not np.isfinite([stats.min, stats.max]).all():
            raise GvizError(f"the value of #{node} was not stored", exit_code=2)
        array: Array = self._random.uniform(stats.min, stats.max, value.shape)
        return array
