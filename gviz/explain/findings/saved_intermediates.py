"""Second derivatives through a `torch.autograd.Function` that saves an intermediate of its forward.

Autograd follows the inputs and outputs that a function saves. An intermediate has no history: its forward runs without
gradients. The first derivative is right, but backward sees a constant, and a derivative of it lacks the term that goes
through the intermediate.

Example: ``sig = torch.sigmoid(x); ctx.save_for_backward(x, sig)``, and ``g * sig * (1 + x * (1 - sig))`` in backward.
In a gradient penalty the derivative by ``x`` then lacks the slope of ``sig``.

A finding needs all of this: a pass with ``create_graph`` ran the backward with a graph, a later pass went through that
graph and trained what is behind the input, and what backward sends changes if only the intermediate follows the input.
This is tried by running the recorded operations again. The maximum of a stable softmax, for example, cancels out.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gviz import events as e
from gviz.errors import GvizError
from gviz.explain.computation import LONGEST_FORWARD
from gviz.explain.display_names import innermost, label, label_at, symbol, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import STEPPING
from gviz.explain.program_source import frame_of, program_text
from gviz.explain.recording_overview import NodeRecord, Survey
from gviz.explain.tracking import ancestors
from gviz.source.site import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, file_line
from gviz.values.value import Array, Value

_CALLS = 3
"""The calls of each function that are tried."""

_MOST_WORK = 4_000_000
"""The most elements that all operations of a forward and a backward may compute."""

_MOVE, _CHANGES = 1e-5, 1e-3
"""By how much the inputs are moved, and the relative change per unit that is no rounding."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a function, the operations of its forward, and those of its backward in a pass that keeps its graph.

    `saved` are the results of the forward that the backward uses without their history.
    """

    info: NodeInfo
    forward: Sequence[NodeInfo]
    backward: Sequence[NodeInfo]
    saved: Sequence[NodeInfo]


def constant_intermediates(survey: Survey) -> Iterator[Finding | None]:
    """Yield the first call of each function whose second derivatives lack a saved intermediate."""
    timeline = survey.timeline
    graphs = {event.pass_nr for _, event in survey.passes if event.create_graph}
    if not graphs:
        return
    rules: defaultdict[tuple[int, int], list[NodeRecord]] = defaultdict(list)
    for record in survey.nodes.values():
        if record.created.during[0] in graphs:
            rules[record.created.during].append(record)
    tried: defaultdict[int, int] = defaultdict(int)
    for (_, node), records in rules.items():
        function = survey.nodes.get(node)
        if function is None or not timeline.op(function.created.op).is_of_program:
            continue
        if tried[function.created.op] >= _CALLS:
            continue
        call = _call_of(survey, function, records)
        if call is None or not _is_trained(survey, call):
            continue
        yield None
        tried[function.created.op] += 1
        if _lacks_a_term(timeline, call):
            tried[function.created.op] = _CALLS
            yield _finding(timeline, call)


def _call_of(survey: Survey, function: NodeRecord, records: Sequence[NodeRecord]) -> _Call | None:
    """Return a call whose backward uses intermediates that depend on an input; None for any other."""
    timeline, info = survey.timeline, survey.timeline.info(function.node)
    backward = [timeline.info(record.node) for record in records if record.created.kind == "op"]
    if any(one.op.is_of_program for one in backward):
        return None  # that function may have the second derivative itself
    forward = _operations_inside(timeline, info)
    depending = _depending(timeline, info, forward)
    saved: dict[int, NodeInfo] = {}
    for one in backward:
        for node, _ in one.created.inputs:
            if node in depending and one.created.untracked not in ("detach", "data"):
                saved[node] = depending[node]
    if not saved or not any(one.created.requires_grad for one in backward):
        return None
    return _Call(info, forward, backward, list(saved.values()))


def _operations_inside(timeline: Timeline, info: NodeInfo) -> list[NodeInfo]:
    """Return the operations of a call's forward, which were recorded just before the call."""
    operations, outer = [], info.frames
    place = timeline.nodes.place_of(info.node)
    for node in reversed(timeline.nodes[max(place - LONGEST_FORWARD, 0) : place]):
        inner = timeline.info(node)
        if not outer or len(inner.frames) <= len(outer) or inner.frames[-len(outer) :] != outer:
            break
        if inner.created.kind == "op" and not inner.created.requires_grad:
            operations.append(inner)
    return operations[::-1]


