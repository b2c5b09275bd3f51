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
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gviz import events as e
from gviz.explain.display_names import label, label_at, symbol, titled
from gviz.explain.finding import Finding
from gviz.explain.operation_sets import STEPPING
from gviz.explain.program_text import frame_of, program_text
from gviz.explain.recording_survey import NodeRecord, Survey
from gviz.explain.source_frames import innermost
from gviz.explain.tracking import ancestors
from gviz.explain.value_computation import LONGEST_FORWARD
from gviz.source.call_stack import Frame
from gviz.trace.graph_state import NodeInfo
from gviz.trace.timeline import Timeline
from gviz.values.plain_text import clipped, file_line

if TYPE_CHECKING:
    from gviz.rerun.custom_function_backward import FunctionCall

_CALLS = 3
"""The calls of each function that are tried."""


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
    from gviz.rerun.custom_function_backward import lacks_a_term  # imports the engine, which few answers need

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
        if lacks_a_term(timeline, call):
            tried[function.created.op] = _CALLS
            yield _finding(timeline, call)


def _call_of(survey: Survey, function: NodeRecord, records: Sequence[NodeRecord]) -> FunctionCall | None:
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
    from gviz.rerun.custom_function_backward import FunctionCall

    return FunctionCall(info, forward, backward, list(saved.values()))


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


def _is_trained(survey: Survey, call: FunctionCall) -> bool:
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


def _finding(timeline: Timeline, call: FunctionCall) -> Finding:
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
