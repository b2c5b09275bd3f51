"""The operations in the forward of a program's function (`torch.autograd.Function`), from its inputs to its outputs.

Idea: the operations of a forward are recorded as untracked nodes just before the node of the call. Tracing back from
the memory of each output, over what created it or wrote to it, gives the steps that lead there from the inputs.

Example: ``forward: ctx.n = x.norm(); return x / ctx.n`` has two steps, ``norm`` and ``div``. With another ``x`` both
run again, so the slope includes the change of the norm.

Limits: random numbers are kept as drawn. A tensor from outside is a constant and must be stored. If a tensor was given
for two inputs, it is unknown which input each use refers to, so all of up to `_MOST_CHOICES` combinations are tried.
Anything outside of recorded operations (numpy, C++) is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from gviz.engine.tensor import Tensor, new_tensor
from gviz.errors import KEEP_ALL, GvizError
from gviz.events import Edge, Output
from gviz.rerun.inputs import moment_before_writes, nodes_between, written_storage
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline

_DRAWN = {
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "multinomial",
    "normal", "poisson", "uniform", "random", "exponential", "geometric", "cauchy", "log_normal",
}  # fmt: skip
"""Operations that draw random numbers; the recorded numbers are reused."""

_MOST_CHOICES = 32
"""The most combinations of uses that are tried."""

Use = tuple[int, int]
"""An operation, and one of its inputs by position."""


class FunctionBody:
    """The operations of a call's forward that its outputs depend on. Raises GvizError if that is unknown."""

    def __init__(self, timeline: Timeline, info: NodeInfo) -> None:
        self._timeline, self._info = timeline, info
        self._inputs = info.created.inputs
        made = (node for node, _ in self._inputs if node and timeline.info(node).created.kind == "op")
        newest = max(made, default=0)  # a leaf may be seen for the first time in the forward
        self._new = [one for one in nodes_between(timeline, newest, info) if not one.created.requires_grad]
        self._operations = {inner.node: inner for inner in self._new if inner.created.kind == "op"}

    @cached_property
    def ends(self) -> Mapping[int, Edge]:
        """By output of the function: the corresponding output of an operation. Outputs that are not tensors are left
        out.
        """
        where: dict[object, Edge] = {}
        for info in self._new:
            for nr, output in enumerate(info.created.outputs):
                where[output.storage] = where[_place(output)] = info.node, nr
        outputs = enumerate(self._info.created.outputs)
        ends = ((nr, where.get(_place(output)) or where.get(output.storage)) for nr, output in outputs)
        edges = {nr: end for nr, end in ends if end is not None}
        if not any(map(self._makers, edges.values())):
            raise refusal(self._info, "no operation of its forward was recorded")
        return edges

    @cached_property
    def steps(self) -> Sequence[NodeInfo]:
        """The operations that lead from the inputs to the outputs, in the order in which they ran."""
        nodes = {node for end in self.ends.values() for node in self._makers(end)}
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            for edge in (*self._operations[node].created.inputs, (node, 0)):
                new = {*self._makers(edge)} - nodes
                nodes |= new
                waiting += new
        return [info for node, info in self._operations.items() if node in nodes]

    @cached_property
    def choices(self) -> Sequence[Mapping[Use, int]]:
        """The possible input of each use of a tensor given for several inputs; one empty choice if there is none.

        The forward received a single object, so the input is unknown. Only one choice if there are too many.
        """
        twice = repeated_inputs(self._info)
        slots: defaultdict[Edge, list[int]] = defaultdict(list)
        for slot, edge in enumerate(self._inputs):
            slots[edge].append(slot)
        uses = {
            (step.node, position): slots[edge]
            for step in self.steps
            for position, edge in enumerate(step.created.inputs)
            if edge in twice
        }
        if prod(map(len, uses.values())) > _MOST_CHOICES:
            return [{use: of[0] for use, of in uses.items()}]
        return [dict(zip(uses, choice, strict=True)) for choice in product(*uses.values())]

    def constant(self, edge: Edge) -> Tensor:
        """Return a tensor that the forward used besides its inputs, as it was before the forward wrote to it."""
        node, output_nr = edge
        if not node:
            raise refusal(self._info, "what it uses besides its inputs was not recorded")
        writes = [self._timeline.nodes.born(writer) - 1 for writer in self._writers_of(edge)]
        moment = max(min(writes, default=self._info.born), self._timeline.nodes.born(node))
        value = self._timeline.memory_value(node, output_nr, moment)
        array = None if value is None else self._timeline.array(value)
        if array is None:
            raise refusal(self._info, f"the value of #{node}, which it uses, was not stored: {KEEP_ALL}")
        return new_tensor(np.array(array, dtype=np.float64 if array.dtype.kind == "f" else array.dtype))

    def _makers(self, edge: Edge) -> list[int]:
        """Return the operations within the forward that created an output, or wrote to it."""
        node, _ = edge
        if not node or (edge in self._inputs and not self._is_written(edge)):
            return []
        is_inner = (
            node in self._operations and edge not in self._inputs and self._operations[node].op.base_name not in _DRAWN
        )
        return [*([node] if is_inner else ()), *self._writers_of(edge)]

    def _is_written(self, edge: Edge) -> bool:
        """Return whether the function returned an input that it had written to (`mark_dirty`)."""
        return moment_before_writes(self._timeline, self._info, self._inputs.index(edge)) < self._info.born - 1

    def _writers_of(self, edge: Edge) -> Sequence[int]:
        node, output_nr = edge
        outputs = self._timeline.info(node).created.outputs
        return self._writers[outputs[output_nr].storage] if output_nr < len(outputs) else ()

    @cached_property
    def _writers(self) -> Mapping[int, list[int]]:
        """By storage, the operations that wrote to it."""
        writers: defaultdict[int, list[int]] = defaultdict(list)
        for node, info in self._operations.items():
            if (storage := written_storage(info)) and info.op.base_name not in _DRAWN:
                writers[storage].append(node)
        return writers


def _place(output: Output) -> tuple[object, ...]:
    """Return the part of the memory that an output occupies; it stays the same after a write."""
    shape = None if output.value is None else output.value.shape
    return output.storage, shape, output.offset, output.strides


def repeated_inputs(info: NodeInfo) -> set[Edge]:
    """Return the tensors that a function of the program was given for more than one input."""
    edges = info.created.inputs if info.op.is_of_program else ()
    return {edge for edge in edges if edge[0] and edges.count(edge) > 1}


def refusal(info: NodeInfo, why: str) -> GvizError:
    """Return the error for a function whose forward cannot be run again."""
    hint = "torch.autograd.gradcheck(f, inputs) in the program runs it"
    return GvizError(f"{info.op.name} of #{info.node} cannot be run on its own", why=why, hint=hint, exit_code=2)