def _depending(timeline: Timeline, info: NodeInfo, forward: Sequence[NodeInfo]) -> dict[int, NodeInfo]:
    """Return the operations of a forward with fractions that depend on a tracked input, and are no output.

    What the forward detaches is left out: it may be a constant on purpose.
    """
    sources = {node for node, _ in info.created.inputs if node and timeline.info(node).created.requires_grad}
    outputs = {output.storage for output in info.created.outputs}
    depending: dict[int, NodeInfo] = {}
    for one in forward:
        value = one.created.first_value
        is_smooth = value is not None and "float" in value.dtype and one.op.base_name not in STEPPING
        if not is_smooth or one.created.untracked in ("detach", "data"):
            continue
        if any(node in sources for node, _ in one.created.inputs):
            sources.add(one.node)
            if all(output.storage not in outputs for output in one.created.outputs):
                depending[one.node] = one
    return depending


def _is_trained(survey: Survey, call: _Call) -> bool:
    """Return whether a later pass went through the graph of the backward, and on to something that is trained."""
    timeline, passes = survey.timeline, {event.pass_nr: event for _, event in survey.passes}
    later = {
        event.pass_nr
        for one in call.backward
        if one.created.requires_grad
        for event in map(timeline.event, timeline.events_of(one.node))
        if isinstance(event, e.StepStarted)
    }
    sources = [node for node, _ in call.info.created.inputs if node and timeline.info(node).created.requires_grad]
    behind = {*sources, *ancestors(timeline, *sources)} if later else set()
    for nr in later:
        if nr in passes and passes[nr].inputs:
            if any(node in behind for node, _ in passes[nr].inputs):
                return True
            continue
        learned = {event.node for _, event in survey.accumulated if event.pass_nr == nr}
        if learned & behind & (survey.optimized or learned):
            return True
    return False


# What the backward sends if only the saved intermediates follow the inputs


def _lacks_a_term(timeline: Timeline, call: _Call) -> bool:
    """Return whether what is sent changes with the saved intermediates alone; False also if that cannot be tried."""
    from gviz import emit
    from gviz.engine.tensor import Tensor, new_tensor
    from gviz.rerun.forward import FAILURES, runs_of

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


def _results(call: _Call) -> list[NodeInfo]:
    """Return the results of a backward that the backward itself does not use."""
    used = {node for one in call.backward for node, _ in one.created.inputs}
    return [one for one in call.backward if one.created.requires_grad and one.node not in used]


class _Numbers:
    """The numbers of tensors in a call: as stored, or else drawn between the least and the largest element.

    That is enough here: a change that cancels out does so for any numbers.
    """

    def __init__(self, timeline: Timeline, call: _Call) -> None:
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


def _finding(timeline: Timeline, call: _Call) -> Finding:
    info, saved = call.info, call.saved[-1]
    use = next(one for one in call.backward if any(node == saved.node for node, _ in one.created.inputs))
    name = symbol(timeline, saved.node)
    text = titled("second derivatives through {} treat {} as a constant", label(timeline, info.node), name)
    depends = f"{label_at(timeline, saved.node)} depends on the input, and backward gets it without its history"
    used = innermost(use)
    where = f" (used at {file_line(used.path, used.line)})" if used is not None else ""
    parts = (
        Finding("saved", f"{depends}{where}", saved.born, saved.node, at=innermost(saved)),
        Finding("used", f"its backward ran in a pass with create_graph: {label_at(timeline, use.node)} has a graph, "
                f"but none to {name}", use.born, use.node, at=used),
    )  # fmt: skip
    again = _statement(timeline, innermost(saved))
    compute = f"compute {clipped(again, 50)} again in backward" if again else f"compute {name} again in backward"
    fix = f"save the inputs only, and {compute}; @once_differentiable if no second derivative is needed"
    at = _saving_line(timeline, innermost(saved), name) or innermost(saved)
    return Finding("constant-intermediate", text, use.born, info.node, parts, fix, at)


def _statement(timeline: Timeline, at: Frame | None) -> str:
    """Return the assignment at a frame as text; empty if there is none, or it has several lines."""
    text = program_text(timeline, at)
    one = text.at(at.line, at.column) if text is not None and at is not None else None
    if text is None or one is None or not isinstance(one.node, ast.Assign):
        return ""
    segment = text.segment(one.node)
    return "" if "\n" in segment or "ctx." in segment else segment


def _saving_line(timeline: Timeline, at: Frame | None, name: str) -> Frame | None:
    """Return the line of a forward that saves a variable for backward."""
    text = program_text(timeline, at)
    one = text.at(at.line, at.column) if text is not None and at is not None else None
    if text is None or one is None or at is None:
        return None
    for other in text.statements:
        if other.around != one.around or not isinstance(other.node, ast.Expr):
            continue
        match other.node.value:
            case ast.Call(func=ast.Attribute(attr="save_for_backward"), args=args):
                if any(isinstance(part, ast.Name) and part.id == name for part in args):
                    return frame_of(at, other.first, text)
    return None
