"""The forward of a recorded node as something that can be called: of an operation, or of a function of the program's.

A function of the program (`torch.autograd.Function`) is known by the operations that its forward ran on its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gviz.engine.identify import VIEW, recorded_operation
from gviz.engine.op import Op
from gviz.engine.tensor import Tensor, new_tensor
from gviz.errors import GvizError
from gviz.events import Edge, NodeCreated
from gviz.trace.state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.whatif import operations
from gviz.whatif.by_name import Run, run_by_name
from gviz.whatif.foreign import in_engine_terms, require_the_recorded

ENGINE = "gviz.engine"
"""The framework of recordings whose operations are the engine's own."""


@dataclass(frozen=True, slots=True)
class Forward:
    """From tensors in the place of the recorded inputs to outputs, by so many `operations`."""

    run: Run
    operations: int = 1

    def __call__(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """The outputs; raises one of `operations.FAILURES`."""
        return self.run(tensors)


def forward_of(timeline: Timeline, info: NodeInfo) -> Forward:
    """What a node computed; GvizError where that cannot be run on its own."""
    found = _named_so(timeline, info)
    forward = _of_function(timeline, info) if found is None else _of_operation(info, *found)
    if found is None or timeline.framework != ENGINE:
        require_the_recorded(timeline, info, forward)
    return forward


def operation_of(timeline: Timeline, info: NodeInfo) -> tuple[Op, NodeCreated] | None:
    """The engine's operation that a node ran and its event, None if it is none that can be run on its own."""
    found = _named_so(timeline, info)
    if found is not None and timeline.framework != ENGINE:
        require_the_recorded(timeline, info, _of_operation(info, *found))
    return found


def _of_operation(info: NodeInfo, op: Op, created: NodeCreated) -> Forward:
    return Forward(lambda tensors: operations.run(op, info.op, created, tensors))


def _of_function(timeline: Timeline, info: NodeInfo) -> Forward:
    _refuse_repeated(info)
    ends = [_made_within(timeline, info, output.storage) for output in info.created.outputs]
    inputs = {edge: at for at, edge in enumerate(info.created.inputs)}
    steps = sorted({step for end in ends for step in _steps(timeline, end, inputs)})
    runs = [(timeline.info(step), _run_within(timeline, timeline.info(step))) for step in steps]

    def forward(tensors: Sequence[Tensor]) -> list[Tensor]:
        known = {edge: tensors[at] for edge, at in inputs.items()}
        for step, run in runs:
            edges = step.created.inputs
            given = [known[edge] if edge in known else _constant(timeline, info, edge) for edge in edges]
            for output_nr, made in enumerate(run(given)):
                known[step.node, output_nr] = made
        return [known[end, 0] for end in ends]

    return Forward(forward, len(runs))


def _named_so(timeline: Timeline, info: NodeInfo) -> tuple[Op, NodeCreated] | None:
    """The engine's operation of a node's name and its event; of another framework it may be another operation."""
    attrs = dict(info.created.attrs)
    if VIEW in attrs or operations.is_regenerated(info.created):
        return None
    if timeline.framework != ENGINE:
        return in_engine_terms(info)
    op = recorded_operation(info.op, attrs)
    return None if op is None else (op, info.created)


def _refuse_repeated(info: NodeInfo) -> None:
    """GvizError where one tensor was given twice: its forward was given one object, and which was used is not known."""
    given = [edge for edge in info.created.inputs if edge[0]]
    if len({*given}) < len(given):
        raise _refusal(info, "it was given one tensor twice, and which of them its forward used is not recorded")


def _run_within(timeline: Timeline, info: NodeInfo) -> Run:
    """What runs an operation within a function's forward; that the whole gives what was recorded is looked at later."""
    run = run_by_name(info.op.name, info.created)
    if run is not None:
        return run
    found = _named_so(timeline, info)
    if found is None:
        raise _refusal(info, f"it runs {info.op.name}, which cannot be run alone")
    return _of_operation(info, *found).run


def _made_within(timeline: Timeline, info: NodeInfo, storage: int) -> int:
    """The operation within a function's forward that made one of its outputs."""
    newest = max((node for node, _ in info.created.inputs), default=0)
    start = timeline.nodes.place_of(newest) + 1 if newest else 0
    for node in reversed(timeline.nodes[start : timeline.nodes.place_of(info.node)]):
        made = timeline.info(node).created
        if made.kind == "op" and any(output.storage == storage for output in made.outputs):
            return node
    raise _refusal(info, "it is a function of the program, of whose forward no operation was recorded")


def _steps(timeline: Timeline, end: int, inputs: dict[Edge, int]) -> set[int]:
    """The operations that lead from the inputs of a function to what one of them made."""
    found, waiting = {end}, [end]
    while waiting:
        for edge in timeline.info(waiting.pop()).created.inputs:
            node = edge[0]
            if edge in inputs or not node or node in found or timeline.info(node).created.kind != "op":
                continue
            if timeline.nodes.place_of(node) < timeline.nodes.place_of(max(source for source, _ in inputs)):
                continue  # made before the function was called: a number to it
            found.add(node)
            waiting.append(node)
    return found


def _constant(timeline: Timeline, info: NodeInfo, edge: Edge) -> Tensor:
    """A tensor that the forward used besides its inputs."""
    value = timeline.held(*edge, info.born) if edge[0] else None
    array = timeline.array(value) if value is not None else None
    if array is None:
        raise _refusal(info, f"the value of #{edge[0]}, which it uses, was not stored")
    return new_tensor(array)


def _refusal(info: NodeInfo, why: str) -> GvizError:
    hint = "torch.autograd.gradcheck(f, inputs) in the program runs it"
    return GvizError(f"{info.op.name} of #{info.node} cannot be run on its own", why=why, hint=hint, exit_code=2)
