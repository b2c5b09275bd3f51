"""The forward of a recorded node as something that can be called: of an operation, or of the program's function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from gviz.engine.identify import VIEW, recorded_operation
from gviz.engine.op import Op
from gviz.engine.tensor import Tensor
from gviz.events import NodeCreated
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.whatif import operations
from gviz.whatif.by_name import Run, run_by_name
from gviz.whatif.foreign import in_engine_terms, require_the_recorded
from gviz.whatif.own_forward import Use, Within, refusal

T = TypeVar("T")

ENGINE = "gviz.engine"
"""The framework of recordings whose operations are the engine's own."""


@dataclass(frozen=True, slots=True)
class Forward:
    """From tensors in the place of the recorded inputs to outputs, by so many `operations`.

    It gives the outputs of these numbers; all of them where it is None. Where one tensor was given for several inputs,
    nobody knows which of them an operation of a function used: then the others that it may be are in `otherwise`.
    """

    run: Run
    operations: int = 1
    outputs: tuple[int, ...] | None = None
    otherwise: tuple[Run, ...] = ()

    def each(self) -> Iterator[Forward]:
        """Itself, and the others that it may be."""
        yield from (replace(self, run=run) for run in (self.run, *self.otherwise))

    def of_outputs(self, each: Sequence[T]) -> list[T]:
        """Those of the outputs that it gives, of one for each output of the node."""
        return list(each) if self.outputs is None else [each[nr] for nr in self.outputs]

    def __call__(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """The outputs; raises one of `operations.FAILURES`."""
        return self.run(tensors)


def forward_of(timeline: Timeline, info: NodeInfo) -> Forward:
    """What a node computed; GvizError where that cannot be run on its own."""
    found = _named_so(timeline, info)
    forward = _of_function(timeline, info) if found is None else _of_operation(info, *found)
    if found is None or timeline.framework != ENGINE:
        require_the_recorded(timeline, info, forward, forward.of_outputs(info.created.outputs))
    return forward


def operation_of(timeline: Timeline, info: NodeInfo) -> tuple[Op, NodeCreated] | None:
    """The engine's operation that a node ran and its event, None if it is none that can be run on its own."""
    found = _named_so(timeline, info)
    if found is not None and timeline.framework != ENGINE:
        require_the_recorded(timeline, info, _of_operation(info, *found), info.created.outputs)
    return found


def _of_operation(info: NodeInfo, op: Op, created: NodeCreated) -> Forward:
    return Forward(lambda tensors: operations.run(op, info.op, created, tensors))


def _of_function(timeline: Timeline, info: NodeInfo) -> Forward:
    within = Within(timeline, info)
    runs = [(step, _run_within(timeline, step)) for step in within.steps]
    first, *others = [partial(_forward, within, info, runs, way) for way in within.ways]
    return Forward(first, len(runs), tuple(within.ends), tuple(others))


def _forward(
    within: Within,
    info: NodeInfo,
    runs: Sequence[tuple[NodeInfo, Run]],
    way: Mapping[Use, int],
    tensors: Sequence[Tensor],
) -> list[Tensor]:
    """The outputs of a function that ran these, and took the inputs that are meant by `way`."""
    known = dict(zip(info.created.inputs, tensors, strict=True))
    for step, run in runs:
        edges = step.created.inputs
        for edge in edges:
            if edge not in known:
                known[edge] = within.constant(edge)
        meant = (way.get((step.node, position)) for position in range(len(edges)))
        given = [known[edge] if slot is None else tensors[slot] for edge, slot in zip(edges, meant, strict=True)]
        for output_nr, made in enumerate(run(given)):
            known[step.node, output_nr] = made
    return [known[end] for end in within.ends.values()]


def _named_so(timeline: Timeline, info: NodeInfo) -> tuple[Op, NodeCreated] | None:
    """The engine's operation of a node's name and its event; of another framework it may be another operation."""
    attrs = dict(info.created.attrs)
    if VIEW in attrs or operations.is_regenerated(info.created):
        return None
    if timeline.framework != ENGINE:
        return in_engine_terms(info)
    op = recorded_operation(info.op, attrs)
    return None if op is None else (op, info.created)


def _run_within(timeline: Timeline, info: NodeInfo) -> Run:
    """What runs an operation within a function's forward; that the whole gives what was recorded is looked at later."""
    run = run_by_name(info.op.name, info.created)
    if run is not None:
        return run
    found = _named_so(timeline, info)
    if found is None:
        raise refusal(info, f"it runs {info.op.name}, which cannot be run alone")
    return _of_operation(info, *found).run
